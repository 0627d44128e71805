/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Total times where spans of one row lie inside each other. Each moment counts once: in the
 * outermost span whose duration is known. That is not always the outermost of all, and is known
 * only when the spans around it have ended too.
 */
#ifndef KPROF_REPORT_NESTED_H
#define KPROF_REPORT_NESTED_H

#include "model/timeline/timeline.h"
#include "util/map64.h"
#include "util/util.h"

struct nested {                 /* all zero: empty */
	struct map64 innermost; /* level + 1 of the innermost open span, by thread << 32 | row */
	struct vec levels;      /* struct nested_level; the free ones are a list */
	uint32_t free;          /* level + 1 */
};

/* For each span of the row, in the order of the thread. -ENOMEM with the error set. */
int nested__begin(struct nested *n, uint32_t row, const struct tl_span *s);
/* How much the span that ends adds to the row's total, itself or with what is inside of it. */
uint64_t nested__end(struct nested *n, uint32_t row, const struct tl_span *s);
/* The same where not the duration counts, but a value that may be known or not. */
uint64_t nested__end_value(struct nested *n, uint32_t row, const struct tl_span *s, bool known,
			   uint64_t value);
/* Whether, after the end of a span, another one of the row is open around it. */
bool nested__is_open(const struct nested *n, uint32_t row, const struct tl_span *s);
void nested__free(struct nested *n);

#endif
