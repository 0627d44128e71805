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

enum agent_key { /* keys of attributes, each of which is interned once */
		 AGENT_KEY_GRID,
		 AGENT_KEY_BLOCK,
		 AGENT_KEY_REGISTERS,
		 AGENT_KEY_SHARED,
		 AGENT_KEY_SHARED_CONFIG,
		 AGENT_KEY_LOCAL,
		 AGENT_KEY_PRIORITY,
		 AGENT_KEY_GRAPH,
		 AGENT_KEY_GRAPH_NODE,
		 AGENT_KEY_BYTES,
		 AGENT_KEY_BANDWIDTH,
		 AGENT_KEY_VALUE,
		 AGENT_KEY_FROM_DEVICE,
		 AGENT_KEY_FROM_CONTEXT,
		 AGENT_KEY_TO_DEVICE,
		 AGENT_KEY_TO_CONTEXT,
		 AGENT_KEY_SYNC_KIND,
		 AGENT_KEY_WAIT_STREAM,
		 AGENT_KEY_WAIT_CORRELATION,
		 AGENT_KEY_WAIT_EVENT,
		 AGENT_KEY_CBID,
		 AGENT_KEY_ERROR,
		 AGENT_KEY_NR
};

#define AGENT_COPY_KINDS 11
#define AGENT_MEMORIES 8
#define AGENT_DEVICES 64
/* allocations whose size is kept, for releases that do not report it */
#define AGENT_ALLOCATIONS (1u << 20)

struct agent_text { /* a name that the agent has reported */
	uint32_t string;
	char text[];
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
	struct map64 texts; /* id → struct agent_text *, owned */
	uint64_t text_bytes;
	struct map64 allocated; /* address → bytes of allocated device memory */
	uint32_t nr_allocated;
	struct agent_used {
		uint32_t device;
		int64_t bytes; /* bytes allocated minus bytes released since the recording began */
	} used[AGENT_DEVICES];
	uint32_t nr_used;
	uint32_t used_name;    /* string id; 0: not interned yet */
	struct map64 event_at; /* context and event → index + 1 into events[] */
	struct agent_event *events;
	size_t nr_events, cap_events;
	uint32_t metas;
	struct agent_clock clock;
	struct agent_records_count count;
	uint32_t keys[AGENT_KEY_NR]; /* string ids; 0: not interned yet */
	uint32_t copies[AGENT_COPY_KINDS + 1][AGENT_MEMORIES][AGENT_MEMORIES]; /* last: sets */
};

/* refs.c: a name as the agent reported it; NULL: it was lost. */
const struct agent_text *agent_records__text(struct agent_records *r, uint32_t id);
int agent_records__on_name(struct agent_records *r, const struct kprof_agent_name *e);
int agent_records__on_event(struct agent_records *r, const struct kprof_agent_event *e);
/* The string id of a name. The text is NULL where the name was lost. */
uint32_t agent_records__name(struct agent_records *r, uint32_t id);
const struct agent_event *agent_records__event(struct agent_records *r, uint32_t context,
					       uint32_t event);

/* activity.c: writes records, which are complete and aligned. */
int agent_activity__plain(struct agent_records *r, const struct kprof_agent_activity *e);
int agent_activity__kernel(struct agent_records *r, const struct kprof_agent_kernel *e);
int agent_activity__copy(struct agent_records *r, const struct kprof_agent_copy *e);
int agent_activity__sync(struct agent_records *r, const struct kprof_agent_sync *e);
int agent_activity__alloc(struct agent_records *r, const struct kprof_agent_alloc *e);
int agent_activity__api(struct agent_records *r, const struct kprof_agent_api *e);

#endif
