/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by records.c, which takes batches apart, refs.c, which keeps what later records refer to,
 * and activity.c, which writes what a device did and the calls that caused it.
 */
#ifndef KPROF_CAPTURE_AGENT_RECORDS_PRIV_H
#define KPROF_CAPTURE_AGENT_RECORDS_PRIV_H

#include "capture/agent/clock.h"
#include "capture/agent/records.h"
#include "kprof/agent.h"
#include "util/map64.h"

/* Keys of attributes, with their names, each of which is interned once. */
#define AGENT_KEYS(KEY)                                            \
	KEY(GRID, "grid")                                          \
	KEY(BLOCK, "block")                                        \
	KEY(REGISTERS, "registers per thread")                     \
	KEY(SHARED, "shared memory")                               \
	KEY(SHARED_CONFIG, "shared memory configured")             \
	KEY(LOCAL, "local memory per thread")                      \
	KEY(PRIORITY, "priority")                                  \
	KEY(CHANNEL, "channel")                                    \
	KEY(CHANNEL_TYPE, "channel_type")                          \
	KEY(GRAPH, "graph id")                                     \
	KEY(GRAPH_NODE, "graph node id")                           \
	KEY(BYTES, "bytes")                                        \
	KEY(BANDWIDTH, "memory bandwidth (GB/s)")                  \
	KEY(VALUE, "value")                                        \
	KEY(FROM_DEVICE, "fromDevice")                             \
	KEY(IN_DEVICE, "inDevice")                                 \
	KEY(TO_DEVICE, "toDevice")                                 \
	KEY(FROM_CONTEXT, "fromContext")                           \
	KEY(IN_CONTEXT, "inContext")                               \
	KEY(TO_CONTEXT, "toContext")                               \
	KEY(EVENT, "event_id")                                     \
	KEY(SYNC_KIND, "cuda_sync_kind")                           \
	KEY(WAIT_STREAM, "wait_on_stream")                         \
	KEY(WAIT_CORRELATION, "wait_on_cuda_event_record_corr_id") \
	KEY(WAIT_EVENT, "wait_on_cuda_event_id")                   \
	KEY(CBID, "cbid")                                          \
	KEY(ERROR, "error")                                        \
	KEY(RESULT, "result")                                      \
	/* CUPTI's kinds of external ids, in order */              \
	KEY(EXTERNAL, "external id (unknown)")                     \
	KEY(EXTERNAL_OPENACC, "external id (openacc)")             \
	KEY(EXTERNAL_0, "external id (custom0)")                   \
	KEY(EXTERNAL_1, "external id (custom1)")                   \
	KEY(EXTERNAL_2, "external id (custom2)")

#define AGENT_KEY(key, name) AGENT_KEY_##key,
enum agent_key { AGENT_KEYS(AGENT_KEY) AGENT_KEY_NR };

#define AGENT_EXTERNAL_KINDS 5 /* CUpti_ExternalCorrelationKind, from 1 on */
/* calls whose external ids are kept for what they have launched; then all are forgotten */
#define AGENT_EXTERNALS (1u << 20)

#define AGENT_COPY_KINDS 11
#define AGENT_MEMORIES 8
#define AGENT_DEVICES 64
#define AGENT_CONTEXTS 1024
/* allocations whose size is kept, for releases that do not report it */
#define AGENT_ALLOCATIONS (1u << 20)

struct agent_text {      /* a name that the agent has reported */
	uint32_t string; /* string id of the whole name; 0: not interned yet */
	uint32_t call;   /* the same of what is shown of it as a call's name */
	char text[];
};

struct agent_inputs { /* what operators were called with */
	uint32_t nr;
	uint64_t words[];
};

struct agent_event { /* the last two calls that recorded a device's event */
	uint64_t correlation, before;
	uint32_t stream, before_stream;
};

