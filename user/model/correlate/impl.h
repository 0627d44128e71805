/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of struct correlate: read.c reads activities and calls and has the others put them
 * together: link.c links calls and activities, walk.c finds the spans and operators of calls,
 * rows.c puts activities and annotations side by side where they overlap. correlate.c answers what
 * is asked.
 */
#ifndef KPROF_CORRELATE_IMPL_H
#define KPROF_CORRELATE_IMPL_H

#include "model/correlate/correlate.h"
#include "util/map64.h"
#include "util/util.h"

/* Streams of all devices and processes; more are taken for CORRELATE_NONE. */
#define CORRELATE_MAX_ROWS (1u << 14)

struct corr_thread {        /* by index */
	uint32_t first, nr; /* its calls in by_thread */
};

/* In types[], beside the type: a call that waits for the device. */
#define CALL_WAITS 0x80

struct correlate {
	struct timeline *t;
	pid_t pid;
	struct corr_counts counts;
	uint8_t *types;          /* enum kprof_activity, by what's id - 1; CALL_WAITS */
	struct vec calls;        /* struct corr_call */
	struct vec acts;         /* struct corr_act */
	struct vec rows;         /* struct corr_row */
	struct map64 row_by_key; /* index + 1, by a number of (pid, device) and the stream */
	struct map64 devices;    /* that number + 1, by pid and device */
	uint64_t nr_devices;
	uint32_t *by_thread; /* calls by thread, then start, the outer one first */
	struct corr_thread *threads;
	uint32_t *by_row;       /* activities by row, then start */
	struct vec matches;     /* uint32_t: calls of spans, in the order in which the spans end */
	size_t cursor;          /* in matches */
	struct vec annotations; /* struct corr_annotation; sorted by row, then start, in the end */
};

static inline struct corr_call *corr_call_at(const struct correlate *c, uint32_t i)
{
	return (struct corr_call *)c->calls.data + i;
}

static inline struct corr_act *corr_act_at(const struct correlate *c, uint32_t i)
{
	return (struct corr_act *)c->acts.data + i;
}

/* A new element, not set; NULL with the error set. */
void *correlate__push(struct vec *v, size_t size);
/* Orders calls and activities, and links them. */
int correlate__link(struct correlate *c);
/* Second pass: spans of calls, operators around them, annotations. */
int correlate__walk_spans(struct correlate *c);
/* Lanes of every row. */
int correlate__lay_out(struct correlate *c);

#endif
