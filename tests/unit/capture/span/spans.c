// SPDX-License-Identifier: BSD-2-Clause
/* The span engine: every way in which calls begin and end, or seem to. */
#include "capture/span/spans.h"

#include "spans_one_thread.h"

/* sp: the stack pointer at the entry, where the return address lies. */
static void check_span(size_t i, uint32_t description, uint32_t depth, uint64_t start_us,
		       uint64_t end_us, uint32_t flags)
{
	CHECK(i < fx.nr);
	if (i >= fx.nr)
		return;
	CHECK_EQ(fx.told[i].description, description);
	CHECK_EQ(fx.told[i].depth, depth);
	CHECK_EQ(fx.told[i].start_ns, NS(start_us));
	CHECK_EQ((fx.told[i].end_ns + 999) / 1000, end_us);
	CHECK_EQ(fx.told[i].flags, flags);
	CHECK_EQ(fx.told[i].ended, end_us != 0);
}

static void exact_ends(void)
{
	struct span_return outer = {.addr = 0x1000, .site = 1, .sp_delta_bytes = 16};
	struct span_return inner = {.addr = 0x2000, .site = 2};

	start();
	enter(1, TOP - 0x100, &outer, 1); /* 1001 */
	enter(2, TOP - 0x200, &inner, 2); /* 1002 */
	leave(TOP - 0x200, &inner);       /* 1003 */
	enter(2, TOP - 0x200, &inner, 2); /* 1004 */
	leave(TOP - 0x200, &inner);       /* 1005 */
	leave(TOP - 0x100, &outer);       /* 1006 */
	CHECK_EQ(fx.nr, 3);
	check_span(0, 1, 0, 1001, 1006, 0);
	check_span(1, 2, 1, 1002, 1003, 0);
	check_span(2, 2, 1, 1004, 1005, 0);
	CHECK_EQ(spans__idle_sites(fx.spans), 0);
	CHECK_EQ(fx.region_questions, 1); /* once per stack, not per event */
	stop();
}

/* An end that no site shows is the thread's next event at or above it. */
static void closed_by_the_next_event(void)
{
	struct span_return unknown = {.addr = 0x1000};
	struct span_return outer = {.addr = 0x2000, .site = 1};

	start();
	enter(1, TOP - 0x100, &outer, 1);   /* 1001 */
	enter(2, TOP - 0x200, &unknown, 2); /* 1002 */
	enter(3, TOP - 0x300, &unknown, 3); /* 1003, inside 2 */
	enter(4, TOP - 0x180, &unknown, 4); /* 1004: above 2 and 3 */
	leave(TOP - 0x100, &outer);         /* 1005 */
	check_span(0, 1, 0, 1001, 1005, 0);
	check_span(1, 2, 1, 1002, 1004, KPROF_EVENT_CLOSED);
	check_span(2, 3, 2, 1003, 1004, KPROF_EVENT_CLOSED);
	check_span(3, 4, 1, 1004, 1005, KPROF_EVENT_CLOSED);
	stop();
}

/* What one event ends: the inner before the outer, and all of it before what begins then. */
static void ends_apart(void)
{
	struct span_return unknown = {.addr = 0x1000}, ret = {.addr = 0x2000, .site = 1};

	start();
	enter(1, TOP - 0x200, &ret, 1);     /* 1001 */
	enter(2, TOP - 0x300, &unknown, 2); /* 1002 */
	enter(3, TOP - 0x400, &unknown, 3); /* 1003 */
	enter(4, TOP - 0x280, &ret, 4);     /* 1004: ends 3 and 2 */
	leave(TOP - 0x200, &ret);           /* 1005: ends 4 (not at its place) and 1 */
	CHECK_EQ(fx.told[2].end_ns, NS(1004) - 2);
	CHECK_EQ(fx.told[1].end_ns, NS(1004) - 1);
	CHECK_EQ(fx.told[3].end_ns, NS(1005) - 1);
	CHECK_EQ(fx.told[0].end_ns, NS(1005));
	stop();
}

/* A site learnt while the frame is open still makes its end exact. */
static void learnt_while_open(void)
{
	struct span_return ret = {.addr = 0x1000};

	start();
	enter(1, TOP - 0x100, &ret, 1);
	ret.site = 9;
	ret.sp_delta_bytes = 32;
	leave(TOP - 0x100, &ret);
	check_span(0, 1, 0, 1001, 1002, 0);
	stop();
}

