// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/report/result.c: the tables, from streams written by hand and, held to a slow count,
 * random ones.
 */
#include "model_fixture.h"
#include "unit.h"

#include "kprof.h"

static void expect(const struct kprof_result *r, size_t i, const char *name, uint64_t calls,
		   uint64_t total_ns, uint64_t self_ns, uint64_t min_ns, uint64_t max_ns,
		   uint64_t inexact)
{
	const struct kprof_row *row = kprof_result_row(r, i);

	CHECK(row);
	if (!row)
		return;
	CHECK_STR(row->name, name);
	CHECK_EQ(row->calls, calls);
	CHECK_EQ(row->total_ns, total_ns);
	CHECK_EQ(row->self_ns, self_ns);
	CHECK_EQ(row->min_ns, min_ns);
	CHECK_EQ(row->max_ns, max_ns);
	CHECK_EQ(row->inexact, inexact);
}

/*
 *  thread 0   a(100..200) { b(110..160) { a(120..150) } b(170..180, closed) }  a(300..310)
 *  thread 1   a(120..220) { c(130..., open to 400) … } both open at the end, at 400
 *  Overloads of one name are one row; "b" of another category is not.
 */
static void fill(void)
{
	uint32_t a, a2, b, b2, c;

	start_capture(10, "main", "worker", "idle");
	a = fake_what("a");
	a2 = fake_what_of("a", "out", "cpu_op", 0);
	b = fake_what("b");
	b2 = fake_what_of("b", "", "user_annotation", 0);
	c = fake_what("c");
	fake_what("never called");
	fake_begin(100, 0, a);
	fake_begin(110, 0, b);
	fake_begin(120, 0, a2);
	fake_begin(120, 1, a);
	fake_begin(130, 1, c);
	fake_end(150, 0);
	fake_end(160, 0);
	fake_begin(170, 0, b);
	fake_end_flags(180, 0, KPROF_EVENT_CLOSED);
	fake_end(200, 0);
	fake_begin(300, 0, a2);
	fake_begin(301, 0, b2);
	fake_end(303, 0);
	fake_end(310, 0);
	fake_finish(400);
}

static void by_op(void)
{
	struct kprof_capture *c;
	struct kprof_result *r;

	fill();
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	kprof_capture_close(c); /* a result outlives what it was made of */
	CHECK_EQ(kprof_result_nr_rows(r), 4);
	/*
	 * a: 100 + 10 on thread 0, 280 on thread 1; the 30 within are counted as self only. b's
	 * second call was closed by the next event: counted, but not timed.
	 */
	expect(r, 0, "c", 1, 269, 269, 269, 269, 1);
	expect(r, 1, "a", 4, 390, 40 + 30 + 8 + 11, 10, 280, 1);
	expect(r, 2, "b", 2, 50, 20, 50, 50, 1);
	expect(r, 3, "b", 1, 2, 2, 2, 2, 0);
	CHECK_STR(kprof_result_row(r, 2)->category, "cpu_op");
	CHECK_STR(kprof_result_row(r, 3)->category, "user_annotation");
	CHECK(!kprof_result_row(r, 4));
	CHECK_EQ(kprof_result_self_total_ns(r), 380);
	/* 110 on thread 0, of which 10 in b's closed call; 280 on thread 1 */
	CHECK(kprof_result_row(r, 0)->self_share == 269.0 / 390.0);
	CHECK(kprof_result_row(r, 1)->total_share == 1);
	kprof_result_free(r);
}

static void by_thread(void)
{
	struct kprof_capture *c;
	struct kprof_result *r;

	fill();
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_THREAD, KPROF_SORT_NAME, &r), 0);
	kprof_capture_close(c);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	expect(r, 0, "10/10 main", 6, 110, 100, 2, 100, 1);
	expect(r, 1, "10/11 worker", 2, 280, 280, 269, 280, 2);
	CHECK_EQ(kprof_result_row(r, 1)->pid, 10);
	CHECK_EQ(kprof_result_row(r, 1)->tid, 11);
	CHECK_STR(kprof_result_row(r, 1)->category, "");
	CHECK_EQ(kprof_result_self_total_ns(r), 380);
	kprof_result_free(r);
}

