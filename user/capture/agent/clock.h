/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a device's clock ran against CLOCK_MONOTONIC, from pairs of readings: recorded in the
 * capture's metadata. The agent has converted the times in its records; this says how far that can
 * be relied on.
 */
#ifndef KPROF_CAPTURE_AGENT_CLOCK_H
#define KPROF_CAPTURE_AGENT_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "kprof/agent.h"

#define AGENT_CLOCK_PAIRS 1024 /* pairs kept; when there are more, every second one is dropped */

struct agent_clock { /* all zero: no pairs yet */
	struct kprof_agent_clock_pair pairs[AGENT_CLOCK_PAIRS];
	size_t nr;
	uint64_t step; /* one pair in so many is kept, a power of two; 0: each */
	uint64_t seen;
};

struct agent_clock_fit {
	uint64_t pairs;         /* pairs seen */
	double drift_ppm;       /* how much faster than CLOCK_MONOTONIC the device's clock runs */
	double residual_rms_ns; /* distance of the pairs from the straight line through them */
	double residual_max_ns;
	uint64_t width_min_ns, width_max_ns; /* time between the two readings that bracket a pair */
};

void agent_clock__add(struct agent_clock *c, const struct kprof_agent_clock_pair *pair);
/* Fits a straight line by least squares. With fewer than two pairs the drift is 0. */
void agent_clock__fit(const struct agent_clock *c, struct agent_clock_fit *out);

#endif
