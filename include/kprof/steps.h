/* SPDX-License-Identifier: BSD-2-Clause */
/* What tables by step say of each step beside the rows (kprof.h). Times are in nanoseconds. */
#ifndef KPROF_STEPS_H
#define KPROF_STEPS_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A step is an outlier if it took longer than the median of its process's steps by more than
 * KPROF_STEP_OUTLIER_MADS times 1.4826 MAD (the median of the distances from the median; times
 * 1.4826 it is the standard deviation of a normal distribution) and by more than
 * KPROF_STEP_OUTLIER_LEAST of the median. Only steps that were seen from begin to end count, and
 * with fewer than KPROF_STEP_OUTLIER_STEPS of them nothing is an outlier.
 */
#define KPROF_STEP_OUTLIER_MADS 5
#define KPROF_STEP_OUTLIER_LEAST 0.1
#define KPROF_STEP_OUTLIER_STEPS 5

/* What a part of a step's time went to. */
enum kprof_step_what {
	KPROF_STEP_OPERATOR,   /* self time, on all threads of the process */
	KPROF_STEP_CALL,       /* of a device's runtime: the same */
	KPROF_STEP_ANNOTATION, /* the same */
	KPROF_STEP_WAIT,       /* of the thread that has the steps, whatever it was in */
	KPROF_STEP_DEVICE,     /* on a device: a kernel, a copy; each by itself */
	KPROF_STEP_REST, /* of the thread that has the steps, in none of the first three; no name */
};
/* In words: "operator", "wait". */
const char *kprof_step_what_name(enum kprof_step_what what);

/* What took longer in an outlier than in the median step. */
struct kprof_step_difference {
	enum kprof_step_what what;
	/* A number at the end of an annotation's name is shown as N, whatever it was. */
	const char *name;
	uint64_t ns;        /* in this step */
	uint64_t median_ns; /* the median of the process's steps */
};

/* Of a row of a table by step: kprof_row.in_step. Lives as long as the result. */
struct kprof_step_info {
	double of_median;    /* its duration as a share of median_ns; 0: there is no median */
	uint64_t median_ns;  /* of the durations of its process's steps */
	uint64_t mad_ns;     /* the median of their distances from that */
	uint64_t wait_ns;    /* how long the thread that has the steps waited in it */
	bool waits_recorded; /* false: wait_ns is unknown */
	bool outlier;
	/*
	 * Of an outlier: the largest differences, that each explain at least 5 % of what it took
	 * longer. Those of kinds may be about the same time: an operator, and a wait in it.
	 */
	const struct kprof_step_difference *differences;
	size_t nr_differences;
};
#define KPROF_STEP_DIFFERENCES 5 /* at most */

#ifdef __cplusplus
}
#endif

#endif
