// SPDX-License-Identifier: BSD-2-Clause
/* Which operators are given up, of made numbers. */
#include "capture/overhead/choose.h"

#include "unit.h"
#include "util/util.h"

#define CALL_NS 1000.0

static double all_ns; /* of what could be chosen */

static size_t choose(struct choose_probe *probes, size_t nr, double goal_ns)
{
	return choose_probes(probes, nr, CALL_NS, goal_ns, &all_ns);
}

/* Were just these chosen, in this order? */
static void check(struct choose_probe *probes, size_t nr, double goal_ns, const uint32_t *wanted,
		  size_t nr_wanted)
{
	size_t chosen = choose(probes, nr, goal_ns);

	CHECK_EQ(chosen, nr_wanted);
	for (size_t i = 0; i < nr; i++)
		CHECK_EQ(probes[i].chosen, i < nr_wanted);
	for (size_t i = 0; i < nr_wanted && i < chosen; i++)
		CHECK_EQ(probes[i].probe, wanted[i]);
}

#define CHECK_CHOSEN(probes, goal_ns, ...)                                                \
	do {                                                                              \
		const uint32_t wanted_[] = {__VA_ARGS__};                                 \
		check(probes, ARRAY_SIZE(probes), goal_ns, wanted_, ARRAY_SIZE(wanted_)); \
	} while (0)

static struct choose_probe op(uint32_t probe, uint64_t calls, uint64_t nr_short)
{
	return (struct choose_probe){.probe = probe,
				     .hits = calls,
				     .calls = calls,
				     .timed = calls,
				     .nr_short = nr_short};
}

static void dearest_first(void)
{
	struct choose_probe p[] = {op(1, 100, 100), op(2, 10000, 10000), op(3, 5000, 5000)};

	CHECK_CHOSEN(p, 9e6, 2);
	CHECK_CHOSEN(p, 12e6, 2, 3);
}

/* The dearest of all lasts long, and tells most. */
static void long_ones_stay(void)
{
	struct choose_probe p[] = {op(1, 50000, 0), op(2, 10000, 9000), op(3, 9000, 4499)};

	CHECK_CHOSEN(p, 50e6, 2);
}

/* Half of the calls decide, not the mean: one of them may have lost its CPU for a second. */
static void half_of_the_calls(void)
{
	struct choose_probe p[] = {op(1, 1000, 500), op(2, 1000, 499)};

	p[0].timed_ns = 1000000000;
	CHECK_CHOSEN(p, 2e6, 1);
}

/* Giving up what is rare saves nothing, unless there is much of it. */
static void rare_ones_stay(void)
{
	struct choose_probe p[] = {op(1, 100000, 100000), op(2, 110, 110), op(3, 90, 90)};
	struct choose_probe many[1001] = {op(1000, 1000, 0)};

	CHECK_CHOSEN(p, 100e6, 1);
	CHECK_CHOSEN(p, 101e6, 1, 2);
	for (uint32_t i = 0; i < 1000; i++)
		many[i + 1] = op(i, 1000, 1000);
	CHECK_EQ(choose(many, ARRAY_SIZE(many), 900e6), 900);
	CHECK_EQ(choose(many, ARRAY_SIZE(many), 1100e6), 0);
	CHECK_EQ(all_ns, 1000e6);
}

/* What is folded into other calls costs as much, and tells nothing. */
static void folded_ones_cost(void)
{
	struct choose_probe p[] = {op(1, 1000, 1000), {.probe = 2, .hits = 1001}};

	CHECK_CHOSEN(p, 1e6, 2);
}

/* No end was seen of any call. */
static void unknown_length(void)
{
	struct choose_probe p[] = {{.probe = 7, .hits = 1000}};

	CHECK_CHOSEN(p, 1e6, 7);
}

static void none_to_choose_from(void)
{
	struct choose_probe p[] = {op(1, 50000, 0)};

	CHECK_EQ(choose(p, 0, 1e6), 0);
	CHECK_EQ(choose(p, 1, 1e6), 0);
}

UNIT_MAIN(TEST(dearest_first), TEST(long_ones_stay), TEST(half_of_the_calls), TEST(rare_ones_stay),
	  TEST(folded_ones_cost), TEST(unknown_length), TEST(none_to_choose_from))
