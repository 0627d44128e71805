/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: what each call of an operator had of cycles, page faults, … Which are recorded is said
 * by kprof_session_opts.counters, as names with commas in between. docs/counters.md has their
 * meaning.
 */
#ifndef KPROF_COUNTERS_H
#define KPROF_COUNTERS_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_counter {
	const char *name; /* as `perf list` has it: "page-faults" */
	const char *what; /* what it counts, and in which unit if not events */
	bool works;       /* this machine, and the caller's rights, allow it */
};
/* The i-th counter that has a name. -ENOENT: past the end. */
int kprof_counter_at(size_t i, struct kprof_counter *out);
/*
 * Whether these are names of counters, 8 at most: 0, or -EINVAL with the cause. A name may have
 * modifiers (":u": in user space, ":k": in the kernel); "r01c2" is an event of the processor by its
 * number.
 */
int kprof_counters_check(const char *names);

/* The i-th counter of a capture; NULL past the end. Lives as long as the capture. */
const char *kprof_capture_counter(const struct kprof_capture *c, size_t i);

/*
 * What the calls of a row had, in tables by operator and thread: of calls that ended exactly, lie
 * within the selected range, and have a value. Calls that are not among these are no zeros.
 */
struct kprof_count {
	uint64_t total; /* of calls inside each other, what happened counts once */
	uint64_t calls; /* how many have a value */
	/* Without what the calls inside of them had: where all of these have values, too. */
	uint64_t self, self_calls;
};
/* Of the i-th row. False: the table has no such row, or no such counter. */
bool kprof_result_count(const struct kprof_result *r, size_t i, size_t counter,
			struct kprof_count *out);

#ifdef __cplusplus
}
#endif

#endif
