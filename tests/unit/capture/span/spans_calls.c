// SPDX-License-Identifier: BSD-2-Clause
/* The span engine, as calls use it: numbers of spans, results, calls inside calls. */
#include "capture/span/spans.h"

#include "spans_one_thread.h"

/* begin's fields that only some spans have. */
static void enter_as(uint32_t description, uint64_t sp, const struct span_return *ret,
		     uint64_t group, bool own_result)
{
	struct span_begin b = entry(description, sp, ret, description);

	b.group = group;
	b.own_result = own_result;
	CHECK_EQ(spans__begin(fx.spans, thread, &b), 0);
}

static void leave_with(uint64_t sp, const struct span_return *ret, uint64_t result)
{
	struct span_site hit = {
		.time_ns = NS(++now_us),
		.sp = sp + 8 + (uint64_t)(int64_t)ret->sp_delta_bytes,
		.site = ret->site,
		.has_result = true,
		.result = result,
	};

	CHECK_EQ(spans__site(fx.spans, thread, &hit), 0);
}

/* Each end says whose it is: the fixture compares. What is not told has no number. */
static void numbers(void)
{
	struct span_return ret = {.addr = 0x1000, .site = 1};

	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	now_us = 1000;
	CHECK_EQ(spans__number(thread), 0);
	enter(1, TOP - 0x100, &ret, 1);
	CHECK_EQ(spans__number(thread), 0); /* before the window */
	fixture_open(&fx, NS(1002));
	enter(2, TOP - 0x200, &ret, 2); /* 1002 */
	CHECK_EQ(fx.nr, 2);
	CHECK_EQ(spans__number(thread), 2);
	leave(TOP - 0x200, &ret);
	CHECK_EQ(spans__number(thread), 1);
	range_begin(0, TOP - 0x200); /* hidden */
	CHECK_EQ(spans__number(thread), 0);
	range_end(TOP - 0x200);
	leave(TOP - 0x100, &ret);
	CHECK_EQ(spans__number(thread), 0);
	stop();
}

/* A result is told where the return site was reached, and the register holds it still. */
static void results(void)
{
	struct span_return keeps = {.addr = 0x1000, .site = 1, .keeps_result = true};
	struct span_return loses = {.addr = 0x2000, .site = 2};
	struct span_return unknown = {.addr = 0x3000, .keeps_result = true};

	start();
	enter_as(1, TOP - 0x100, &keeps, 0, false);
	leave_with(TOP - 0x100, &keeps, 77);
	enter_as(2, TOP - 0x100, &loses, 0, false);
	leave_with(TOP - 0x100, &loses, 78);
	enter_as(3, TOP - 0x100, &keeps, 0, true);
	leave_with(TOP - 0x100, &keeps, 79);
	enter_as(4, TOP - 0x100, &keeps, 0, false);
	leave(TOP - 0x100, &keeps); /* a site that does not tell it */
	enter_as(5, TOP - 0x100, &keeps, 0, false);
	enter_as(6, TOP - 0x200, &unknown, 0, false); /* over with it, at another place */
	leave_with(TOP - 0x100, &keeps, 80);
	enter_as(7, TOP - 0x100, &keeps, 0, false);
	enter_as(8, TOP - 0x100, &keeps, 0, false); /* tail-called: it returned for both */
	leave_with(TOP - 0x100, &keeps, 81);
	CHECK_EQ(fx.nr, 8);
	for (size_t i = 0; i < fx.nr; i++)
		CHECK_EQ(fx.told[i].has_result, i == 0 || i == 4 || i == 6 || i == 7);
	CHECK_EQ(fx.told[0].result, 77);
	CHECK_EQ(fx.told[4].result, 80);
	CHECK_EQ(fx.told[6].result, 81);
	CHECK_EQ(fx.told[7].result, 81);
	stop();
}

static bool is_inside(uint64_t sp, uint64_t ret_addr, uint64_t groups)
{
	struct span_begin b = {.sp = sp, .probe = 99};

	return spans__inside(fx.spans, thread, &b, ret_addr, groups, false);
}

