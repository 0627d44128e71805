/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every user of the span engine may rely on, checked while it runs: ends belong to begins, the
 * times of a thread never go back, nothing is told before the window. Shared by the unit tests and
 * the fuzzer.
 */
#ifndef KPROF_TESTS_SPANS_FIXTURE_H
#define KPROF_TESTS_SPANS_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/span/spans.h"
#include "kprof.h"

#define FIXTURE_THREADS 8
#define FIXTURE_WORDS 3     /* of counters at an event, where there are any */
#define FIXTURE_NO_REGION 1 /* the address 1 MiB below which on_region() answers "not known" */

struct told { /* one span as the engine told of it */
	uint64_t start_ns, end_ns;
	uint32_t description, depth, flags;
	uint32_t probe, site;
	bool ended;
	bool has_result;
	uint64_t result;
	bool counted;
	uint64_t at_begin, at_end; /* the last of the words of counters */
};

struct fixture {
	struct spans *spans;
	uint64_t window_ns;
	struct told *told; /* in order of begin */
	size_t nr, cap;
	size_t *open[FIXTURE_THREADS]; /* indexes into told[] */
	size_t depth[FIXTURE_THREADS], open_cap[FIXTURE_THREADS];
	uint64_t last_ns[FIXTURE_THREADS];
	uint64_t begins, exact, closed;
	uint64_t region_questions;
	uint64_t stack_bytes; /* mappings are this large, and aligned to it */
	const char *broken;   /* the first promise that was broken */
};

static inline void fixture_broken(struct fixture *f, const char *description)
{
	if (!f->broken)
		f->broken = description;
}

static inline void *fixture_room(void *data, size_t *cap, size_t nr, size_t size)
{
	if (nr < *cap)
		return data;
	*cap = *cap ? *cap * 2 : 64;
	data = realloc(data, *cap * size);
	if (!data)
		abort();
	return data;
}

static inline int fixture_begin(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
				uint64_t *number)
{
	struct fixture *f = ctx;
	size_t depth = f->depth[thread];

	if (time_ns < f->last_ns[thread])
		fixture_broken(f, "a begin goes back in time");
	if (time_ns < f->window_ns)
		fixture_broken(f, "a begin before the window");
	f->last_ns[thread] = time_ns;
	f->told = fixture_room(f->told, &f->cap, f->nr, sizeof(*f->told));
	f->open[thread] = fixture_room(f->open[thread], &f->open_cap[thread], depth,
				       sizeof(*f->open[thread]));
	f->open[thread][f->depth[thread]++] = f->nr;
	f->told[f->nr++] = (struct told){
		.start_ns = time_ns, .description = description, .depth = (uint32_t)depth};
	f->begins++;
	*number = f->nr;
	return 0;
}

static inline int fixture_end(void *ctx, const struct span_end *end)
{
	uint32_t thread = end->thread, flags = end->flags;
	uint64_t time_ns = end->time_ns;
	struct fixture *f = ctx;
	struct told *t;

	if (!f->depth[thread]) {
		fixture_broken(f, "an end without a begin");
		return 0;
	}
	if (time_ns < f->last_ns[thread])
		fixture_broken(f, "an end goes back in time");
	f->last_ns[thread] = time_ns;
	t = &f->told[f->open[thread][--f->depth[thread]]];
	if (end->number != (uint64_t)(t - f->told) + 1)
		fixture_broken(f, "an end is said to be another span's");
	if (end->has_result && flags & KPROF_EVENT_CLOSED)
		fixture_broken(f, "a result where no end was seen");
	t->counted = end->at_begin && end->at_end;
	if (!end->at_begin != !end->at_end || (t->counted && flags & KPROF_EVENT_CLOSED))
		fixture_broken(f, "counters where begin and end were not both seen");
	if (t->counted) {
		t->at_begin = end->at_begin[FIXTURE_WORDS - 1];
		t->at_end = end->at_end[FIXTURE_WORDS - 1];
	}
	t->has_result = end->has_result;
	t->result = end->result;
	t->probe = end->probe;
	t->site = end->site;
	t->end_ns = time_ns;
	t->flags = flags;
	t->ended = true;
	if (flags & KPROF_EVENT_CLOSED)
		f->closed++;
	else
		f->exact++;
	return 0;
}

/* Stacks lie in mappings of stack_bytes each; the lowest MiB is not mapped. */
static inline int fixture_region(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi)
{
	struct fixture *f = ctx;

	f->region_questions++;
	if (sp < FIXTURE_NO_REGION << 20)
		return -1;
	*lo = sp / f->stack_bytes * f->stack_bytes;
	*hi = *lo + f->stack_bytes;
	return 0;
}

static inline void fixture_start(struct fixture *f, uint64_t stack_bytes)
{
	struct spans_ops ops = {
		.ctx = f, .begin = fixture_begin, .end = fixture_end, .region = fixture_region};

	memset(f, 0, sizeof(*f));
	f->stack_bytes = stack_bytes;
	if (spans__new(&ops, &f->spans))
		abort();
}

static inline void fixture_open(struct fixture *f, uint64_t window_ns)
{
	f->window_ns = window_ns;
	spans__open_window(f->spans, window_ns);
}

/* What the engine counted, against what it told. */
static inline void fixture_check_counts(struct fixture *f)
{
	uint64_t begins = 0, exact = 0, closed = 0, open = 0;

	for (uint32_t i = 0; i < SPANS_MAX_SOURCES; i++) {
		const struct spans_count *c = spans__count(f->spans, i);

		begins += c->begins;
		exact += c->ends_exact;
		closed += c->ends_closed;
	}
	for (int i = 0; i < FIXTURE_THREADS; i++)
		open += f->depth[i];
	if (begins != f->begins || exact != f->exact || closed != f->closed)
		fixture_broken(f, "the counts are not what was told");
	if (begins != exact + closed + open)
		fixture_broken(f, "begins are not exact + closed + open");
}

static inline void fixture_stop(struct fixture *f)
{
	spans__free(f->spans);
	free(f->told);
	for (int i = 0; i < FIXTURE_THREADS; i++)
		free(f->open[i]);
}

#endif
