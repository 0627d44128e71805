/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: what the simulated libcuda, libcudart and libcupti share. They meet as
 * the real ones do, through cuGetExportTable, so that nothing else needs to be exported.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

#define SIM_EXPORT __attribute__((visibility("default")))

enum sim_domain { SIM_DRIVER = 1, SIM_RUNTIME = 2 }; /* CUpti_CallbackDomain */

/* A call of the interface while it runs; on the caller's stack. */
struct sim_call {
	enum sim_domain domain;
	uint32_t cbid;
	const char *name;
	const void *params;
	struct sim_call *parent; /* in which call it happens, on this thread */
	uint32_t correlation;
	int result;
	uint64_t start_ns, end_ns;
	uint32_t context_id;
	CUcontext context;
	const char *symbol;        /* of the kernel launched */
	uint64_t correlation_data; /* for the subscriber, from enter to exit */
	bool called_back;          /* at enter */
	bool recorded;             /* CUPTI has made a record of it */
};

enum sim_activity_type {
	SIM_KERNEL,
	SIM_COPY,
	SIM_SET,
	SIM_SYNC,
	SIM_EVENT_RECORD,
	SIM_GRAPH,
	SIM_HOST_FN,
	SIM_NOTHING
};

/* Numbers of CUpti_ActivitySynchronizationType. */
enum sim_sync_kind {
	SIM_SYNC_EVENT = 1,
	SIM_SYNC_STREAM_WAIT_EVENT,
	SIM_SYNC_STREAM,
	SIM_SYNC_CONTEXT
};

/*
 * What CUPTI made of an activity. INCOMPLETE: its buffer was handed over, by force, before it was
 * finished.
 */
enum sim_fate { SIM_FATE_OFF, SIM_FATE_RECORDED, SIM_FATE_DROPPED, SIM_FATE_INCOMPLETE };

/* What the device (or, for syncs, a waiting thread) did. CLOCK_MONOTONIC, ns. */
struct sim_activity {
	enum sim_activity_type type;
	uint32_t correlation;
	uint64_t start_ns, end_ns, queued_ns;
	uint32_t device, context, stream;
	const char *name; /* kernel; lives as long as the library that has it */
	uint32_t grid[3], block[3];
	uint32_t static_shared, dynamic_shared, registers, local;
	int32_t priority;
	uint32_t channel, channel_type; /* of the hardware; CUPTI's numbers of types */
	uint64_t bytes;
	uint8_t copy_kind, from, to; /* CUPTI's numbers; 10: between devices */
	bool async;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t value;
	uint32_t graph;
	uint64_t node;
	uint32_t event;
	uint64_t event_sync; /* of one recording of an event */
	enum sim_sync_kind sync_kind;
	enum sim_fate fate;
	void *slot; /* CUPTI's: where its record lies */
};

struct sim_device_info {
	uint32_t id;
	const char *name;
	uint64_t memory_bytes;
	struct sim_uuid uuid;
};

struct sim_hooks {
	void (*enter)(struct sim_call *call);
	void (*exit)(struct sim_call *call);
	/*
	 * It is queued: gets its place in a buffer, without times. Sets fate and slot. Syncs are
	 * not.
	 */
	void (*queued)(struct sim_activity *a);
	/* It is finished. Returns its fate. */
	enum sim_fate (*finished)(const struct sim_activity *a);
	void (*context)(uint32_t context, uint32_t device, uint32_t null_stream);
	void (*context_ends)(CUcontext context); /* it is about to be destroyed */
	void (*stream)(uint32_t context, uint32_t stream, uint32_t priority, uint32_t flag);
	/* Memory was allocated or released, in a call of this thread. memory: CUPTI's number. */
	void (*memory)(bool release, uint64_t address, uint64_t bytes, uint32_t memory,
		       uint32_t context, uint32_t device);
};

/* Held by libcuda, got by cuGetExportTable(SIM_TABLE_UUID). */
struct sim_table {
	size_t size;
	void (*enter)(struct sim_call *call, enum sim_domain domain, uint32_t cbid,
		      const char *name, const void *params);
	/* args: members of a JSON object, or NULL. Returns result. */
	int (*exit)(struct sim_call *call, int result, const char *args, ...)
		__attribute__((format(printf, 3, 4)));
	void (*set_hooks)(
		const struct sim_hooks *hooks); /* NULL: none; returns when none runs any more */
	uint64_t (*now_ns)(void);
	bool (*ready)(void); /* cuInit was done */
	void (*drain)(void); /* what the device has finished is told now */
	void (*say)(const char *fmt, ...)
		__attribute__((format(printf, 1, 2)));         /* a line of truth */
	uint64_t (*env)(const char *name, uint64_t otherwise); /* KPROF_SIM_name */
	int (*nr_devices)(void);
	struct sim_device_info (*device)(int ordinal);
	int (*device_attribute)(int *value, int attribute, int ordinal);
	/* Tells hooks->context of each context that there is. */
	void (*each_context)(void (*fn)(uint32_t context, uint32_t device, uint32_t null_stream));
	struct sim_call *(*current)(void); /* innermost call of this thread */
	uint32_t (*stream_id)(CUcontext context, CUstream stream, bool per_thread);
	uint32_t (*context_id)(CUcontext context);
	uint32_t (*context_device)(CUcontext context);
	int driver_version;
	bool initializing; /* InitializeInjection() runs */
};

extern const struct sim_uuid sim_table_uuid;
#define SIM_TABLE_UUID_BYTES "kprof sim table"

#endif
