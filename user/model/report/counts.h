/* SPDX-License-Identifier: BSD-2-Clause */
/* What the spans of each row had of each counter, while they are streamed. */
#ifndef KPROF_REPORT_COUNTS_H
#define KPROF_REPORT_COUNTS_H

#include "kprof/counters.h"
#include "model/report/nested.h"
#include "model/timeline/timeline.h"

struct counts_thread;
struct counts { /* all zero: the capture has no counters */
	uint32_t nr;
	struct counts_thread *threads; /* by index */
	size_t nr_threads;
	struct nested rows[TL_MAX_COUNTERS];
};

/* -ENOMEM with the error set. The caller frees it, also after an error. */
int counts__new(const struct kprof_capture *t, struct counts *c);
void counts__free(struct counts *c);
/* For each span, in the order of a walk. -ENOMEM with the error set. */
int counts__begin(struct counts *c, uint32_t row, const struct tl_span *s);
/* Adds what the span that ends had to the row's sums, one for each counter. */
void counts__end(struct counts *c, const struct kprof_capture *t, uint32_t row,
		 const struct tl_span *s, struct kprof_count *to);

#endif
