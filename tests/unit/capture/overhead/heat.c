// SPDX-License-Identifier: BSD-2-Clause
/* Which return sites go with the probes that are given up. */
#include "capture/overhead/impl.h"

#include "unit.h"

#define ADD 7     /* a probe that is dropped */
#define MUL 8     /* … and another */
#define CUSTOM 9  /* one whose events are named at each hit: it is never chosen */
#define LINEAR 10 /* one that stays, of which a call lasts long */

static struct overhead o;
static uint64_t dropped[KPROF_WIRE_MAX_PROBES / 64], sites[HEAT_SITES / 64 + 1];

static void start(void)
{
	memset(&o, 0, sizeof(o));
	memset(dropped, 0, sizeof(dropped));
	memset(sites, 0, sizeof(sites));
	CHECK_EQ(heat__new(&o.heat), 0);
}

static void drop(uint32_t probe)
{
	dropped[probe / 64] |= 1ull << (probe & 63);
}

static bool goes(uint32_t site)
{
	return sites[site / 64] >> (site & 63) & 1;
}

static void sites_of_dropped_probes_go(void)
{
	start();
	overhead__ended(&o, ADD, 1, 100);
	overhead__ended(&o, MUL, 65536, 100);
	overhead__ended(&o, MUL, 0, 100); /* its end was not seen */
	drop(ADD);
	heat__idle_sites(&o.heat, dropped, sites);
	CHECK(goes(1) && !goes(65536));
	drop(MUL);
	heat__idle_sites(&o.heat, dropped, sites);
	CHECK(goes(1) && goes(65536) && !goes(0));
	heat__free(&o.heat);
}

static void what_others_use_stays(void)
{
	start();
	/* the long call ended before what is forgotten each second, and another one is open */
	overhead__ended(&o, LINEAR, 2, 1000000000);
	heat__forget(&o.heat, 1000000000);
	overhead__hit(&o, ADD, true, true);
	overhead__hit(&o, CUSTOM, false, true);
	for (uint32_t site = 1; site <= 4; site++)
		overhead__ended(&o, ADD, site, 100);
	overhead__ended(&o, CUSTOM, 3, 100);
	drop(ADD);
	heat__idle_sites(&o.heat, dropped, sites);
	CHECK(goes(1) && !goes(2) && !goes(3) && goes(4));
	heat__free(&o.heat);
}

/* Who used a site that is not in the table? */
static void too_many_uses(void)
{
	start();
	for (uint32_t probe = 0; probe <= 64; probe++)
		for (uint32_t site = 1; site <= 1024; site++)
			overhead__ended(&o, probe, site, 100);
	for (uint32_t probe = 0; probe <= 64; probe++)
		drop(probe);
	heat__idle_sites(&o.heat, dropped, sites);
	for (uint32_t site = 1; site <= 1024; site++)
		CHECK(!goes(site));
	heat__free(&o.heat);
}

static void hits_are_of_all_probes(void)
{
	struct choose_probe *probes;
	size_t nr;

	start();
	overhead__hit(&o, ADD, true, true);
	overhead__hit(&o, ADD, true, true);
	overhead__hit(&o, ADD, true, false); /* folded into another: it costs, and tells nothing */
	overhead__hit(&o, ADD, false, true); /* it was ignored */
	overhead__hit(&o, CUSTOM, false, true);
	overhead__ended(&o, ADD, 1, 100);
	overhead__ended(&o, UINT32_MAX, 0, 100); /* a range */
	CHECK_EQ(o.heat.hits, 5);
	CHECK_EQ(heat__probes(&o.heat, &probes, &nr), 0);
	CHECK_EQ(nr, 1);
	CHECK_EQ(probes[0].probe, ADD);
	CHECK_EQ(probes[0].hits, 3);
	CHECK_EQ(probes[0].calls, 2);
	CHECK_EQ(probes[0].timed, 1);
	free(probes);
	heat__free(&o.heat);
}

UNIT_MAIN(TEST(sites_of_dropped_probes_go), TEST(what_others_use_stays), TEST(too_many_uses),
	  TEST(hits_are_of_all_probes))
