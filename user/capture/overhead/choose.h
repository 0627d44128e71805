/* SPDX-License-Identifier: BSD-2-Clause */
/* Which probes to give up: those that cost most and tell least. It only computes. */
#ifndef KPROF_CAPTURE_OVERHEAD_CHOOSE_H
#define KPROF_CAPTURE_OVERHEAD_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choose_probe {
	uint32_t probe;
	uint64_t hits;            /* what it costs goes by these … */
	uint64_t calls;           /* … of which so many are calls that are recorded */
	uint64_t timed, timed_ns; /* of how many the length is known, and their sum */
	uint64_t nr_short;        /* how many of these were short */
	bool chosen;
};

/* A call that lasts longer than so many times what recording it costs tells something. */
#define CHOOSE_SHORT 20

/*
 * Chooses among the probes those of which half of the calls or more are short, the dearest first,
 * until they cost at least goal_ns in all; of a cost of hit_ns a hit. (Not by the mean: a call that
 * loses its CPU lasts for ever.) Leaves out those that cost less than a thousandth of that. Sorts
 * the probes. Returns how many were chosen; they come first. *all_ns: what all that are short cost.
 */
size_t choose_probes(struct choose_probe *probes, size_t nr, double hit_ns, double goal_ns,
		     double *all_ns);

#endif