static void inside(void)
{
	struct span_return outer = {.addr = 0x1000, .site = 1};
	struct span_return unknown = {.addr = 0x2000};
	struct span_begin again = {.sp = TOP - 0x100, .probe = 1};
	struct span_begin deeper = {.sp = TOP - 0x200, .probe = 99};

	start();
	CHECK(!is_inside(TOP - 0x200, 0x9000, 4)); /* of nothing */
	enter_as(1, TOP - 0x100, &outer, 4, false);
	CHECK(is_inside(TOP - 0x200, 0x9000, 4));
	CHECK(is_inside(TOP - 0x200, 0x9000, 6));
	CHECK(!is_inside(TOP - 0x200, 0x9000, 2));
	/* At the same place: jumped to, or called when that one was over, or that one again */
	CHECK(is_inside(TOP - 0x100, 0x1000, 4));
	CHECK(!is_inside(TOP - 0x100, 0x9000, 4));
	CHECK(!spans__inside(fx.spans, thread, &again, 0x1000, 4, false));
	CHECK(!is_inside(TOP - 0x80, 0x9000, 4));    /* above: over */
	CHECK(!is_inside(FIBRE - 0x200, 0x9000, 4)); /* another stack */
	/* What it calls is in between … */
	enter_as(2, TOP - 0x200, &unknown, 0, false);
	CHECK(!is_inside(TOP - 0x300, 0x9000, 4));
	/* … until the stack pointer shows it to be over */
	CHECK(is_inside(TOP - 0x180, 0x9000, 4));
	range_begin(3, TOP - 0x180);
	CHECK(!is_inside(TOP - 0x200, 0x9000, 4));
	range_end(TOP - 0x180);
	leave(TOP - 0x100, &outer);
	CHECK(!is_inside(TOP - 0x200, 0x9000, 4));
	/* A span whose end may not be seen, for its site was not known when it began. */
	enter_as(4, TOP - 0x100, &unknown, 4, false);
	CHECK(spans__inside(fx.spans, thread, &deeper, 0x9000, 4, false));
	CHECK(!spans__inside(fx.spans, thread, &deeper, 0x9000, 4, true));
	unknown.site = 2;
	CHECK(!spans__inside(fx.spans, thread, &deeper, 0x9000, 4, true));
	enter_as(5, TOP - 0x100, &outer, 4, false);
	CHECK(spans__inside(fx.spans, thread, &deeper, 0x9000, 4, true));
	stop();
}

static bool at_slot(void *ctx, uint64_t ret_slot)
{
	return ret_slot == *(const uint64_t *)ctx;
}

static void returned_at(uint64_t slot, uint64_t sp)
{
	CHECK_EQ(spans__returned(fx.spans, thread, NS(++now_us), sp, at_slot, &slot), 0);
}

/* The kernel saw from the stack that calls without return site have returned. */
static void returned(void)
{
	struct span_return known = {.addr = 0x1000, .site = 1};
	struct span_return unknown = {.addr = 0x2000};

	start();
	enter(1, TOP - 0x100, &known, 1);
	enter(2, TOP - 0x200, &unknown, 2);
	enter(3, TOP - 0x300, &unknown, 3);
	returned_at(TOP - 0x280, TOP - 0x400); /* nobody's */
	CHECK_EQ(fx.depth[0], 3);
	returned_at(TOP - 0x300, TOP - 0x400);
	CHECK_EQ(fx.depth[0], 2);
	enter(4, TOP - 0x400, &unknown, 4); /* a sibling, though deeper in the stack */
	CHECK_EQ(fx.told[3].depth, 2);
	returned_at(TOP - 0x200, TOP - 0x500); /* and what is inside */
	CHECK_EQ(fx.depth[0], 1);
	CHECK(fx.told[1].flags & KPROF_EVENT_CLOSED);
	CHECK(fx.told[3].end_ns < fx.told[1].end_ns);
	returned_at(TOP - 0x100, TOP - 0x500); /* its end will be seen */
	CHECK_EQ(fx.depth[0], 1);
	leave(TOP - 0x100, &known);
	/* Only on the event's own stack */
	enter(5, FIBRE - 0x100, &unknown, 5);
	returned_at(FIBRE - 0x100, TOP - 0x500);
	CHECK_EQ(fx.depth[0], 1);
	returned_at(FIBRE - 0x100, FIBRE - 0x200);
	CHECK_EQ(fx.depth[0], 0);
	stop();
}

/* An event that is nothing by itself shows by its stack pointer which calls are over. */
static void passed(void)
{
	struct span_return unknown = {.addr = 0x2000};

	start();
	enter(1, TOP - 0x100, &unknown, 1);
	enter(2, TOP - 0x200, &unknown, 2);
	enter(3, TOP - 0x300, &unknown, 3);
	CHECK_EQ(spans__passed(fx.spans, thread, NS(++now_us), TOP - 0x280), 0);
	CHECK_EQ(fx.depth[0], 2);
	CHECK(fx.told[2].flags & KPROF_EVENT_CLOSED);
	enter(4, TOP - 0x2c0, &unknown, 4);
	CHECK_EQ(fx.told[3].depth, 2);
	CHECK_EQ(spans__passed(fx.spans, thread, NS(++now_us), TOP - 0x2c0), 0); /* itself */
	CHECK_EQ(fx.depth[0], 3);
	stop();
}

