/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of spans when a capture is copied. Details of a span precede its end, so only open spans
 * are remembered.
 */
#ifndef KPROF_SINK_KPROF_SPANS_H
#define KPROF_SINK_KPROF_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/map64.h"

struct kprof_spans {       /* all zero: at the beginning of the file */
	bool same;         /* all spans of one source are copied: their numbers stay */
	uint64_t begun;    /* spans begun so far in the source, also on threads that are left out */
	struct map64 open; /* number in the source → number in the copy */
	struct spans_stack {
		uint64_t *open; /* numbers in the source, innermost last */
		size_t nr, cap;
	} * stacks; /* by index of the thread in the source */
	size_t nr_stacks, cap_stacks;
};

/*
 * Call when the source's next span begins, which has this number in the copy. -ENOMEM with the
 * error set.
 */
int kprof_spans__begin(struct kprof_spans *s, uint32_t thread, uint64_t in_copy);
void kprof_spans__end(struct kprof_spans *s, uint32_t thread);
/* Call when the source's next span begins, which is not copied. */
void kprof_spans__pass(struct kprof_spans *s);
/* The number of an open span in the copy; 0: it is left out, or has ended. */
uint64_t kprof_spans__number(const struct kprof_spans *s, uint64_t in_source);
void kprof_spans__free(struct kprof_spans *s);

#endif