/*
 * The return site of a frame further up: what an exception flew past is closed, its catcher exact.
 */
static void exception(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1}, b = {.addr = 0x2000, .site = 2};
	struct span_return c = {.addr = 0x3000, .site = 3};

	start();
	enter(1, TOP - 0x100, &a, 1); /* 1001: catches */
	enter(2, TOP - 0x200, &b, 2); /* 1002 */
	enter(3, TOP - 0x300, &c, 3); /* 1003: throws */
	leave(TOP - 0x100, &a);       /* 1004 */
	check_span(0, 1, 0, 1001, 1004, 0);
	check_span(1, 2, 1, 1002, 1004, KPROF_EVENT_CLOSED);
	check_span(2, 3, 2, 1003, 1004, KPROF_EVENT_CLOSED);
	stop();
}

/* A site of the same number at another depth is not this frame's end. */
static void recursion(void)
{
	struct span_return r = {.addr = 0x1000, .site = 1, .sp_delta_bytes = 8};

	start();
	enter(1, TOP - 0x100, &r, 1);
	enter(1, TOP - 0x200, &r, 1);
	enter(1, TOP - 0x300, &r, 1);
	leave(TOP - 0x200, &r); /* the innermost ended without a word */
	check_span(2, 1, 2, 1003, 1004, KPROF_EVENT_CLOSED);
	check_span(1, 1, 1, 1002, 1004, 0);
	leave(TOP - 0x100, &r);
	check_span(0, 1, 0, 1001, 1005, 0);
	stop();
}

static void tail_call(void)
{
	struct span_return r = {.addr = 0x1000, .site = 1};

	start();
	enter(1, TOP - 0x100, &r, 1);
	enter(2, TOP - 0x100, &r, 2); /* jumped to: the same return address in the same slot */
	enter(3, TOP - 0x100, &r, 3);
	leave(TOP - 0x100, &r); /* all three end there */
	check_span(0, 1, 0, 1001, 1004, 0);
	check_span(1, 2, 1, 1002, 1004, 0);
	check_span(2, 3, 2, 1003, 1004, 0);
	stop();
}

/* The same function from the same place again is a new call, with or without a tail call inside. */
static void call_again(void)
{
	struct span_return r = {.addr = 0x1000}; /* has no site */

	start();
	for (int i = 0; i < 1000; i++) {
		enter(1, TOP - 0x100, &r, 1);
		enter(2, TOP - 0x100, &r, 2);
	}
	CHECK_EQ(fx.depth[0], 2);
	CHECK_EQ(fx.begins, 2000);
	CHECK_EQ(fx.closed, 1998);
	check_span(1998, 1, 0, 2999, 0, 0);
	check_span(1999, 2, 1, 3000, 0, 0);
	stop();
}

/* Another function at the same stack pointer, called from elsewhere. */
static void call_from_elsewhere(void)
{
	struct span_return a = {.addr = 0x1000}, b = {.addr = 0x2000};

	start();
	enter(1, TOP - 0x100, &a, 1);
	enter(2, TOP - 0x100, &b, 2);
	check_span(0, 1, 0, 1001, 1002, KPROF_EVENT_CLOSED);
	enter(3, TOP - 0x100, NULL, 3); /* return address unreadable: no tail call is assumed */
	check_span(1, 2, 0, 1002, 1003, KPROF_EVENT_CLOSED);
	enter(4, TOP - 0x100, NULL, 4);
	check_span(2, 3, 0, 1003, 1004, KPROF_EVENT_CLOSED);
	stop();
}

/* The return address of a wrapper further up the stack stands for the wrapped call. */
static void followed_return(void)
{
	struct span_return r = {.addr = 0x1000, .site = 5, .sp_delta_bytes = 24};
	struct span_begin b = {.time_ns = NS(2000),
			       .sp = TOP - 0x100,
			       .ret_slot = TOP - 0xc0,
			       .ret = &r,
			       .description = 1};

	start();
	CHECK_EQ(spans__begin(fx.spans, thread, &b), 0);
	now_us = 3000;
	leave(TOP - 0xc0, &r);
	check_span(0, 1, 0, 2000, 3001, 0);
	stop();
}