/*
 * p: 1 call of 30; q, s: 2 of 15; t: 3 of 10 (self 5 each, around another q of 5): who leads when.
 */
static void orders(void)
{
	static const struct {
		enum kprof_sort sort;
		const char *names;
	} expected[] = {
		{KPROF_SORT_SELF, "qpst"},  /* 45, 30, 30, 15 */
		{KPROF_SORT_TOTAL, "qpst"}, /* 45, then 30 each, by name */
		{KPROF_SORT_COUNT, "qtsp"}, /* 5, 3, 2, 1 */
		{KPROF_SORT_AVG, "pstq"},   /* 30, 15, 10, 9 */
		{KPROF_SORT_NAME, "pqst"},
	};
	struct kprof_capture *c;
	struct kprof_result *r;
	uint32_t p, q, s, t;
	uint64_t now = 100;

	start_capture(1, "main");
	t = fake_what("t"), s = fake_what("s"), q = fake_what("q"), p = fake_what("p");
	fake_begin(now, 0, p), fake_end(now += 30, 0);
	for (int i = 0; i < 2; i++) {
		fake_begin(now, 0, q), fake_end(now += 15, 0);
		fake_begin(now, 0, s), fake_end(now += 15, 0);
	}
	for (int i = 0; i < 3; i++) {
		fake_begin(now, 0, t);
		fake_begin(now, 0, q), fake_end(now += 5, 0);
		fake_end(now += 5, 0);
	}
	fake_finish(now);
	c = fake_capture();
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char names[5] = "";

		CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, expected[i].sort, &r), 0);
		for (size_t j = 0; j < kprof_result_nr_rows(r) && j < 4; j++)
			names[j] = kprof_result_row(r, j)->name[0];
		CHECK_STR(names, expected[i].names);
		kprof_result_free(r);
	}
	CHECK_EQ(kprof_result_new(c, (enum kprof_by)(KPROF_BY_FLOPS + 1), KPROF_SORT_SELF, &r),
		 -EINVAL);
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, (enum kprof_sort)9, &r), -EINVAL);
	CHECK(!r);
	kprof_result_free(NULL);
	kprof_capture_close(c);
}

static void empty(void)
{
	struct kprof_capture *c;
	struct kprof_result *r;

	fake_reset();
	fake_finish(5);
	c = fake_capture();
	for (int by = KPROF_BY_OP; by <= KPROF_BY_THREAD; by++) {
		CHECK_EQ(kprof_result_new(c, (enum kprof_by)by, KPROF_SORT_SELF, &r), 0);
		CHECK_EQ(kprof_result_nr_rows(r), 0);
		CHECK_EQ(kprof_result_self_total_ns(r), 0);
		CHECK(!kprof_result_row(r, 0));
		kprof_result_free(r);
	}
	kprof_capture_close(c);
}

static void read_error(void)
{
	struct kprof_capture *c;
	struct kprof_result *r;

	fill();
	fake_source(0, "operators")->source.begins = 1; /* or the events are counted at open */
	c = fake_capture();
	fake.fail_at = fake.nr - 4;
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), -EIO);
	CHECK(!r);
	CHECK_STR(kprof_error_cause(), "the disk is on fire");
	kprof_capture_close(c);
}

/* ---- random streams against a count that compares everything with everything ---- */

#define THREADS 4
#define NAMES 5
#define EVENTS 400

static uint64_t seed;

static uint32_t roll(uint32_t sides)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % sides;
}

