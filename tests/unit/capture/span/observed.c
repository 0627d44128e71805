// SPDX-License-Identifier: BSD-2-Clause
/* Spans that the program itself tells of, between calls that probes see, and annotations. */
#include "spans_one_thread.h"

static void observed_begin(uint32_t description, bool crosses)
{
	CHECK_EQ(spans__observed_begin(fx.spans, thread, NS(++now_us), description, 4, crosses), 0);
}

static void observed_end(uint32_t inside)
{
	CHECK_EQ(spans__observed_end(fx.spans, thread, NS(++now_us), true, inside, 4), 0);
}

/* Operators that the program itself tells of, with a call by a probe and an annotation inside. */
static void observed(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1};

	start();
	observed_begin(1, false);
	observed_begin(2, false);
	CHECK_EQ(spans__observed(thread), 2);
	enter(3, TOP - 0x100, &a, 1);
	range_begin(4, TOP - 0x200);
	range_end(TOP - 0x200);
	observed_end(0); /* the call's end was not seen: it is over */
	CHECK_EQ(spans__observed(thread), 1);
	observed_end(0);
	CHECK_EQ(fx.depth[0], 0);
	CHECK_EQ(fx.closed, 1);
	observed_end(0);
	CHECK_EQ(spans__count(fx.spans, 4)->orphan_ends, 1);
	stop();
}

/* A range's end is none of an observed span, and the other way round. */
static void observed_and_ranges(void)
{
	start();
	range_begin(1, TOP - 0x100);
	observed_begin(2, true);
	range_end(TOP - 0x100); /* of 1, around it */
	CHECK_EQ(fx.depth[0], 2);
	observed_end(0);
	CHECK_EQ(fx.depth[0], 0);
	observed_begin(3, true);
	range_begin(4, TOP - 0x100);
	observed_end(0); /* an annotation may end before */
	CHECK_EQ(fx.depth[0], 2);
	range_end(TOP - 0x100);
	CHECK_EQ(fx.depth[0], 0);
	observed_begin(5, false);
	range_begin(6, TOP - 0x100);
	observed_end(0); /* an operator may not: it has returned */
	CHECK_EQ(fx.depth[0], 0);
	stop();
}

static void observed_that_cross(void)
{
	start();
	observed_begin(1, true);
	observed_begin(2, true);
	observed_begin(3, true);
	observed_end(2); /* 1 */
	CHECK_EQ(spans__observed(thread), 2);
	observed_end(1); /* 2 */
	CHECK_EQ(fx.depth[0], 3);
	observed_end(0);
	CHECK_EQ(fx.depth[0], 0);
	CHECK_EQ(fx.exact, 1);
	stop();
}

/*
 * Calls of a device runtime whose ends were not seen, before operators: these are inside of none,
 * and end by themselves, wherever on the stack the next calls are.
 */
static void calls_before_operators(void)
{
	struct span_return unknown = {.addr = 0x1000}, seen = {.addr = 0x2000, .site = 1};

	start();
	range_begin(9, TOP - 0x80);
	enter(3, TOP - 0x200, &unknown, 1);
	observed_begin(1, false); /* ends the call */
	CHECK_EQ(fx.closed, 1);
	enter(4, TOP - 0x100, &seen, 2); /* above that call's place on the stack */
	CHECK_EQ(spans__observed(thread), 1);
	leave(TOP - 0x100, &seen);
	enter(3, TOP - 0x200, &unknown, 1);
	observed_begin(2, false);
	CHECK_EQ(fx.closed, 2);
	observed_end(0);
	observed_end(0);
	CHECK_EQ(fx.exact, 3);
	/* The same, with an annotation between the call and the operator, which goes on. */
	enter(3, TOP - 0x200, &unknown, 1);
	range_begin(8, TOP - 0x300);
	observed_begin(1, false);
	enter(4, TOP - 0x100, &seen, 2);
	leave(TOP - 0x100, &seen);
	CHECK_EQ(spans__observed(thread), 1);
	observed_end(0);
	CHECK_EQ(fx.closed, 2);
	range_end(TOP - 0x300); /* with it the call below ends */
	CHECK_EQ(fx.closed, 3);
	range_end(TOP - 0x80);
	CHECK_EQ(fx.exact, 7);
	CHECK_EQ(fx.depth[0], 0);
	stop();
}

UNIT_MAIN(TEST(observed), TEST(calls_before_operators), TEST(observed_and_ranges),
	  TEST(observed_that_cross))