struct agent_records {
	struct store_writer *store;
	struct agent_records_ops ops;
	uint32_t pid;
	uint64_t start_ns, end_ns;
	struct map64 texts;     /* id → struct agent_text *, owned */
	struct map64 externals; /* correlation × AGENT_EXTERNAL_KINDS + kind - 1 → index + 1 */
	uint64_t *external_ids;
	size_t nr_externals, cap_externals;
	struct map64 inputs;    /* id → struct agent_inputs *, owned */
	uint64_t text_bytes;    /* of both */
	struct map64 allocated; /* address → bytes of allocated device memory */
	uint32_t nr_allocated;
	struct agent_used {
		uint32_t device;
		int64_t bytes; /* bytes allocated minus bytes released since the recording began */
	} used[AGENT_DEVICES];
	uint32_t nr_used;
	uint32_t used_name; /* string id; 0: not interned yet */
	/* Device + 1 by context; 0: not known. Ids of contexts count from 1 in each process. */
	uint32_t device_of[AGENT_CONTEXTS];
	struct map64 event_at; /* context and event → index + 1 into events[] */
	struct agent_event *events;
	size_t nr_events, cap_events;
	uint32_t metas;
	struct agent_clock clock;
	struct agent_records_count count;
	uint32_t keys[AGENT_KEY_NR];           /* string ids; 0: not interned yet */
	uint32_t metrics[KPROF_AGENT_METRICS]; /* the same, by metric */
	uint32_t copies[AGENT_COPY_KINDS + 1][AGENT_MEMORIES][AGENT_MEMORIES]; /* last: sets */
};

/* refs.c: a name as the agent reported it; NULL: it was lost. */
struct agent_text *agent_records__text(struct agent_records *r, uint32_t id);
int agent_records__on_name(struct agent_records *r, const struct kprof_agent_name *e);
int agent_records__on_inputs(struct agent_records *r, const struct kprof_agent_inputs *e);
int agent_records__on_external(struct agent_records *r, const struct kprof_agent_external *e);
/* The id of this kind that the program had pushed when it made the call; NULL: none is known. */
const uint64_t *agent_records__external(const struct agent_records *r, uint64_t correlation,
					uint32_t kind);
int agent_records__on_event(struct agent_records *r, const struct kprof_agent_event *e);
/* The string id of a name. The text is NULL where the name was lost. */
uint32_t agent_records__name(struct agent_records *r, uint32_t id);
/* The same for a call: without the suffixes that its runtime does not show. */
uint32_t agent_records__call_name(struct agent_records *r, uint32_t id);
const struct agent_event *agent_records__event(struct agent_records *r, uint32_t context,
					       uint32_t event);

/* Notes which device a context is of. */
static inline void agent_records__note_context(struct agent_records *r, uint32_t context,
					       uint32_t device)
{
	if (context < AGENT_CONTEXTS && device != KPROF_AGENT_DEVICE_OF_CONTEXT)
		r->device_of[context] = device + 1;
}

/* refs.c: passes the entries of a thread on. */
int agent_records__on_spans(struct agent_records *r, const struct kprof_agent_spans *e);

/* activity.c: writes records, which are complete and aligned. */
int agent_activity__plain(struct agent_records *r, const struct kprof_agent_activity *e);
int agent_activity__kernel(struct agent_records *r, const struct kprof_agent_kernel *e);
int agent_activity__copy(struct agent_records *r, const struct kprof_agent_copy *e);
int agent_activity__sync(struct agent_records *r, const struct kprof_agent_sync *e);
int agent_activity__event(struct agent_records *r, const struct kprof_agent_event *e);
int agent_activity__alloc(struct agent_records *r, const struct kprof_agent_alloc *e);
int agent_activity__api(struct agent_records *r, const struct kprof_agent_api *e);
int agent_activity__range(struct agent_records *r, const struct kprof_agent_range *e);
/* Writes an activity whose times and type are possible, and that lies in the window. */
int agent_activity__put(struct agent_records *r, const struct kprof_agent_activity *e,
			uint32_t name, const struct store_attr *list, uint32_t nr);

#endif
