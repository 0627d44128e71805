// SPDX-License-Identifier: BSD-2-Clause
/* What bursts tell of probes that were given up. */
#include "capture/overhead/impl.h"

#include <math.h>

#include "unit.h"

static void errors(void)
{
	struct tally t = {0};

	CHECK(tally__rate(&t) == 0 && tally__error(&t) == 0);
	tally__add(&t, 1, 1);
	CHECK(tally__rate(&t) == 1 && tally__error(&t) == 0); /* of one, it is not known */
	for (int i = 2; i <= 4; i++)
		tally__add(&t, i, 1);
	/* the mean square of differences is 5/3, of a mean of four a quarter of that */
	CHECK(t.nr == 4 && fabs(tally__rate(&t) - 2.5) < 1e-9);
	CHECK(fabs(tally__error(&t) - sqrt(5.0 / 12)) < 1e-9);
}

/* A program calls a million times a second half of the time, and else has eight busy threads. */
static void phases(void)
{
	struct tally t = {0};
	const double used_ns = (8e6 + 64e6) / 2 * 1000, calls = 8000.0 / 2 * 1000; /* in 8 s */

	for (int i = 0; i < 10; i++) {
		tally__add(&t, 8000, 8e6);
		tally__add(&t, 0, 64e6);
	}
	CHECK(fabs(tally__rate(&t) * used_ns - calls) < 1);
	CHECK(tally__error(&t) > 0 && tally__error(&t) < tally__rate(&t));
}

static void counted_apart(void)
{
	struct dropped dropped = {.probe = 7};
	struct overhead o = {.dropped = &dropped, .nr_dropped = 1};

	CHECK(!heat__new(&o.heat) && !bursts__add(&o.bursts, 7, 0, 5));
	CHECK(overhead__gave_up(&o, 7) && !overhead__gave_up(&o, 8));
	overhead__hit(&o, 7, true, true);
	overhead__hit(&o, 7, true, true);
	overhead__hit(&o, 7, false, true); /* no call */
	overhead__hit(&o, 8, true, true);
	overhead__ended(&o, 7, 3, 100);
	overhead__ended(&o, 8, 3, 1000);
	CHECK(dropped.calls == 2 && dropped.timed == 1 && dropped.timed_ns == 100);
	CHECK(o.heat.hits == 1 && !o.heat.probes[7].calls && o.heat.probes[8].calls == 1);
	CHECK(!o.heat.probes[7].timed && o.heat.probes[8].timed_ns == 1000);
	heat__free(&o.heat);
	bursts__free(&o.bursts);
}

UNIT_MAIN(TEST(errors), TEST(phases), TEST(counted_apart))