/* Two ucontexts in turn: neither closes what is open on the other's stack. */
static void stacks_in_turn(void)
{
	struct span_return m = {.addr = 0x1000, .site = 1}, f = {.addr = 0x2000, .site = 2};
	struct span_return i = {.addr = 0x3000, .site = 3};

	start();
	enter(1, TOP - 0x100, &m, 1); /* main's stack */
	enter(2, FIBRE + 0x800, &f, 2);
	for (int k = 0; k < 5; k++) { /* leaves of the fibre, while both are open */
		enter(3, FIBRE + 0x400, &i, 3);
		leave(FIBRE + 0x400, &i);
		enter(4, TOP - 0x200, &i, 3);
		leave(TOP - 0x200, &i);
	}
	leave(FIBRE + 0x800, &f);
	leave(TOP - 0x100, &m);
	CHECK_EQ(fx.closed, 0);
	CHECK_EQ(fx.exact, 12);
	check_span(0, 1, 0, 1001, now_us, 0);
	check_span(1, 2, 1, 1002, now_us - 1, 0);
	CHECK_EQ(fx.region_questions, 2);
	stop();
}

/* main returns while the fibre is suspended: nesting demands that the fibre's span ends, marked. */
static void stack_left_behind(void)
{
	struct span_return m = {.addr = 0x1000, .site = 1}, f = {.addr = 0x2000, .site = 2};

	start();
	enter(1, TOP - 0x100, &m, 1);
	enter(2, FIBRE + 0x800, &f, 2);
	leave(TOP - 0x100, &m);
	check_span(0, 1, 0, 1001, 1003, 0);
	check_span(1, 2, 1, 1002, 1003, KPROF_EVENT_CLOSED);
	leave(FIBRE + 0x800, &f); /* resumed later: nothing is open any more */
	CHECK_EQ(spans__idle_sites(fx.spans), 1);
	stop();
}

/* A handler on a signal stack that lies above the thread's own. */
static void signal_stack(void)
{
	struct span_return m = {.addr = 0x1000, .site = 1}, h = {.addr = 0x2000, .site = 2};

	start();
	enter(1, FIBRE + 0x800, &m, 1);
	enter(2, TOP - 0x100, &h, 2); /* higher, and yet nothing ended */
	CHECK_EQ(fx.depth[0], 2);
	leave(TOP - 0x100, &h);
	leave(FIBRE + 0x800, &m);
	CHECK_EQ(fx.exact, 2);
	stop();
}

static uint64_t grown_lo;

static int growing_region(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi)
{
	struct fixture *f = ctx;

	f->region_questions++;
	*lo = grown_lo = sp & ~0xfffull;
	*hi = TOP;
	return 0;
}

/* The main stack's mapping grows downwards: still one stack. */
static void stack_growth(void)
{
	struct spans_ops ops = {
		.ctx = &fx, .begin = fixture_begin, .end = fixture_end, .region = growing_region};
	struct span_return r[64];

	start();
	spans__free(fx.spans);
	CHECK_EQ(spans__new(&ops, &fx.spans), 0);
	spans__open_window(fx.spans, 0);
	thread = spans__thread(fx.spans, 0, 1);
	for (uint32_t i = 0; i < 64; i++) {
		r[i] = (struct span_return){.addr = i, .site = i + 1};
		enter(i + 1, TOP - 0x1800 * (i + 1), &r[i], i);
	}
	CHECK_EQ(fx.region_questions, 64);
	for (uint32_t i = 64; i-- > 0;)
		leave(TOP - 0x1800 * (i + 1), &r[i]);
	CHECK_EQ(fx.exact, 64);
	CHECK_EQ(fx.region_questions, 64);
	stop();
}

/* Memory that nobody knows (an exited process) counts as the last event's stack. */
static void unknown_memory(void)
{
	struct span_return r = {.addr = 0x1000, .site = 1};

	start();
	enter(1, 0x9000, &r, 1);
	enter(2, 0x8000, &r, 2);
	leave(0x8000, &r);
	leave(0x9000, &r);
	CHECK_EQ(fx.exact, 2);
	stop();
}

static void ranges(void)
{
	start();
	range_begin(1, TOP - 0x100); /* 1001 */
	range_begin(2, TOP - 0x200); /* 1002: its call lies deeper, which means nothing */
	range_end(TOP - 0x300);      /* 1003 */
	range_end(TOP - 0x100);      /* 1004 */
	check_span(0, 1, 0, 1001, 1004, 0);
	check_span(1, 2, 1, 1002, 1003, 0);
	range_end(TOP - 0x100);
	CHECK_EQ(spans__count(fx.spans, 4)->orphan_ends, 1);
	CHECK_EQ(spans__count(fx.spans, 4)->begins, 2);
	stop();
}

