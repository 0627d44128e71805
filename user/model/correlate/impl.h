/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of struct correlate. read.c reads activities and calls and runs the later steps:
 * link.c links calls and activities, walk.c finds the spans and operators of calls, rows.c assigns
 * overlapping activities and annotations to lanes, collective.c keeps what collectives communicate.
 * correlate.c answers queries.
 */
#ifndef KPROF_CORRELATE_IMPL_H
#define KPROF_CORRELATE_IMPL_H

#include "model/correlate/correlate.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/map64.h"
#include "util/util.h"

/* Rows of all devices and processes. Activities of further rows get the row CORRELATE_NONE. */
#define CORRELATE_MAX_ROWS (1u << 14)

struct corr_thread {        /* by the thread's index */
	uint32_t first, nr; /* range of its calls in by_thread */
	uint32_t next;      /* where the next of them goes, while they are collected */
};

/* Flag in types[], beside the type: a call that waits for the device. */
#define CALL_WAITS 0x80

/* A call of a collective that launched work. */
struct corr_collective {
	uint32_t op;        /* span id */
	uint32_t first, nr; /* its attributes in collective_attrs */
};

struct correlate {
	struct kprof_capture *t;
	/* recorded within annotations (--within): all, or some processes of a merged one */
	bool within;
	struct map64 within_pids;
	struct corr_counts counts;
	/* enum kprof_activity, by id of the event description - 1; flag CALL_WAITS. */
	uint8_t *types;
	struct bulk calls;       /* struct corr_call */
	struct bulk acts;        /* struct corr_act */
	struct vec rows;         /* struct corr_row */
	struct map64 row_by_key; /* index + 1, by the stream and the number of (pid, device) */
	struct map64 devices;    /* number of (pid, device) + 1, by pid and device */
	uint64_t nr_devices;
	/* uint32_t: calls by thread, then start time; an outer call before the inner one. */
	struct bulk by_thread;
	struct corr_thread *threads;
	struct bulk by_row;  /* uint32_t: activities by row, then start time */
	struct bulk matches; /* uint32_t: calls of spans, in the order in which the spans end */
	size_t cursor;       /* next index in matches for correlate__of_span() */
	struct bulk
		annotations; /* struct corr_annotation; sorted at last by row, then start time */
	struct bulk collectives;      /* struct corr_collective; sorted at last by op */
	struct bulk collective_attrs; /* struct store_attr */
};

static inline struct corr_call *corr_call_at(const struct correlate *c, uint32_t i)
{
	return bulk__at(&c->calls, i);
}

static inline struct corr_act *corr_act_at(const struct correlate *c, uint32_t i)
{
	return bulk__at(&c->acts, i);
}

static inline uint32_t corr_number_at(const struct bulk *numbers, size_t i)
{
	return *(const uint32_t *)bulk__at(numbers, i);
}

/*
 * Whether two names differ only in their suffixes: "cudaLaunchKernel_v7000" and
 * "cudaLaunchKernel_ptsz" are both cudaLaunchKernel.
 */
bool corr_same_function(const char *a, const char *b);
/* Appends an element, which is uninitialized; NULL with the error set. */
void *correlate__push(struct bulk *b);
/* The error that there is no memory for nr device activities. */
int correlate__no_memory(size_t nr);
/* Sorts calls and activities, and links them. */
int correlate__link(struct correlate *c);
/*
 * Of a recording within annotations (--within), the work that was launched elsewhere is not shown.
 * To be called when the spans of calls are known.
 */
int correlate__leave_out(struct correlate *c);
/* Second pass: finds the spans of calls, the operators around them, and annotations. */
int correlate__walk_spans(struct correlate *c);
/* Keeps what a span that launched work says of a collective, if it is a call of one. */
int correlate__keep_collective(struct correlate *c, const struct tl_span *s);
int correlate__sort_collectives(struct correlate *c);
/* Assigns the activities and annotations of every row to lanes. */
int correlate__lay_out(struct correlate *c);

#endif
