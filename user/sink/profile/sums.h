/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples added up by thread and stack, for formats that have a number for each stack. */
#ifndef KPROF_SINK_PROFILE_SUMS_H
#define KPROF_SINK_PROFILE_SUMS_H

#include "kprof.h"
#include "model/stacks/stacks.h"
#include "util/map64.h"

enum sum_variant {
	SUM_INCOMPLETE = 1,
	SUM_OFF_CPU = 2,
	SUM_GIL = 4,
	SUM_GIL_WAIT = 8,
	SUM_RUN_QUEUE = 16, /* with SUM_OFF_CPU: only a CPU was missing */
	SUM_VARIANTS = 32
};

struct sum { /* the samples of one thread with one stack */
	uint64_t samples, weight_ns;
	uint32_t thread, stack;
	unsigned int variant;
	const char *reason; /* of all of its waits; NULL: they differ, or are none */
};

struct sums { /* all zero, but for t: empty */
	struct kprof_capture *t;
	struct sum *list; /* by first appearance */
	size_t nr, cap;
	struct map64 by_stack[SUM_VARIANTS]; /* number of the sum + 1, by thread << 32 | stack */
	struct map64 pids;                   /* 1: wanted; empty: all are */
	struct map64 by_thread;              /* 1: wanted, 2: not, by the thread's index */
};

/* Adds the samples, or the waits if the capture shows them, of the processes that opts names. */
int sums__add(struct sums *s, const struct kprof_export_opts *opts);
/* What stands for a wait in a stack: "[futex]". */
#define SUM_NOTE_BYTES 96
const char *sum_note(const struct sum *sum, char note[SUM_NOTE_BYTES]);
void sums__free(struct sums *s);

#endif