static bool is_even(void *ctx, uint32_t probe)
{
	return probe % 2 == 0;
}

/* Probes are given up: their spans end, and one that has others inside with the last of these. */
static void given_up(void)
{
	struct span_return known = {.addr = 0x1000, .site = 1};
	uint64_t us;

	start();
	range_begin(8, TOP - 0x80); /* no span of a probe */
	enter(2, TOP - 0x100, &known, 2);
	enter(3, TOP - 0x200, &known, 3);
	enter(4, TOP - 0x300, &known, 4);
	enter(6, TOP - 0x400, &known, 6);
	us = ++now_us;
	CHECK_EQ(spans__give_up(fx.spans, thread, NS(us), is_even, NULL), 0);
	CHECK_EQ(fx.depth[0], 3);
	CHECK(fx.told[3].flags & KPROF_EVENT_CLOSED && fx.told[4].flags & KPROF_EVENT_CLOSED);
	CHECK(fx.told[4].end_ns <= NS(us) && fx.told[4].end_ns <= fx.told[3].end_ns);
	leave(TOP - 0x200, &known);
	CHECK(!(fx.told[2].flags & KPROF_EVENT_CLOSED));
	CHECK(fx.told[1].flags & KPROF_EVENT_CLOSED);
	CHECK_EQ(fx.depth[0], 1);
	range_end(TOP - 0x80);
	CHECK_EQ(fx.depth[0], 0);
	/* the ends tell whose they are, and at which site they were seen */
	CHECK_EQ(fx.told[0].probe, UINT32_MAX);
	CHECK_EQ(fx.told[2].probe, 3);
	CHECK_EQ(fx.told[2].site, 1);
	CHECK_EQ(fx.told[1].site, 0);
	stop();
}

static bool is_any(void *ctx, uint32_t probe)
{
	return true;
}

/* Where all probes are given up, no range will be seen to end either. */
static void given_up_all(void)
{
	struct span_return known = {.addr = 0x1000, .site = 1};

	start();
	range_begin(8, TOP - 0x80);
	enter(3, TOP - 0x100, &known, 3);
	range_begin(9, TOP - 0x180);
	now_us++;
	CHECK_EQ(spans__give_up(fx.spans, thread, NS(now_us), is_any, NULL), 0);
	CHECK_EQ(fx.depth[0], 0);
	CHECK(fx.told[0].flags & KPROF_EVENT_CLOSED && fx.told[0].end_ns <= NS(now_us));
	range_begin(8, TOP - 0x80);
	range_end(TOP - 0x80);
	CHECK(!(fx.told[3].flags & KPROF_EVENT_CLOSED));
	stop();
}

/* The thread has gone on since: that is no record which came late. */
static void given_up_before(void)
{
	struct span_return known = {.addr = 0x1000, .site = 1};

	start();
	enter(2, TOP - 0x100, &known, 2);
	enter(4, TOP - 0x200, &known, 4);
	CHECK_EQ(spans__give_up(fx.spans, thread, NS(now_us - 1), is_even, NULL), 0);
	CHECK_EQ(fx.depth[0], 0);
	CHECK_EQ(spans__late(fx.spans), 0);
	stop();
}

/* Nothing more is told of what is open: ranges, calls, stretches end. The thread goes on later. */
static void left(void)
{
	const struct span_stretch module = {7, 9, 5};
	struct span_return known = {.addr = 0x1000, .site = 1};
	uint64_t us;

	start();
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x40, &module, 1, false),
		 0);
	range_begin(8, TOP - 0x80);
	enter(2, TOP - 0x100, &known, 2);
	us = ++now_us;
	CHECK_EQ(spans__leave(fx.spans, thread, NS(us)), 0);
	CHECK_EQ(fx.depth[0], 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(fx.told[i].flags & KPROF_EVENT_CLOSED && fx.told[i].end_ns <= NS(us));
	leave(TOP - 0x100, &known); /* what was under way */
	CHECK_EQ(fx.nr, 3);
	range_begin(8, TOP - 0x80); /* in the same module */
	CHECK_EQ(fx.told[3].description, 9);
	CHECK_EQ(fx.told[4].depth, 1);
	range_end(TOP - 0x80);
	CHECK(!(fx.told[4].flags & KPROF_EVENT_CLOSED));
	CHECK_EQ(spans__leave(fx.spans, thread, NS(us)), 0); /* it has gone on since */
	CHECK_EQ(spans__late(fx.spans), 0);
	stop();
}

UNIT_MAIN(TEST(left), TEST(numbers), TEST(results), TEST(inside), TEST(returned), TEST(passed),
	  TEST(given_up), TEST(given_up_all), TEST(given_up_before))