/* A range ends while a span inside it is open: it lasts until that one ends, and says so. */
static void range_ends_early(void)
{
	struct span_return r = {.addr = 0x1000, .site = 1};

	start();
	range_begin(1, TOP - 0x100);
	range_begin(2, TOP - 0x100);
	enter(3, TOP - 0x200, &r, 1);
	range_end(TOP - 0x300); /* 2 */
	range_end(TOP - 0x300); /* 1 */
	CHECK_EQ(fx.depth[0], 3);
	leave(TOP - 0x200, &r); /* 1006 */
	check_span(2, 3, 2, 1003, 1006, 0);
	check_span(1, 2, 1, 1002, 1006, KPROF_EVENT_CLOSED);
	check_span(0, 1, 0, 1001, 1006, KPROF_EVENT_CLOSED);
	stop();
}

/* A range that was left open ends with the call that it was opened in. */
static void range_left_open(void)
{
	struct span_return r = {.addr = 0x1000, .site = 1};

	start();
	enter(1, TOP - 0x100, &r, 1);
	range_begin(2, TOP - 0x200);
	leave(TOP - 0x100, &r);
	check_span(1, 2, 1, 1002, 1003, KPROF_EVENT_CLOSED);
	check_span(0, 1, 0, 1001, 1003, 0);
	stop();
}

/* A range that is not wanted is not told of, and yet keeps its end to itself. */
static void hidden_range(void)
{
	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	now_us = 1000;
	range_begin(0, TOP - 0x100); /* before the window */
	range_begin(1, TOP - 0x100);
	fixture_open(&fx, NS(1500));
	now_us = 2000;
	range_begin(0, TOP - 0x100);
	range_begin(2, TOP - 0x100); /* 2002 */
	range_end(TOP - 0x100);      /* 2 */
	range_end(TOP - 0x100);      /* the hidden one */
	CHECK_EQ(fx.depth[0], 1);
	range_end(TOP - 0x100); /* 1 */
	range_end(TOP - 0x100); /* the other hidden one */
	CHECK_EQ(fx.nr, 2);
	check_span(0, 1, 0, 1500, 2005, KPROF_EVENT_OPEN_AT_START);
	check_span(1, 2, 1, 2002, 2003, 0);
	CHECK_EQ(spans__count(fx.spans, 4)->orphan_ends, 0);
	stop();
}

static void window(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1}, b = {.addr = 0x2000, .site = 2};

	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	now_us = 1000;
	enter(1, TOP - 0x100, &a, 1);
	enter(2, TOP - 0x200, &b, 2);
	leave(TOP - 0x200, &b); /* wholly before the window: never told */
	enter(3, TOP - 0x200, &b, 3);
	CHECK_EQ(fx.nr, 0);
	fixture_open(&fx, NS(2000));
	leave(TOP - 0x200, &b); /* 1005: still before it */
	CHECK_EQ(fx.nr, 0);
	enter(4, TOP - 0x200, &b, 4);
	now_us = 2500;
	leave(TOP - 0x200, &b);
	leave(TOP - 0x100, &a);
	CHECK_EQ(fx.nr, 2);
	check_span(0, 1, 0, 2000, 2502, KPROF_EVENT_OPEN_AT_START);
	check_span(1, 4, 1, 2000, 2501, KPROF_EVENT_OPEN_AT_START);
	stop();
}

/* Spans of a thread that is silent throughout the window are told at its end. */
static void silent_thread(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1};

	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	enter(1, TOP - 0x100, &a, 1);
	fixture_open(&fx, NS(5000));
	CHECK_EQ(fx.nr, 0);
	CHECK_EQ(spans__finish(fx.spans), 0);
	CHECK_EQ(spans__finish(fx.spans), 0);
	CHECK_EQ(fx.nr, 1);
	check_span(0, 1, 0, 5000, 0, 0);
	stop();
}

static void late_times(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1};

	start();
	now_us = 5000;
	enter(1, TOP - 0x100, &a, 1);
	now_us = 4000;
	leave(TOP - 0x100, &a); /* arrived late: taken at the thread's last time */
	check_span(0, 1, 0, 5001, 5001, 0);
	CHECK_EQ(spans__late(fx.spans), 1);
	stop();
}

