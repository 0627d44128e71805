/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a table. result.c chooses and makes those of spans, device.c those of devices,
 * idle.c that of gaps, samples.c those of samples; rows.c is what all of them count into.
 */
#ifndef KPROF_REPORT_IMPL_H
#define KPROF_REPORT_IMPL_H

#include "kprof.h"
#include "model/report/groups.h"
#include "model/timeline/timeline.h"

struct entry {
	struct kprof_row row;
	size_t order; /* of creation: decides between rows that are alike in all else */
};

struct kprof_result {
	struct entry *entries;
	size_t nr, cap;
	uint64_t self_total_ns;
	bool of_samples;
	struct groups groups; /* by operator: owns the names */
	char **names;         /* otherwise: owned here */
	size_t nr_names, cap_names;
};

/* So many rows at once, all zero. */
int result__alloc(struct kprof_result *r, size_t nr);
/*
 * A new row of this name, which it takes (NULL: no memory for it); valid until the next. NULL with
 * the error set.
 */
struct kprof_row *result__row(struct kprof_result *r, char *name);
/* Something that took this long, all of it its own time. */
void result__count(struct kprof_row *row, uint64_t duration_ns);
/* outermost: not inside a span of the same row. */
void result__count_span(struct kprof_row *row, const struct tl_span *s, bool outermost);

/* Rows of all threads, by index. */
int result__thread_rows(struct kprof_result *r, struct timeline *t);

/* Whether there are spans to make tables of operators and threads of. */
bool result__has_op_spans(const struct timeline *t);
int result__by_samples(struct kprof_result *r, struct timeline *t,
		       const struct kprof_result_opts *opts);
int result__by_kernel(struct kprof_result *r, struct timeline *t);
int result__by_api(struct kprof_result *r, struct timeline *t);
int result__by_stream(struct kprof_result *r, struct timeline *t);
int result__by_memcpy(struct kprof_result *r, struct timeline *t);
int result__by_idle(struct kprof_result *r, struct timeline *t);

#endif
