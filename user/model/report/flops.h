/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many floating-point operations an operator does, from its recorded inputs, by the formulas of
 * torch.profiler (with_flops): two for each multiplication with addition of a matrix product or of
 * conv2d, one for each element of the first tensor of add and mul. Of other operators it has none.
 * One that is called by an operator of its own name does the same work, and has none, either.
 */
#ifndef KPROF_REPORT_FLOPS_H
#define KPROF_REPORT_FLOPS_H

#include "model/timeline/timeline.h"
#include "util/map64.h"

#define FLOPS_KINDS 9

struct flops {          /* all zero: empty */
	uint8_t *kinds; /* by description: kind + 1; 0: not looked up yet */
	size_t nr, cap;
	/* by kind: number of the operations + 1, by the strings of sizes and of values */
	struct map64 known[FLOPS_KINDS];
};

/* Of an operator with these inputs: JSON arrays, "Input Dims" and "Concrete Inputs". */
uint64_t flops_of_inputs(const char *name, const char *dims, const char *values);
/* The operations of a span at its end; 0: none, or not known. */
uint64_t flops__of(struct flops *f, const struct kprof_capture *t, const struct tl_span *s);
void flops__free(struct flops *f);

#endif
