// SPDX-License-Identifier: BSD-2-Clause
/* Stretches: what a thread is known to be in at some of its events, and where they end. */
#include "capture/span/spans.h"

#include <errno.h>

#include "spans_one_thread.h"
#include "util/util.h"

static const struct span_return ret = {.addr = 0x1000, .site = 1};

/* The thread is in the stretches with these keys, whose descriptions are 100 more; 0: no more. */
static void in(uint64_t sp, uint64_t a, uint64_t b)
{
	const struct span_stretch list[] = {{a, (uint32_t)a + 100, 5}, {b, (uint32_t)b + 100, 5}};

	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), sp, list,
				  a == 0   ? 0
				  : b == 0 ? 1
					   : 2,
				  false),
		 0);
}

static void check_span(size_t i, uint32_t description, uint32_t depth, uint64_t start_ns,
		       uint64_t end_ns, uint32_t flags)
{
	CHECK(i < fx.nr);
	if (i >= fx.nr)
		return;
	CHECK_EQ(fx.told[i].description, description);
	CHECK_EQ(fx.told[i].depth, depth);
	CHECK_EQ(fx.told[i].start_ns, start_ns);
	CHECK_EQ(fx.told[i].end_ns, end_ns);
	CHECK_EQ(fx.told[i].flags, flags);
}

/* It lasts from the first to the last call inside, whenever it is found to be over. */
static void first_to_last(void)
{
	start();
	in(TOP - 0x100, 1, 2);          /* 1001 */
	enter(1, TOP - 0x100, &ret, 1); /* 1002 */
	leave(TOP - 0x100, &ret);       /* 1003 */
	enter(1, TOP - 0x200, &ret, 1); /* 1004 */
	leave(TOP - 0x200, &ret);       /* 1005 */
	in(TOP - 0x100, 1, 3);          /* 1006: 2 is over, 1 goes on */
	enter(2, TOP - 0x100, &ret, 2); /* 1007 */
	leave(TOP - 0x100, &ret);       /* 1008 */
	in(TOP - 0x100, 0, 0);          /* 1009 */
	enter(2, TOP - 0x100, &ret, 2); /* 1010: in none */
	leave(TOP - 0x100, &ret);
	check_span(0, 101, 0, NS(1001), NS(1008) + 2, 0);
	check_span(1, 102, 1, NS(1001) + 1, NS(1005) + 1, 0);
	check_span(4, 103, 1, NS(1006), NS(1008) + 1, 0);
	check_span(6, 2, 0, NS(1010), NS(1011), 0);
	stop();
}

/* The same key again, after others: another stretch. The same key at once: the same one. */
static void again(void)
{
	start();
	in(TOP - 0x100, 1, 0);          /* 1001 */
	enter(1, TOP - 0x100, &ret, 1); /* 1002 */
	leave(TOP - 0x100, &ret);       /* 1003 */
	in(TOP - 0x100, 1, 0);          /* 1004 */
	enter(1, TOP - 0x100, &ret, 1);
	leave(TOP - 0x100, &ret); /* 1006 */
	in(TOP - 0x100, 0, 0);    /* 1007 */
	in(TOP - 0x100, 1, 0);    /* 1008 */
	enter(1, TOP - 0x100, &ret, 1);
	leave(TOP - 0x100, &ret); /* 1010 */
	CHECK_EQ(spans__finish(fx.spans), 0);
	CHECK_EQ(fx.nr, 5);
	check_span(0, 101, 0, NS(1001), NS(1006) + 1, 0);
	check_span(3, 101, 0, NS(1008), NS(1010) + 1, 0); /* not to the end of the recording */
	stop();
}

/* Inside of a call: it ends with its own last call, not with the call around it. */
static void inside_a_call(void)
{
	start();
	enter(1, TOP - 0x100, &ret, 1); /* 1001 */
	in(TOP - 0x200, 1, 0);          /* 1002 */
	enter(2, TOP - 0x200, &ret, 2); /* 1003 */
	leave(TOP - 0x200, &ret);       /* 1004 */
	leave(TOP - 0x100, &ret);       /* 1005 */
	check_span(0, 1, 0, NS(1001), NS(1005), 0);
	check_span(1, 101, 1, NS(1002), NS(1004) + 1, 0);
	stop();
}

/* Where an end inside was not seen, the stretch's end is as doubtful as that one. */
static void inexact(void)
{
	static const struct span_return unknown = {.addr = 0x2000};

	start();
	in(TOP - 0x100, 1, 0);              /* 1001 */
	enter(1, TOP - 0x200, &unknown, 1); /* 1002 */
	in(TOP - 0x300, 0, 0); /* 1003: its stack says that it may go on, but it is over */
	check_span(1, 1, 1, NS(1002), NS(1003) - 2, KPROF_EVENT_CLOSED);
	check_span(0, 101, 0, NS(1001), NS(1003) - 1, KPROF_EVENT_CLOSED);
	in(TOP - 0x300, 2, 0); /* 1004 */
	enter(1, TOP - 0x400, &unknown, 1);
	enter(2, TOP - 0x300, &ret, 2); /* 1006: ends 1, in the stretch, which goes on */
	leave(TOP - 0x300, &ret);       /* 1007 */
	in(TOP - 0x300, 0, 0);
	check_span(2, 102, 0, NS(1004), NS(1007) + 1, 0);
	stop();
}

