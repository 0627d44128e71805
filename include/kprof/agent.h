/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent in a target (gpu/) and kprof (user/capture) share: a memory file that both map,
 * and the records that the agent hands over.
 *
 * The agent makes a memfd named KPROF_AGENT_SHM_NAME when it is loaded, and maps it; kprof finds
 * the mapping in /proc/PID/maps and maps the same file. kprof writes commands into its head and
 * wakes the agent's thread (futex on .command, not private); the agent answers in .state. While a
 * session records, kprof writes the time into .heartbeat_ns at least four times a second; an agent
 * that has not seen it change for a second goes inert: every activity disabled, CUPTI released, its
 * thread gone.
 *
 * Records are collected in slots of that file, one per writing thread, so that what a dying target
 * had collected is still there. A full slot, or one older than 100 ms, is handed over by calling
 * kprof_agent_batch(const void *data, uint32_t bytes), an exported function that does nothing:
 * kprof's probe on its entry copies the bytes into the ring buffer (KPROF_WIRE_BATCH). After the
 * call the slot is empty again.
 *
 * Fixed numbers, explicit padding, no pointers. Times: CLOCK_MONOTONIC, ns. A field is never
 * renumbered, only added.
 */
#ifndef KPROF_AGENT_H
#define KPROF_AGENT_H

#include "kprof/wire.h"

#define KPROF_AGENT_MAGIC 0x4147504bu /* "KPGA" */
#define KPROF_AGENT_VERSION 1
#define KPROF_AGENT_SHM_NAME "kprof-agent-shm"  /* in maps: /memfd:kprof-agent-shm (deleted) */
#define KPROF_AGENT_LIBRARY "libkprof_agent.so" /* file, or memfd of this name when injected */
#define KPROF_AGENT_BATCH_SYMBOL "kprof_agent_batch"
/*
 * int kprof_agent_start(void): makes the memfd and the thread, if they are not there. 0 or a
 * negative errno.
 */
#define KPROF_AGENT_START_SYMBOL "kprof_agent_start"

enum kprof_agent_command {
	KPROF_AGENT_REST = 0,   /* nothing is enabled; the thread waits */
	KPROF_AGENT_RECORD = 1, /* as .types and .options say, under number .session */
	KPROF_AGENT_LEAVE = 2,  /* give up CUPTI, free what can be freed, end the thread */
};

enum kprof_agent_state {
	KPROF_AGENT_LOADED = 0,    /* waits for a command, or for the device runtime to appear */
	KPROF_AGENT_RECORDING = 1, /* of session .recording */
	KPROF_AGENT_RESTING = 2,   /* everything of the last session has been handed over */
	KPROF_AGENT_LEFT = 3,      /* inert: thread gone */
	KPROF_AGENT_FAILED = 4,    /* see .reason and .detail; nothing is enabled */
};

/* Why the device's activities cannot be had: said on stderr, kept in the metadata. */
enum kprof_agent_reason {
	KPROF_AGENT_OK = 0,
	KPROF_AGENT_NO_RUNTIME = 1,    /* the process has not loaded a device runtime (yet) */
	KPROF_AGENT_NO_CUPTI = 2,      /* no libcupti to be found */
	KPROF_AGENT_BAD_VERSION = 3,   /* a CUPTI this agent does not know */
	KPROF_AGENT_BUSY = 4,          /* another subscriber (Kineto, Nsight, DCGM) */
	KPROF_AGENT_NO_PERMISSION = 5, /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
	KPROF_AGENT_NO_DRIVER = 6,     /* no or too old a driver */
	KPROF_AGENT_NO_MEMORY = 7,
	KPROF_AGENT_OTHER = 8,
	KPROF_AGENT_REASONS, /* how many there are */
};

#define KPROF_AGENT_OPT_SYNC 1u /* synchronization records (--cuda-sync) */