static void random_stream(void)
{
	static const char *const names[NAMES] = {"v", "w", "x", "y", "z"};
	uint64_t now = 1000;

	fake_reset();
	fake_clock(1000, 1000);
	fake_source(0, "operators");
	for (int i = 0; i < NAMES; i++)
		fake_what_of(names[i], "", i & 1 ? "cuda_runtime" : "cpu_op", 0);
	for (uint32_t i = 0; i < THREADS; i++)
		fake_thread(i, 1, i + 1, "t")->thread.exit_ns = roll(3) ? 0 : 1000 + roll(20000);
	for (int i = 0; i < EVENTS; i++) {
		now += roll(100);
		if (roll(20) == 0)
			now -= roll(400);
		if (roll(2))
			fake_begin(now, roll(THREADS), 1 + roll(NAMES));
		else
			fake_end_flags(now, roll(THREADS), roll(8) ? 0 : KPROF_EVENT_CLOSED);
	}
	fake_finish(1000 + roll(30000));
}

struct all {
	struct kprof_event events[EVENTS];
	size_t nr;
};

static int keep(void *ctx, const struct kprof_event *e)
{
	struct all *all = ctx;

	all->events[all->nr++] = *e;
	return 0;
}

static const struct kprof_event *by_id(const struct all *all, uint64_t id)
{
	for (size_t i = 0; i < all->nr; i++) {
		if (all->events[i].id == id)
			return &all->events[i];
	}
	return NULL;
}

/* Children lie in their parents, come before them, don't overlap; self is what they leave. */
static void check_nesting(const struct all *all, const struct kprof_capture_info *info)
{
	for (size_t i = 0; i < all->nr; i++) {
		const struct kprof_event *e = &all->events[i], *parent = by_id(all, e->parent_id);
		uint64_t children_ns = 0;

		CHECK(e->start_mono_ns >= info->start_mono_ns);
		CHECK(e->start_mono_ns <= e->end_mono_ns);
		CHECK(e->end_mono_ns <= info->end_mono_ns);
		CHECK_EQ(e->depth, parent ? parent->depth + 1 : 0);
		CHECK(!parent == !e->parent_id);
		if (parent) {
			CHECK(parent > e);
			CHECK(parent->id < e->id);
			CHECK_EQ(parent->tid, e->tid);
			CHECK_STR(parent->name, e->parent_name);
			CHECK(parent->start_mono_ns <= e->start_mono_ns);
			CHECK(parent->end_mono_ns >= e->end_mono_ns);
		}
		for (size_t j = 0; j < all->nr; j++) {
			const struct kprof_event *o = &all->events[j];

			if (o->parent_id == e->id)
				children_ns += o->end_mono_ns - o->start_mono_ns;
			if (j < i && o->tid == e->tid && o->depth == e->depth)
				CHECK(o->end_mono_ns <= e->start_mono_ns);
		}
		CHECK_EQ(e->self_ns, e->end_mono_ns - e->start_mono_ns - children_ns);
	}
}

static bool same_row(const struct kprof_event *a, const struct kprof_event *b, enum kprof_by by)
{
	return by == KPROF_BY_THREAD ? a->tid == b->tid : !strcmp(a->name, b->name);
}

/* Whether a span around it counts for the same row's total. */
static bool within_own_row(const struct all *all, const struct kprof_event *e, enum kprof_by by)
{
	const struct kprof_event *up = e;

	while ((up = by_id(all, up->parent_id))) {
		if (same_row(up, e, by) && !(up->flags & KPROF_EVENT_CLOSED))
			return true;
	}
	return false;
}

static bool of_row(const struct kprof_event *e, const struct kprof_row *row, enum kprof_by by)
{
	return by == KPROF_BY_THREAD ? e->tid == row->tid : !strcmp(e->name, row->name);
}

