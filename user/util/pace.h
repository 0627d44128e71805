/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For work in a thread of its own that is not urgent: so much CPU time a second, and not more. The
 * thread says where it may rest, which costs nearly nothing where it need not. Others change the
 * rate at any time.
 */
#ifndef KPROF_UTIL_PACE_H
#define KPROF_UTIL_PACE_H

#include <stdatomic.h>
#include <stdint.h>

struct pace { /* all zero: the work is not held back */
	/* ns of CPU time a second; 0: as much as there is */
	atomic_uint_fast64_t ns_a_second;
	/*
	 * so much more CPU time than usually may be used at once in the first two seconds; below 0:
	 * so much less
	 */
	int64_t at_once_ns;
	/* once it is true, nobody begins to rest, nor goes on after pace_wake() */
	atomic_bool *stop;
	atomic_uint_fast64_t used_ns; /* CPU time of the work so far, while it had a rate */
	atomic_uint woken;
};

/* From now on, the calling thread's work goes by it, which stays where it is. NULL: by none. */
void pace_begin(struct pace *p);
/* Where the calling thread may rest, and does if it has worked more than it may. */
void pace_rest(void);
/* The same after a piece of work that is worth looking at the clocks for. */
void pace_rest_now(void);
/* Whoever rests looks at once whether that is still to be; else once a second. */
void pace_wake(struct pace *p);

#endif