#define KPROF_AGENT_SLOTS 256
#define KPROF_AGENT_SLOT_BYTES 4096
#define KPROF_AGENT_HEAD_BYTES 4096
#define KPROF_AGENT_SHM_BYTES (KPROF_AGENT_HEAD_BYTES + KPROF_AGENT_SLOTS * KPROF_AGENT_SLOT_BYTES)

/* At offset 0 of the memory file. */
struct kprof_agent_shm {
	kprof_u32 magic, version;
	kprof_u32 pid; /* the agent's own, in its namespace */
	kprof_u32 nr_slots;
	/* Written by kprof. */
	kprof_u32 command; /* enum kprof_agent_command; a futex */
	kprof_u32 session; /* another number with each RECORD; never 0 */
	kprof_u64 heartbeat_ns;
	kprof_u64 types;   /* bits 1 << enum kprof_activity */
	kprof_u32 options; /* KPROF_AGENT_OPT_* */
	kprof_u32 wanted;  /* bits 1 << enum kprof_agent_runtime that may record; 0: all */
	/* Written by the agent. */
	kprof_u32 state;     /* enum kprof_agent_state; a futex */
	kprof_u32 recording; /* .session that is being or was last recorded */
	kprof_u32 reason;    /* enum kprof_agent_reason */
	kprof_u32 runtimes;  /* bits 1 << enum kprof_agent_runtime that record */
	char detail[256];    /* what failed, in words */
	kprof_u32 cupti_version, driver_version, runtime_version; /* CUDA's numbers; 0: none */
	kprof_u32 clock;                                          /* enum kprof_agent_clock */
	/* Totals of this session. */
	kprof_u64 records;              /* handed over, or in slots */
	kprof_u64 device_dropped;       /* CUPTI's own count of records that it lost */
	kprof_u64 agent_dropped;        /* no slot, or no memory for a buffer */
	kprof_u64 unknown_records;      /* of kinds that were not asked for */
	kprof_u64 buffers, max_buffers; /* CUPTI's, now and at most */
};

enum kprof_agent_clock {
	KPROF_AGENT_CLOCK_MONOTONIC = 0, /* records carry CLOCK_MONOTONIC by themselves */
	KPROF_AGENT_CLOCK_CONVERTED = 1, /* converted by the agent; see KPROF_AGENT_CLOCK records */
};

struct kprof_agent_slot {
	kprof_u32 owner; /* thread id in the agent's namespace; 0: free */
	kprof_u32 used;  /* bytes of whole records in data[]; written last */
	kprof_u64 opened_ns;
	kprof_u32 session;
	kprof_u32 pad[11];
	kprof_u8 data[KPROF_WIRE_BATCH_BYTES];
};

/* ---- records ---- */

enum kprof_agent_runtime { KPROF_AGENT_CUDA = 0, KPROF_AGENT_OPENCL = 1 };

enum kprof_agent_kind {
	KPROF_AGENT_NAME = 1,      /* struct kprof_agent_name */
	KPROF_AGENT_ACTIVITY = 2,  /* struct kprof_agent_activity: whatever fits no other */
	KPROF_AGENT_KERNEL = 3,    /* struct kprof_agent_kernel */
	KPROF_AGENT_COPY = 4,      /* struct kprof_agent_copy: copies and sets */
	KPROF_AGENT_SYNC = 5,      /* struct kprof_agent_sync */
	KPROF_AGENT_API = 6,       /* struct kprof_agent_api */
	KPROF_AGENT_DEVICE = 7,    /* struct kprof_agent_device */
	KPROF_AGENT_CONTEXT = 8,   /* struct kprof_agent_context */
	KPROF_AGENT_CLOCK = 9,     /* struct kprof_agent_clock_pair */
	KPROF_AGENT_EXTERNAL = 10, /* struct kprof_agent_external */
	KPROF_AGENT_EVENT = 11,    /* struct kprof_agent_event: a device event was recorded */
	KPROF_AGENT_ALLOC = 12,    /* struct kprof_agent_alloc: memory was allocated or released */
};

