/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where operators were called from, according to samples: for each row of a table, the Python line
 * and the autograd node that account for most of its time.
 */
#ifndef KPROF_REPORT_CALLERS_H
#define KPROF_REPORT_CALLERS_H

#include "model/report/impl.h"

/*
 * The callers met so far when a stack is followed from its outermost frame inwards; all 0: none
 * yet.
 */
struct caller {
	const struct tl_frame *python; /* innermost Python frame so far; NULL: none */
	const char *node; /* innermost autograd node: its class, not terminated; NULL: none */
	uint32_t node_length;
};

struct callers; /* all callers, by row; NULL: none so far */

/* Takes in the next frame inwards. */
void caller_step(struct caller *c, const struct tl_frame *f);
/* Adds ns of a row's total time to this caller. */
int callers__add(struct callers **all, uint32_t row, const struct caller *c, uint64_t ns);
/* Gives each row of r its callers. */
int callers__tell(struct callers *all, struct kprof_result *r);
void callers__free(struct callers *all);

#endif
