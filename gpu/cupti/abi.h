/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of CUPTI's binary interface that the agent uses. The declarations are kprof's own, so
 * that the agent builds without NVIDIA's headers.
 *
 * Records have grown over the years, always at their end. Each struct here has the fields that CUDA
 * 11.6 to 13 have in common; later fields have a comment that names their first release. Whether a
 * record has them follows from its size. tests/gpu/abi_check.c compares every field with the real
 * headers.
 */
#ifndef KPROF_GPU_CUPTI_ABI_H
#define KPROF_GPU_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/cupti/profiler_abi.h"

/*
 * cuptiGetVersion(): 16 is CUDA 11.6, 28 is 12.9; from 13.0 on 130000 + …; a new major may change
 * anything.
 */
#define CUPTI_VERSION_MIN 16
#define CUPTI_VERSION_12_LAST 99
#define CUPTI_VERSION_13 130000
#define CUPTI_VERSION_14 140000
/*
 * From CUDA 12.6 on CUPTI can be finalized and used again although graphs were launched meanwhile.
 */
#define CUPTI_VERSION_FINALIZES 24
#define CUPTI_VERSION_11_8 18 /* of 12.0 and 12.1, too */
/* From CUDA 12.9 on CUPTI may be given no buffer. */
#define CUPTI_VERSION_NO_BUFFER 27

/* CUptiResult */
enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_OLD_PROFILER = 36,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES = 40,
};

/* CUpti_ActivityKind */
enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONTEXT = 9,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22,
	CUPTI_KIND_CUDA_EVENT = 36,
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_EXTERNAL_CORRELATION = 39,
	CUPTI_KIND_MEMORY2 = 49,
};

enum { CUPTI_ATTRIBUTE_BUFFER_PER_THREAD = 9 }; /* CUpti_ActivityAttribute */
enum { CUPTI_FLUSH_FORCED = 1 };                /* CUpti_ActivityFlag */
enum { CUPTI_THREAD_ID_SYSTEM = 1 };            /* CUpti_ActivityThreadIdType */
/* CUpti_CallbackDomain */
enum { CUPTI_DRIVER_API = 1, CUPTI_RUNTIME_API = 2, CUPTI_RESOURCE = 3 };
enum { CUPTI_CONTEXT_ENDS = 2 };  /* CUpti_CallbackIdResource */
enum { CUPTI_API_EXIT_SITE = 1 }; /* CUpti_ApiCallbackSite */

/* CUpti_ActivityOverheadKind */
enum {
	CUPTI_OVERHEAD_DRIVER_COMPILER = 1,
	CUPTI_OVERHEAD_BUFFER_FLUSH = 1 << 16,
	CUPTI_OVERHEAD_INSTRUMENTATION = 2 << 16,
	CUPTI_OVERHEAD_RESOURCE = 3 << 16,
	CUPTI_OVERHEAD_MODULE_LOADING = 4 << 16,
	CUPTI_OVERHEAD_LAZY_LOADING = 5 << 16,
	CUPTI_OVERHEAD_COMMAND_BUFFER = 6 << 16,
	CUPTI_OVERHEAD_BUFFER_REQUEST = 7 << 16,
	CUPTI_OVERHEAD_UVM_INIT = 8 << 16,
};

/* CUpti_ActivityObjectKind */
enum {
	CUPTI_OBJECT_THREAD = 2,
	CUPTI_OBJECT_DEVICE = 3,
	CUPTI_OBJECT_CONTEXT = 4,
	CUPTI_OBJECT_STREAM = 5,
};

/* Does a record of this size have that field? */
#define CUPTI_HAS(record, bytes, field) \
	((bytes) >= offsetof(__typeof__(*(record)), field) + sizeof((record)->field))

struct cupti_kernel {
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, pad;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph;
#define CUPTI_KERNEL_BYTES 160
	void *policy;
	uint32_t channel, channel_type; /* 11.7 */
	uint8_t later[40];
	int32_t priority; /* 13.1 */
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
#define CUPTI_MEMCPY_BYTES 80
	uint32_t channel_type, pad2; /* 11.7, as the channel, which was padding before */
};

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
#define CUPTI_MEMCPY_PEER_BYTES 88
	uint32_t channel_type, pad; /* 11.7, as the channel */
};

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
#define CUPTI_MEMSET_BYTES 80
	uint32_t channel_type, pad2; /* 11.7, as the channel */
};

/* An allocation or a release. */
struct cupti_memory {
	uint32_t kind, operation, memory, correlation;
	uint64_t address, bytes, time, caller;
	uint32_t process, device, context, stream;
};
#define CUPTI_MEMORY_BYTES 64

/* CUpti_ActivityMemoryOperationType */
enum { CUPTI_MEMORY_ALLOCATION = 1, CUPTI_MEMORY_RELEASE = 2 };

struct cupti_sync {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
#define CUPTI_SYNC_BYTES 40
	uint64_t event_sync; /* 12.8 */
};

struct cupti_event {
	uint32_t kind, correlation, context, stream, event, pad;
#define CUPTI_EVENT_BYTES 24
	uint32_t device, pad2; /* 12.8 */
	void *reserved;
	uint64_t device_time; /* 0 unless cuptiActivityEnableCudaEventDeviceTimestamps() asked */
	uint64_t event_sync;  /* 12.8 */
};

struct cupti_call {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};
#define CUPTI_CALL_BYTES 40

struct cupti_overhead {
	uint32_t kind, overhead, object;
	uint32_t id[3]; /* process, thread; or device, context, stream */
	uint64_t start, end;
#define CUPTI_OVERHEAD_BYTES 40
	uint32_t correlation, pad; /* 12.3 */
};

