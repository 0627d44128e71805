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

/*
 * What a call did: operations, and the bytes that it read or wrote at least, each once (a tensor
 * that it has twice, twice); 0: not known.
 */
struct flops_work {
	uint64_t flops, bytes;
	char type[32]; /* of the elements: "c10::BFloat16"; "": none whose size is known */
};
struct flops_inputs { /* JSON arrays: the attributes of an operator */
	const char *dims, *types, *strides, *values;
};

#define FLOPS_WORKS 1024 /* that are remembered */

struct flops {          /* all zero: empty */
	uint8_t *kinds; /* by description: kind + 1; 0: not looked up yet */
	size_t nr, cap;
	/* by kind: number of the operations + 1, by the strings of sizes and of values */
	struct map64 known[FLOPS_KINDS];
	struct flops_known { /* the same inputs of the same operator */
		uint32_t description, inputs[4];
		struct flops_work work;
	} * works; /* FLOPS_WORKS; NULL: none yet */
};

/* Of an operator with these inputs: JSON arrays, "Input Dims" and "Concrete Inputs". */
uint64_t flops_of_inputs(const char *name, const char *dims, const char *values);
/* The operations of a span at its end; 0: none, or not known. */
uint64_t flops__of(struct flops *f, const struct kprof_capture *t, const struct tl_span *s);
/*
 * The same with its bytes. *out is valid until the next call; NULL: it has none, or they are not
 * known. -ENOMEM.
 */
int flops__work(struct flops *f, const struct kprof_capture *t, const struct tl_span *s,
		const struct flops_work **out);
struct flops_work flops_work_of(const char *name, const struct flops_inputs *in);
/* Is there a formula for such spans? */
bool flops__counts(struct flops *f, const struct tl_span *s);
void flops__free(struct flops *f);

#endif
