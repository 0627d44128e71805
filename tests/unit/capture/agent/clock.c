// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/clock.h"

#include <math.h>

#include "unit.h"

static struct agent_clock_fit fit_of(const struct agent_clock *c)
{
	struct agent_clock_fit fit;

	agent_clock__fit(c, &fit);
	return fit;
}

static void few(void)
{
	struct kprof_agent_clock_pair pair = {.mono_ns = UINT64_MAX, .device_ns = 5, .width_ns = 7};
	struct agent_clock c = {0};

	CHECK_EQ(fit_of(&c).pairs, 0);
	agent_clock__add(&c, &pair);
	CHECK_EQ(fit_of(&c).pairs, 1);
	CHECK(fit_of(&c).drift_ppm == 0);
	CHECK_EQ(fit_of(&c).width_min_ns, 7);
	agent_clock__add(&c, &pair); /* twice the same moment: no slope */
	CHECK(fit_of(&c).drift_ppm == 0);
	CHECK(fit_of(&c).residual_max_ns == 0);
}

/*
 * A clock that runs 40 ppm slow, read with errors of ± 100 ns by turns, for far more pairs than are
 * kept.
 */
static void long_run(void)
{
	static struct agent_clock c;
	struct agent_clock_fit fit;

	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t t = i * 1000000;
		struct kprof_agent_clock_pair pair = {.mono_ns = 1ull << 60 | t,
						      .device_ns = 12345 + t - t / 25000 +
								   (i / 512 & 1 ? 100 : -100ull),
						      .width_ns = 50 + i % 3};

		agent_clock__add(&c, &pair);
	}
	fit = fit_of(&c);
	CHECK_EQ(fit.pairs, 100000);
	CHECK(c.nr <= AGENT_CLOCK_PAIRS && c.nr > AGENT_CLOCK_PAIRS / 4);
	CHECK(fabs(fit.drift_ppm + 40) < 0.01);
	CHECK(fit.residual_rms_ns > 90 && fit.residual_rms_ns < 110);
	CHECK(fit.residual_max_ns > 99 && fit.residual_max_ns < 110);
	CHECK_EQ(fit.width_min_ns, 50);
	CHECK_EQ(fit.width_max_ns, 52);
}

UNIT_MAIN(TEST(few), TEST(long_run))