/* An annotation that began inside goes on: nothing crosses, and the end is said to be doubtful. */
static void range_goes_on(void)
{
	start();
	in(TOP - 0x100, 1, 2);          /* 1001 */
	range_begin(7, TOP - 0x100);    /* 1002 */
	in(TOP - 0x100, 0, 0);          /* 1003 */
	enter(1, TOP - 0x100, &ret, 1); /* 1004 */
	leave(TOP - 0x100, &ret);       /* 1005 */
	in(TOP - 0x100, 3, 0);          /* 1006: in the annotation */
	enter(1, TOP - 0x100, &ret, 1); /* 1007 */
	leave(TOP - 0x100, &ret);       /* 1008 */
	in(TOP - 0x100, 0, 0);          /* 1009 */
	range_end(TOP - 0x100);         /* 1010 */
	check_span(2, 7, 2, NS(1002), NS(1010), 0);
	check_span(0, 101, 0, NS(1001), NS(1010), KPROF_EVENT_CLOSED);
	check_span(4, 103, 3, NS(1006), NS(1008) + 1, 0);
	stop();
}

/* An annotation around a stretch ends, whose end takes no stretch for its own. */
static void range_around(void)
{
	start();
	range_begin(7, TOP - 0x100);    /* 1001 */
	in(TOP - 0x100, 1, 0);          /* 1002 */
	enter(1, TOP - 0x100, &ret, 1); /* 1003 */
	leave(TOP - 0x100, &ret);       /* 1004 */
	in(TOP - 0x100, 0, 0);          /* 1005 */
	range_end(TOP - 0x100);         /* 1006 */
	check_span(0, 7, 0, NS(1001), NS(1006), 0);
	check_span(1, 101, 1, NS(1002), NS(1004) + 1, 0);
	stop();
}

/* What was over before the window is not reported as open at its begin. */
static void before_the_window(void)
{
	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	now_us = 1000;
	in(TOP - 0x100, 1, 2);
	enter(1, TOP - 0x100, &ret, 1);
	leave(TOP - 0x100, &ret);
	fixture_open(&fx, NS(1004));
	now_us = 1010;
	in(TOP - 0x100, 1, 3); /* 1011 */
	enter(1, TOP - 0x100, &ret, 1);
	leave(TOP - 0x100, &ret); /* 1013 */
	in(TOP - 0x100, 0, 0);
	CHECK_EQ(fx.nr, 3);
	check_span(0, 101, 0, NS(1004), NS(1013) + 2, KPROF_EVENT_OPEN_AT_START);
	check_span(1, 103, 1, NS(1011), NS(1013) + 1, 0);
	stop();
}

/* What is around the first of the list is not told again. */
static void on_what_was_told(void)
{
	const struct span_stretch list[] = {{2, 102, 5}, {3, 103, 5}};

	start();
	in(TOP - 0x100, 1, 2);          /* 1001 */
	enter(1, TOP - 0x100, &ret, 1); /* 1002 */
	leave(TOP - 0x100, &ret);       /* 1003 */
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x100, list, 2, true), 0);
	enter(1, TOP - 0x100, &ret, 1); /* 1005 */
	leave(TOP - 0x100, &ret);       /* 1006 */
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x100, list, 1, true), 0);
	check_span(3, 103, 2, NS(1004), NS(1006) + 1, 0);
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x100, list + 1, 1, true),
		 -ENOENT);
	CHECK(!fx.told[0].ended && !fx.told[1].ended);
	in(TOP - 0x100, 0, 0);
	check_span(0, 101, 0, NS(1001), NS(1006) + 3, 0);
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x100, list, 2, true),
		 -ENOENT);
	CHECK_EQ(spans__stretches(fx.spans, thread, NS(++now_us), TOP - 0x100, list, 0, true),
		 -ENOENT);
	stop();
}

/* A call that was over when the stretch began, as is found later: the stretch begins once more. */
static bool is_first(void *ctx, uint64_t ret_slot)
{
	return ret_slot == TOP - 0x80;
}

static void begins_once_more(void)
{
	static const struct span_return unknown = {.addr = 0x2000};

	start();
	enter(4, TOP - 0x80, &unknown, 4); /* 1001 */
	in(TOP - 0x100, 1, 0);             /* 1002 */
	enter(1, TOP - 0x100, &ret, 1);    /* 1003 */
	leave(TOP - 0x100, &ret);          /* 1004 */
	CHECK_EQ(spans__returned(fx.spans, thread, NS(++now_us), TOP - 0x100, is_first, NULL), 0);
	check_span(1, 101, 1, NS(1002), NS(1004) + 1, KPROF_EVENT_CLOSED);
	enter(1, TOP - 0x100, &ret, 1); /* 1006 */
	leave(TOP - 0x100, &ret);       /* 1007 */
	in(TOP - 0x100, 0, 0);
	check_span(3, 101, 0, NS(1006), NS(1007) + 1, 0);
	check_span(4, 1, 1, NS(1006), NS(1007), 0);
	stop();
}

UNIT_MAIN(TEST(begins_once_more), TEST(on_what_was_told), TEST(first_to_last), TEST(again),
	  TEST(inside_a_call), TEST(inexact), TEST(range_goes_on), TEST(range_around),
	  TEST(before_the_window))