/* First in every record. */
struct kprof_agent_head {
	kprof_u16 kind; /* enum kprof_agent_kind */
	kprof_u16 size; /* of the whole record, a multiple of 8 */
	kprof_u32 name; /* id given by a NAME record earlier in this session; 0: none */
};

/*
 * Names are reported once a session, in the batch (of whatever thread) that is handed over before
 * any that uses them.
 */
struct kprof_agent_name {
	struct kprof_agent_head h; /* .name: the id, dense from 1 */
	kprof_u32 bytes;           /* of text[], without a NUL; cut to fit a batch */
	char text[];
};

/* Work of a device. */
struct kprof_agent_activity {
	struct kprof_agent_head h;
	kprof_u64 start_ns, end_ns;
	kprof_u64 queued_ns;   /* when the host queued it; 0: not known */
	kprof_u64 correlation; /* of the call that launched it; 0: none */
	kprof_u64 bytes;       /* copied or set; overhead: object id */
	kprof_u32 device, context, stream;
	kprof_u16 type;   /* enum kprof_activity */
	kprof_u8 runtime; /* enum kprof_agent_runtime */
	kprof_u8 pad;
};

struct kprof_agent_kernel {
	struct kprof_agent_activity a;
	kprof_u32 grid[3], block[3];
	kprof_u32 static_shared_bytes, dynamic_shared_bytes;
	kprof_u32 local_bytes_per_thread;
	kprof_u16 registers; /* per thread */
	kprof_s16 priority;
	kprof_u32 graph; /* 0: not of a graph */
	/* shared memory of a multiprocessor as configured; 0: not known */
	kprof_u32 shared_config_bytes;
	kprof_u64 graph_node;
};

/* Where memory lies. */
enum kprof_agent_memory {
	KPROF_AGENT_MEMORY_UNKNOWN = 0,
	KPROF_AGENT_MEMORY_PAGEABLE = 1,
	KPROF_AGENT_MEMORY_PINNED = 2,
	KPROF_AGENT_MEMORY_DEVICE = 3,
	KPROF_AGENT_MEMORY_ARRAY = 4,
	KPROF_AGENT_MEMORY_MANAGED = 5,
	KPROF_AGENT_MEMORY_DEVICE_STATIC = 6,
	KPROF_AGENT_MEMORY_MANAGED_STATIC = 7,
};

/* CUPTI's CUpti_ActivityMemcpyKind. */
enum kprof_agent_copy_kind {
	KPROF_AGENT_COPY_UNKNOWN = 0,
	KPROF_AGENT_COPY_HTOD = 1,
	KPROF_AGENT_COPY_DTOH = 2,
	KPROF_AGENT_COPY_HTOA = 3,
	KPROF_AGENT_COPY_ATOH = 4,
	KPROF_AGENT_COPY_ATOA = 5,
	KPROF_AGENT_COPY_ATOD = 6,
	KPROF_AGENT_COPY_DTOA = 7,
	KPROF_AGENT_COPY_DTOD = 8,
	KPROF_AGENT_COPY_HTOH = 9,
	KPROF_AGENT_COPY_PTOP = 10,
};

struct kprof_agent_copy {
	struct kprof_agent_activity a;
	kprof_u8 kind;     /* enum kprof_agent_copy_kind; sets: 0 */
	kprof_u8 from, to; /* enum kprof_agent_memory; sets: `to` */
	kprof_u8 pad;
	kprof_u32 graph;
	kprof_u64 graph_node;
	kprof_u32 from_device, from_context, to_device, to_context; /* PTOP only */
	kprof_u32 value; /* sets: what the memory was set to */
	kprof_u32 pad2;
};

/* CUPTI's CUpti_ActivitySynchronizationType. */
enum kprof_agent_sync_kind {
	KPROF_AGENT_SYNC_EVENT = 1,
	KPROF_AGENT_SYNC_STREAM_WAIT_EVENT = 2,
	KPROF_AGENT_SYNC_STREAM = 3,
	KPROF_AGENT_SYNC_CONTEXT = 4,
};