struct cupti_device {
	uint32_t kind, flags;
	uint64_t bandwidth; /* kB/s */
	uint64_t memory;
	uint32_t constant_memory, l2, warp, clock, copy_engines, multiprocessors, max_ipc;
	uint32_t max_warps_sm, max_blocks_sm, max_shared_sm, max_registers_sm;
	uint32_t max_registers_block, max_shared_block, max_threads_block;
	uint32_t max_block[3], max_grid[3];
	uint32_t compute_major, compute_minor, id, ecc;
	uint8_t uuid[16];
	const char *name;
};
#define CUPTI_DEVICE_BYTES 144

struct cupti_context {
	uint32_t kind, context, device;
	uint16_t api, null_stream;
};
#define CUPTI_CONTEXT_BYTES 16

struct cupti_external {
	uint32_t kind, external_kind;
	uint64_t external;
	uint32_t correlation, pad;
};
#define CUPTI_EXTERNAL_BYTES 24

/* CUpti_CallbackData, of which only the first field is read. */
struct cupti_callback_data {
	uint32_t site;
};

/* CUpti_ResourceData, of which only the first field is read. */
struct cupti_resource_data {
	void *context;
};

typedef void (*cupti_requested_fn)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*cupti_completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
				   size_t valid_bytes);
typedef uint64_t (*cupti_timestamp_fn)(void);
typedef void (*cupti_callback_fn)(void *ctx, int domain, uint32_t cbid, const void *data);

/* F(member, symbol, parameters) for each function that every known version has. */
#define CUPTI_FUNCTIONS(F)                                                          \
	F(get_version, cuptiGetVersion, (uint32_t *))                               \
	F(subscribe, cuptiSubscribe, (void **, cupti_callback_fn, void *))          \
	F(unsubscribe, cuptiUnsubscribe, (void *))                                  \
	F(enable_domain, cuptiEnableDomain, (uint32_t, void *, int))                \
	F(callback_name, cuptiGetCallbackName, (int, uint32_t, const char **))      \
	F(timestamp, cuptiGetTimestamp, (uint64_t *))                               \
	F(enable, cuptiActivityEnable, (int))                                       \
	F(disable, cuptiActivityDisable, (int))                                     \
	F(register_callbacks, cuptiActivityRegisterCallbacks,                       \
	  (cupti_requested_fn, cupti_completed_fn))                                 \
	F(flush_all, cuptiActivityFlushAll, (uint32_t))                             \
	F(next_record, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))    \
	F(dropped, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) \
	F(set_thread_id_type, cuptiSetThreadIdType, (int))                          \
	F(finalize, cuptiFinalize, (void))
/* The same for each function that some versions lack. */
#define CUPTI_OPTIONAL_FUNCTIONS(F)                                                             \
	F(enable_and_dump, cuptiActivityEnableAndDump, (int))                                   \
	F(register_timestamp, cuptiActivityRegisterTimestampCallback, (cupti_timestamp_fn))     \
	F(result_string, cuptiGetResultString, (int, const char **))                            \
	F(set_attribute, cuptiActivitySetAttribute, (int, size_t *, void *))                    \
	F(event_times, cuptiActivityEnableCudaEventDeviceTimestamps, (uint8_t))                 \
	F(enable_runtime_call, cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))              \
	F(enable_driver_call, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))                \
	F(enabled_kinds, cuptiActivityGetEnabledKinds, (void *, int *, uint32_t *, uint32_t *)) \
	F(enable_callback, cuptiEnableCallback, (uint32_t, void *, int, uint32_t))              \
	F(context_id, cuptiGetContextId, (void *, uint32_t *))

#define CUPTI_MEMBER(member, symbol, parameters) int(*member) parameters;
struct cupti_functions {
	CUPTI_FUNCTIONS(CUPTI_MEMBER)
	CUPTI_OPTIONAL_FUNCTIONS(CUPTI_MEMBER)
	profiler_fn profiler[PROFILER_CALLS]; /* NULL: before CUDA 12.6 */
};

_Static_assert(offsetof(struct cupti_kernel, policy) == CUPTI_KERNEL_BYTES, "cupti: kernel");
_Static_assert(offsetof(struct cupti_kernel, priority) == 216, "cupti: priority");
_Static_assert(offsetof(struct cupti_memcpy, channel_type) == CUPTI_MEMCPY_BYTES, "cupti: memcpy");
_Static_assert(offsetof(struct cupti_memcpy_peer, channel_type) == CUPTI_MEMCPY_PEER_BYTES,
	       "cupti: peer");
_Static_assert(offsetof(struct cupti_memset, channel_type) == CUPTI_MEMSET_BYTES, "cupti: memset");
_Static_assert(offsetof(struct cupti_sync, event_sync) == CUPTI_SYNC_BYTES, "cupti: sync");
_Static_assert(offsetof(struct cupti_event, device) == CUPTI_EVENT_BYTES, "cupti: event");
_Static_assert(offsetof(struct cupti_event, event_sync) == 48, "cupti: event sync");
_Static_assert(sizeof(struct cupti_call) == CUPTI_CALL_BYTES, "cupti: call");
_Static_assert(offsetof(struct cupti_overhead, correlation) == CUPTI_OVERHEAD_BYTES,
	       "cupti: overhead");
_Static_assert(sizeof(struct cupti_device) == CUPTI_DEVICE_BYTES, "cupti: device");
_Static_assert(sizeof(struct cupti_context) == CUPTI_CONTEXT_BYTES, "cupti: context");
_Static_assert(sizeof(struct cupti_external) == CUPTI_EXTERNAL_BYTES, "cupti: external");

#endif
