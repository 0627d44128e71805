/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tables by collective say beside the rows (kprof.h). Times are in nanoseconds.
 *
 * A collective is matched when the work of all processes of its group is in the capture: by the
 * group's name and size, its number in the group, and its name. From when the last of them takes
 * part all communicate; the others have waited since they did, at most until their own work was
 * done (the root of a broadcast need not wait for anybody).
 */
#ifndef KPROF_COLLECTIVES_H
#define KPROF_COLLECTIVES_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a row of a table by collective: kprof_row.collective. Lives as long as the result. */
struct kprof_collective_info {
	uint32_t ranks;      /* processes of the group */
	uint64_t waited_ns;  /* in all of its calls, by all ranks together */
	uint64_t longest_ns; /* one rank, in one call */
	uint32_t last_rank;  /* the rank that came last most often … */
	uint64_t last_times; /* … in so many calls */
	uint64_t sized;      /* calls of which the bytes are known */
	double gb_per_s;     /* of those whose times are known, too; 0: of none */
};

/* Sums of a rank: of all matched collectives of a group. */
struct kprof_collective_rank {
	const char *group;
	uint32_t rank;
	pid_t pid;
	uint64_t calls, last; /* in how many it took part, in how many it came last */
	uint64_t waited_ns;   /* for others */
	uint64_t awaited_ns;  /* others together, in those in which it came last */
};
/* The i-th, by group and rank. -ENOENT: past the end. */
int kprof_result_collective_rank(const struct kprof_result *r, size_t i,
				 struct kprof_collective_rank *out);

/* One of the matched collectives. */
struct kprof_collective {
	const char *name, *group;
	uint64_t number;  /* in its group */
	uint64_t at_ns;   /* when the last rank came: since the begin of the recording */
	uint64_t took_ns; /* from then to the last end; 0: not known, as an end was not seen */
	/* the larger of what goes in and comes out of a rank; UINT64_MAX: not known */
	uint64_t bytes;
	uint64_t waited_ns, longest_ns; /* by all ranks, by one of them */
	uint32_t ranks, last_rank;
	pid_t last_pid;
};
#define KPROF_COLLECTIVES_MOST 1000 /* that are kept: those with the longest waits */
/* The i-th, by its longest wait. -ENOENT: past the end. */
int kprof_result_collective(const struct kprof_result *r, size_t i, struct kprof_collective *out);

/* Work of collectives in no row: other ranks' is not there, or it does not say whose it is. */
uint64_t kprof_result_unmatched(const struct kprof_result *r);

/*
 * How far times of different machines may be from the truth, at most: waits below that say nothing.
 * 0: one clock was recorded; UINT64_MAX: of a merged capture's clocks, that is not known.
 */
uint64_t kprof_result_clock_error_ns(const struct kprof_result *r);

#ifdef __cplusplus
}
#endif

#endif
