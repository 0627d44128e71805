/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What operators were called from, in samples: for each row of a table the Python line and the
 * autograd node that most of its time belongs to.
 */
#ifndef KPROF_REPORT_CALLERS_H
#define KPROF_REPORT_CALLERS_H

#include "model/report/impl.h"

/* Where a stack is, from its outermost frame inwards; all 0: nowhere yet. */
struct caller {
	const struct tl_frame *python; /* innermost so far; NULL: none */
	const char *node; /* innermost autograd node: its class, not terminated; NULL: none */
	uint32_t node_length;
};

struct callers; /* NULL: none so far */

/* One frame further in. */
void caller_step(struct caller *c, const struct tl_frame *f);
/* So much of a row's total time was called from there. */
int callers__add(struct callers **all, uint32_t row, const struct caller *c, uint64_t ns);
/* Gives each row of r its callers. */
int callers__tell(struct callers *all, struct kprof_result *r);
void callers__free(struct callers *all);

#endif
