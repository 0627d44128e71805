// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/clock.h"

#include <math.h>
#include <string.h>

void agent_clock__add(struct agent_clock *c, const struct kprof_agent_clock_pair *pair)
{
	if (!c->step)
		c->step = 1;
	if (c->seen++ % c->step)
		return;
	if (c->nr == AGENT_CLOCK_PAIRS) {
		for (size_t i = 0; i < c->nr / 2; i++)
			c->pairs[i] = c->pairs[i * 2];
		c->nr /= 2;
		c->step *= 2;
	}
	c->pairs[c->nr++] = *pair;
}

/* Time of a pair as difference to the first pair, so that a double can hold it exactly. */
static double mono(const struct agent_clock *c, size_t i)
{
	return (double)(int64_t)(c->pairs[i].mono_ns - c->pairs[0].mono_ns);
}

static double ahead(const struct agent_clock *c, size_t i)
{
	return (double)(int64_t)(c->pairs[i].device_ns - c->pairs[0].device_ns) - mono(c, i);
}

void agent_clock__fit(const struct agent_clock *c, struct agent_clock_fit *out)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0, slope, squares = 0;

	memset(out, 0, sizeof(*out));
	out->pairs = c->seen;
	if (!c->nr)
		return;
	out->width_min_ns = UINT64_MAX;
	for (size_t i = 0; i < c->nr; i++) {
		mean_x += mono(c, i) / (double)c->nr;
		mean_y += ahead(c, i) / (double)c->nr;
		if (c->pairs[i].width_ns < out->width_min_ns)
			out->width_min_ns = c->pairs[i].width_ns;
		if (c->pairs[i].width_ns > out->width_max_ns)
			out->width_max_ns = c->pairs[i].width_ns;
	}
	for (size_t i = 0; i < c->nr; i++) {
		xx += (mono(c, i) - mean_x) * (mono(c, i) - mean_x);
		xy += (mono(c, i) - mean_x) * (ahead(c, i) - mean_y);
	}
	slope = xx > 0 ? xy / xx : 0;
	for (size_t i = 0; i < c->nr; i++) {
		double off = ahead(c, i) - mean_y - slope * (mono(c, i) - mean_x);

		squares += off * off;
		if (fabs(off) > out->residual_max_ns)
			out->residual_max_ns = fabs(off);
	}
	out->drift_ppm = slope * 1e6;
	out->residual_rms_ns = sqrt(squares / (double)c->nr);
}
