// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/counts.c: what calls had of counters, in all, by themselves, and not known. */
#include "fake_store.h"
#include "unit.h"

#include "kprof/counters.h"

static struct kprof_capture *c;
static struct kprof_result *r;
static uint32_t add, sum, keys[2];
static struct store_attr attrs[64][2];
static size_t nr_spans;

/* The window is 1000 … 9000 ns. */
static void begin(void)
{
	fake_reset();
	fake_meta("counters", "[\"page-faults\", \"task-clock\"]");
	fake_clock(1000, 1000);
	fake_source(0, "operators");
	fake_thread(0, 1, 1, "main");
	fake_thread(1, 1, 2, "other");
	add = fake_what("aten::add");
	sum = fake_what("aten::sum");
	keys[0] = fake_string("page-faults");
	keys[1] = fake_string("task-clock");
	nr_spans = 0;
}

static uint64_t enter(uint64_t ns, uint32_t thread, uint32_t what)
{
	fake_begin(ns, thread, what);
	return ++nr_spans;
}

/* Ends the thread's innermost span, which had so many page faults, and ten times that of ns. */
static void leave(uint64_t ns, uint32_t thread, uint64_t span, uint64_t faults)
{
	attrs[span][0] = (struct store_attr){keys[0], STORE_ATTR_COUNT, faults};
	attrs[span][1] = (struct store_attr){keys[1], STORE_ATTR_COUNT, faults * 10};
	fake_args(span, attrs[span], 2);
	fake_end(ns, thread);
}

static void end(enum kprof_by by)
{
	fake_finish(9000);
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, by, KPROF_SORT_SELF, &r), 0);
	if (!r)
		abort();
}

static void close_it(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
}

static struct kprof_count count_of(const char *name, size_t counter)
{
	struct kprof_count n = {0};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name))
			CHECK(kprof_result_count(r, i, counter, &n));
	return n;
}

#define CHECK_COUNT(n, TOTAL, CALLS, SELF, SELF_CALLS) \
	do {                                           \
		struct kprof_count n_ = (n);           \
		CHECK_EQ(n_.total, TOTAL);             \
		CHECK_EQ(n_.calls, CALLS);             \
		CHECK_EQ(n_.self, SELF);               \
		CHECK_EQ(n_.self_calls, SELF_CALLS);   \
	} while (0)

static void self_and_children_are_the_total(void)
{
	struct kprof_count n;
	uint64_t outer, inner;

	begin();
	outer = enter(2000, 0, sum);
	inner = enter(2100, 0, add);
	leave(2200, 0, inner, 3);
	inner = enter(2300, 0, add);
	leave(2400, 0, inner, 4);
	leave(2500, 0, outer, 9);
	outer = enter(2000, 1, sum); /* another thread, at the same time */
	leave(2600, 1, outer, 100);
	end(KPROF_BY_OP);
	CHECK_COUNT(count_of("aten::sum", 0), 109, 2, 102, 2);
	CHECK_COUNT(count_of("aten::add", 0), 7, 2, 7, 2);
	CHECK_COUNT(count_of("aten::sum", 1), 1090, 2, 1020, 2);
	CHECK(!kprof_result_count(r, 0, 2, &n));
	CHECK(!kprof_result_count(r, 2, 0, &n));
	close_it();
}

static void inside_of_itself(void)
{
	uint64_t a, b, d;

	begin();
	a = enter(2000, 0, add);
	b = enter(2100, 0, sum);
	d = enter(2200, 0, add);
	leave(2300, 0, d, 2);
	leave(2400, 0, b, 5);
	leave(2500, 0, a, 11);
	end(KPROF_BY_OP);
	/* each fault once */
	CHECK_COUNT(count_of("aten::add", 0), 11, 2, 6 + 2, 2);
	CHECK_COUNT(count_of("aten::sum", 0), 5, 1, 3, 1);
	close_it();
}

/* The outer one's end was not seen: it has no number, the inner one has. */
static void not_known(void)
{
	uint64_t a, b;

	begin();
	enter(2000, 0, add);
	b = enter(2100, 0, add);
	leave(2200, 0, b, 2);
	fake_end_flags(2300, 0, KPROF_EVENT_CLOSED);
	a = enter(3000, 0, sum);
	enter(3100, 0, add);
	fake_end_flags(3200, 0, KPROF_EVENT_CLOSED);
	leave(3300, 0, a, 7); /* what of it is its own is not known */
	end(KPROF_BY_OP);
	CHECK_COUNT(count_of("aten::add", 0), 2, 1, 2, 1);
	CHECK_COUNT(count_of("aten::sum", 0), 7, 1, 0, 0);
	close_it();
}

/* A span that the range cuts has no number for the part. */
static void a_part(void)
{
	const struct kprof_range range = {.sz = sizeof(range), .has_from = true, .from_ns = 1200};
	uint64_t a, b;

	begin();
	a = enter(2000, 0, sum);
	b = enter(2300, 0, add);
	leave(2400, 0, b, 2);
	leave(2500, 0, a, 7);
	fake_finish(9000);
	c = fake_capture();
	CHECK_EQ(kprof_capture_select(c, &range), 0);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	CHECK_COUNT(count_of("aten::sum", 0), 0, 0, 0, 0);
	CHECK_COUNT(count_of("aten::add", 0), 2, 1, 2, 1);
	close_it();
}

/* What no recording would have said: the capture's own numbers, and a program's. */
static void senseless(void)
{
	static struct store_attr own[2];
	uint64_t a, b;

	begin();
	fake_meta("counters", "[\"page-faults\", 7, \"\", \"page-faults\", null, \"task-clock\"]");
	a = enter(2000, 0, sum);
	b = enter(2100, 0, add);
	leave(2200, 0, b, UINT64_MAX / 10);
	leave(2500, 0, a, 7); /* less than what is inside of it */
	a = enter(3000, 0, sum);
	/* an annotation's argument of that name is no counter */
	own[0] = (struct store_attr){keys[0], STORE_ATTR_U64, 5};
	own[1] = (struct store_attr){keys[1], STORE_ATTR_STRING, 1};
	fake_args(a, own, 2);
	fake_end(3100, 0);
	end(KPROF_BY_OP);
	CHECK_COUNT(count_of("aten::sum", 0), 7, 1, 0, 0);
	CHECK_COUNT(count_of("aten::add", 0), UINT64_MAX / 10, 1, UINT64_MAX / 10, 1);
	CHECK_STR(kprof_capture_counter(c, 1), "task-clock");
	CHECK(!kprof_capture_counter(c, 2));
	close_it();
	begin();
	fake_meta("counters", "{\"a\": \"b\"}");
	a = enter(2000, 0, sum);
	leave(2500, 0, a, 7);
	end(KPROF_BY_THREAD);
	CHECK(!kprof_capture_counter(c, 0));
	close_it();
}

UNIT_MAIN(TEST(self_and_children_are_the_total), TEST(inside_of_itself), TEST(not_known),
	  TEST(a_part), TEST(senseless))
