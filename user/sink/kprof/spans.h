/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of spans when a capture is copied: a copy that leaves out a process numbers the spans of
 * the others anew. Details of a span come before its end, so that only open ones are remembered.
 */
#ifndef KPROF_SINK_KPROF_SPANS_H
#define KPROF_SINK_KPROF_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/map64.h"

struct kprof_spans {    /* all zero: at the beginning */
	bool renumber;  /* false: nothing is left out, numbers stay */
	uint64_t begun; /* in the source */
	uint64_t copied;
	struct map64 open; /* number in the source → number in the copy */
	struct spans_stack {
		uint64_t *open; /* numbers in the source, innermost last */
		size_t nr, cap;
	} * stacks; /* by index of the thread in the copy */
	size_t nr_stacks, cap_stacks;
};

/* The source's next span begins, on a thread of the copy. -ENOMEM with the error set. */
int kprof_spans__begin(struct kprof_spans *s, uint32_t thread);
/* … on a thread that is left out. */
void kprof_spans__leave_out(struct kprof_spans *s);
void kprof_spans__end(struct kprof_spans *s, uint32_t thread);
/* In the copy; 0: left out, or over. */
uint64_t kprof_spans__number(struct kprof_spans *s, uint64_t in_source);
void kprof_spans__free(struct kprof_spans *s);

#endif