static void thread_end(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1};

	start();
	enter(1, TOP - 0x100, &a, 1);
	range_begin(2, TOP - 0x100);
	enter(3, TOP - 0x200, &a, 2);
	CHECK_EQ(spans__thread_end(fx.spans, thread, NS(9000)), 0);
	CHECK_EQ(fx.closed, 3);
	check_span(0, 1, 0, 1001, 9000, KPROF_EVENT_CLOSED);
	stop();
}

/* Frames that nothing ever closes: a bound, not all of memory. */
static void depth_bound(void)
{
	struct span_return a = {.addr = 0x1000};
	size_t deepest = 0;

	start();
	for (uint64_t i = 0; i < 600000; i++) {
		range_begin(1, TOP - 0x100);
		if (fx.depth[0] > deepest)
			deepest = fx.depth[0];
	}
	CHECK(deepest >= 1000);
	CHECK(deepest < 300000);
	CHECK_EQ(fx.begins, 600000);
	enter(2, TOP - 0x100, &a, 1);
	stop();
}

/* The next event has these counters. */
static void counted(uint64_t value)
{
	static uint64_t words[FIXTURE_WORDS];

	words[FIXTURE_WORDS - 1] = value;
	spans__counted(thread, words);
}

static void check_counted(size_t i, uint64_t at_begin, uint64_t at_end)
{
	CHECK(fx.told[i].counted);
	CHECK_EQ(fx.told[i].at_begin, at_begin);
	CHECK_EQ(fx.told[i].at_end, at_end);
}

static void counters(void)
{
	struct span_return a = {.addr = 0x1000, .site = 1}, b = {.addr = 0x2000, .site = 2},
			   none = {.addr = 0x3000};

	fixture_start(&fx, STACK);
	thread = spans__thread(fx.spans, 0, 1);
	spans__with_counters(fx.spans, FIXTURE_WORDS);
	now_us = 1000;
	counted(3);
	enter(1, TOP - 0x100, &a, 1);
	fixture_open(&fx, NS(now_us) + 1);
	for (size_t i = 0; i < 100; i++) { /* nested, and more than there was room for at first */
		counted(10 + i);
		enter(2, TOP - 0x200 - i * 0x10, &b, 2);
	}
	for (size_t i = 100; i-- > 0;) {
		counted(300 - i);
		leave(TOP - 0x200 - i * 0x10, &b);
	}
	for (size_t i = 0; i < 100; i++)
		check_counted(1 + i, 10 + i, 300 - i);
	counted(400);
	range_begin(3, TOP - 0x180);
	counted(410);
	enter(4, TOP - 0x200, &none, 3); /* its end will not be seen */
	counted(420);
	range_end(TOP - 0x180);
	check_counted(101, 400, 420);
	CHECK(!fx.told[102].counted);
	counted(430);
	enter(5, TOP - 0x200, &b, 2);
	spans__counted(thread, NULL); /* an event that nothing was read at */
	leave(TOP - 0x200, &b);
	CHECK(!fx.told[103].counted);
	enter(5, TOP - 0x200, &b, 2);
	counted(440);
	leave(TOP - 0x200, &b);
	CHECK(!fx.told[104].counted);
	leave(TOP - 0x100, &a);
	CHECK(!fx.told[0].counted); /* it began before the window */
	CHECK(fx.told[0].ended);
	stop();
}

static void on_stack(void)
{
	start();
	CHECK(spans__on_stack(fx.spans, thread, TOP - 0x100, TOP - 0x80));
	CHECK(!spans__on_stack(fx.spans, thread, TOP - 0x100, TOP - 0x180)); /* below: not in use */
	CHECK(!spans__on_stack(fx.spans, thread, TOP - 0x100, FIBRE));
	CHECK(!spans__on_stack(fx.spans, thread, TOP - 0x100, TOP));
	stop();
}

UNIT_MAIN(TEST(exact_ends), TEST(closed_by_the_next_event), TEST(ends_apart),
	  TEST(learnt_while_open), TEST(exception), TEST(recursion), TEST(tail_call),
	  TEST(call_again), TEST(call_from_elsewhere), TEST(followed_return), TEST(stacks_in_turn),
	  TEST(stack_left_behind), TEST(signal_stack), TEST(stack_growth), TEST(unknown_memory),
	  TEST(ranges), TEST(range_ends_early), TEST(range_left_open), TEST(hidden_range),
	  TEST(window), TEST(silent_thread), TEST(late_times), TEST(thread_end), TEST(depth_bound),
	  TEST(counters), TEST(on_stack))