/* What a reader expects of every table: parts are no larger than the whole. */
static void check_sums(const struct kprof_result *r, const struct kprof_capture *c,
		       enum kprof_by by)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	uint64_t window_ns = info->end_mono_ns - info->start_mono_ns, self_ns = 0, total_ns = 0;
	double shares = 0;

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		CHECK(row->self_share <= row->total_share && row->total_share <= 1 + 1e-9);
		CHECK(row->total_ns <= window_ns * (by == KPROF_BY_THREAD ? 1 : THREADS));
		CHECK(row->max_ns <= row->total_ns);
		self_ns += row->self_ns;
		total_ns += row->total_ns;
		shares += by == KPROF_BY_THREAD ? row->total_share : row->self_share;
	}
	CHECK(self_ns <= window_ns * THREADS);
	CHECK(shares <= 1 + 1e-9);
	if (by == KPROF_BY_THREAD)
		CHECK(total_ns <= window_ns * THREADS && (!total_ns || shares > 1 - 1e-9));
}

static void check_rows(const struct all *all, struct kprof_capture *c, enum kprof_by by)
{
	uint64_t calls = 0, self_ns = 0;
	struct kprof_result *r;

	CHECK_EQ(kprof_result_new(c, by, KPROF_SORT_SELF, &r), 0);
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);
		struct kprof_row want = {.min_ns = UINT64_MAX};

		for (size_t j = 0; j < all->nr; j++) {
			const struct kprof_event *e = &all->events[j];
			uint64_t duration_ns = e->end_mono_ns - e->start_mono_ns;

			if (!of_row(e, row, by))
				continue;
			want.calls++;
			want.inexact += (e->flags & 3) != 0;
			if (e->flags & KPROF_EVENT_CLOSED)
				continue;
			want.timed++;
			want.self_ns += e->self_ns;
			if (!within_own_row(all, e, by))
				want.total_ns += duration_ns;
			want.min_ns = duration_ns < want.min_ns ? duration_ns : want.min_ns;
			want.max_ns = duration_ns > want.max_ns ? duration_ns : want.max_ns;
		}
		CHECK_EQ(row->calls, want.calls);
		CHECK_EQ(row->timed, want.timed);
		CHECK_EQ(row->total_ns, want.total_ns);
		CHECK_EQ(row->self_ns, want.self_ns);
		CHECK_EQ(row->min_ns, want.timed ? want.min_ns : 0);
		CHECK_EQ(row->max_ns, want.max_ns);
		CHECK_EQ(row->inexact, want.inexact);
		CHECK(row->self_ns <= row->total_ns);
		if (by == KPROF_BY_THREAD && row->timed == row->calls)
			CHECK_EQ(row->self_ns, row->total_ns);
		calls += row->calls;
		self_ns += row->self_ns;
	}
	for (size_t j = 0; by == KPROF_BY_API && j < all->nr; j++)
		calls += strcmp(all->events[j].category, "cuda_runtime") != 0;
	CHECK_EQ(calls, all->nr);
	CHECK_EQ(self_ns, kprof_result_self_total_ns(r));
	if (by != KPROF_BY_API)
		check_sums(r, c, by);
	kprof_result_free(r);
}

static void random_streams(void)
{
	static struct all all;

	for (uint64_t run = 1; run <= 200; run++) {
		struct kprof_capture *c;
		uint64_t begins = 0;

		seed = run;
		random_stream();
		for (size_t i = 0; i < fake.nr; i++)
			begins += fake.records[i].type == STORE_BEGIN;
		c = fake_capture();
		all.nr = 0;
		CHECK_EQ(kprof_capture_events(c, keep, &all), 0);
		CHECK_EQ(all.nr, begins);
		check_nesting(&all, kprof_capture_info(c));
		check_rows(&all, c, KPROF_BY_OP);
		check_rows(&all, c, KPROF_BY_THREAD);
		check_rows(&all, c, KPROF_BY_API);
		kprof_capture_close(c);
		if (unit_failures_here) {
			printf("# with seed %llu\n", (unsigned long long)run);
			return;
		}
	}
}

UNIT_MAIN(TEST(by_op), TEST(by_thread), TEST(orders), TEST(empty), TEST(read_error),
	  TEST(random_streams))