struct kprof_agent_sync {
	struct kprof_agent_activity a; /* .type CUDA_SYNC; .stream UINT32_MAX: none */
	kprof_u32 kind;                /* enum kprof_agent_sync_kind */
	kprof_u32 event;               /* id; 0: none */
	/* of the call that recorded the event waited for; 0: not known */
	kprof_u64 event_correlation;
	kprof_u32 event_stream; /* … and its stream */
	kprof_u32 pad;
};

/*
 * A call of the runtime or driver as the device's own tool interface saw it: gives spans their
 * correlation.
 */
struct kprof_agent_api {
	struct kprof_agent_head h; /* .name: the function's */
	kprof_u64 start_ns, end_ns;
	kprof_u64 correlation;
	kprof_u32 tid;  /* in the agent's namespace */
	kprof_u32 cbid; /* the tool interface's number of the function */
	kprof_u16 type; /* enum kprof_activity: CUDA_RUNTIME, CUDA_DRIVER, OPENCL_RUNTIME */
	kprof_u16 pad;
	kprof_s32 result;
};

struct kprof_agent_device {
	struct kprof_agent_head h; /* .name: the device's */
	kprof_u32 device;          /* ordinal */
	kprof_u32 runtime;         /* enum kprof_agent_runtime */
	kprof_u64 memory_bytes;
	kprof_u64 memory_bandwidth_bytes; /* per second; 0: not known */
	kprof_u32 compute_major, compute_minor;
	kprof_u32 max_threads_per_block, max_threads_per_multiprocessor;
	kprof_u32 registers_per_block, registers_per_multiprocessor;
	kprof_u32 shared_bytes_per_block, shared_bytes_per_multiprocessor;
	kprof_u32 shared_bytes_per_block_optin;
	kprof_u32 warp_size, multiprocessors, max_blocks_per_multiprocessor;
};

struct kprof_agent_context {
	struct kprof_agent_head h;
	kprof_u32 context, device;
	kprof_u32 null_stream; /* id of its default stream */
	kprof_u32 runtime;
};

/* One moment on both clocks, and how far apart the readings around it were. */
struct kprof_agent_clock_pair {
	struct kprof_agent_head h;
	kprof_u64 mono_ns, device_ns;
	kprof_u64 width_ns;
};

struct kprof_agent_external {
	struct kprof_agent_head h;
	kprof_u64 correlation, external;
	kprof_u32 kind; /* CUPTI's CUpti_ExternalCorrelationKind */
	kprof_u32 pad;
};

struct kprof_agent_alloc {
	struct kprof_agent_head h;
	kprof_u64 time_ns;
	kprof_u64 address;
	kprof_u64 bytes; /* 0 of a release: not reported */
	kprof_u64 correlation;
	kprof_u32 device, context;
	kprof_u8 memory; /* enum kprof_agent_memory */
	kprof_u8 release;
	kprof_u16 pad;
	kprof_u32 pad2;
};

struct kprof_agent_event {
	struct kprof_agent_head h;
	kprof_u64 correlation; /* of the call that recorded it */
	kprof_u32 event, context, stream, pad;
};

_Static_assert(sizeof(struct kprof_agent_slot) == KPROF_AGENT_SLOT_BYTES, "agent: slot");
_Static_assert(sizeof(struct kprof_agent_shm) <= KPROF_AGENT_HEAD_BYTES, "agent: shm");
_Static_assert(sizeof(struct kprof_agent_activity) == 64, "agent: activity");
_Static_assert(sizeof(struct kprof_agent_kernel) == 120, "agent: kernel");
_Static_assert(sizeof(struct kprof_agent_copy) == 104, "agent: copy");
_Static_assert(sizeof(struct kprof_agent_sync) == 88, "agent: sync");
_Static_assert(sizeof(struct kprof_agent_api) == 48, "agent: api");

#endif
