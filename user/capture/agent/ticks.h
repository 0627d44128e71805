/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the processor's time stamp counter to CLOCK_MONOTONIC: how fast the counter runs, measured
 * over the last second or two, as the kernel steers its clock.
 */
#ifndef KPROF_CAPTURE_AGENT_TICKS_H
#define KPROF_CAPTURE_AGENT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

struct agent_ticks { /* all zero: not in use */
	struct agent_ticks_pair {
		uint64_t ns, ticks;
	} before, last;
};

/* Is the counter the kernel's own clock, and so the same on all processors, and steady? */
bool agent_ticks__usable(void);
/* To be called at the beginning, and then now and then. */
void agent_ticks__measure(struct agent_ticks *t);
/* The time of this many ticks, where base_ticks was at base_ns. */
uint64_t agent_ticks__ns(struct agent_ticks *t, uint64_t ticks, uint64_t base_ns,
			 uint64_t base_ticks);

#endif
