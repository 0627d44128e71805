// SPDX-License-Identifier: BSD-2-Clause
/* user/merge/clocks.c: against clocks whose difference is known. */
#include "merge/clocks.h"

#include <errno.h>
#include <math.h>

#include "unit.h"

#define SEC 1000000000ull
enum { MOST = 4000 };

static struct clock_bound bounds[MOST];
static size_t nr;

/* Fits the bounds, and finds the error for a time. */
static int fit_of(const struct clock_bound *of, size_t nr_of, uint64_t from_ns, uint64_t to_ns,
		  struct clock_fit *fit, uint64_t *error_ns)
{
	static struct clock_bound copy[2 * MOST];
	size_t left = nr_of;
	int err;

	memcpy(copy, of, nr_of * sizeof(*of));
	err = clock_fit(copy, &left, fit);
	CHECK(left <= nr_of);
	*error_ns = err ? 0 : clock_fit__error(fit, copy, left, from_ns, to_ns);
	return err;
}

static double at_random(double most)
{
	return most * rand() / RAND_MAX;
}

/* Clock A at a time of clock B. */
struct truth {
	uint64_t at_ns;
	long double to_ns, rate;
};

static long double a_at(const struct truth *t, uint64_t b_ns)
{
	long double since = (long double)(int64_t)(b_ns - t->at_ns);

	return t->to_ns + since * (1 + t->rate);
}

/*
 * `pairs` bounds of each side between two times of B: what happens on one machine comes at least
 * `least` and up to `most` ns later than what it waits for on the other one.
 */
static void make(const struct truth *t, size_t pairs, uint64_t from_ns, uint64_t to_ns,
		 double least, double most)
{
	nr = 0;
	for (size_t i = 0; i < pairs; i++) {
		uint64_t b_ns = from_ns + (uint64_t)at_random((double)(to_ns - from_ns));
		long double delay = least + at_random(most - least);

		/* B's begin, then A's end; A's begin, then B's end. */
		bounds[nr++] = (struct clock_bound){
			b_ns, (int64_t)(ceill(a_at(t, b_ns) + delay) - (long double)b_ns), true};
		bounds[nr++] = (struct clock_bound){
			b_ns, (int64_t)(floorl(a_at(t, b_ns) - delay) - (long double)b_ns), false};
	}
}

/* How far the line is from the truth, at most. */
static long double worst(const struct truth *t, const struct clock_line *line, uint64_t from_ns,
			 uint64_t to_ns)
{
	long double most = 0;

	for (int i = 0; i <= 100; i++) {
		uint64_t b_ns = from_ns + (to_ns - from_ns) / 100 * (uint64_t)i;
		long double off = fabsl((long double)clock_line__apply(line, b_ns) - a_at(t, b_ns));

		most = off > most ? off : most;
	}
	return most;
}

static void the_error_holds(void)
{
	srand(1);
	for (int i = 0; i < 60; i++) {
		uint64_t from_ns = 1 + (uint64_t)at_random(1e17),
			 to_ns = from_ns + SEC + (uint64_t)at_random(600e9);
		struct truth t = {from_ns, 1 + at_random(1e17), at_random(200e-6) - 100e-6};
		struct clock_fit fit;
		uint64_t error_ns;

		make(&t, 2 + (size_t)at_random(MOST / 2 - 2), from_ns, to_ns, 5e3,
		     5e3 + at_random(1e6));
		CHECK_EQ(fit_of(bounds, nr, from_ns, to_ns, &fit, &error_ns), 0);
		CHECK(worst(&t, &fit.line, from_ns, to_ns) <= (long double)error_ns);
		CHECK_EQ(fit.slack_ns, 0);
	}
}

static void many_bounds_leave_little(void)
{
	struct truth t = {77 * SEC, 5e15L, 20e-6};
	struct clock_fit fit;
	uint64_t error_ns;

	srand(2);
	make(&t, MOST / 2, 77 * SEC, 97 * SEC, 20e3, 2e6);
	CHECK_EQ(fit_of(bounds, nr, 77 * SEC, 97 * SEC, &fit, &error_ns), 0);
	/* The delay that there always is cannot be told apart from clocks; all else can. */
	CHECK(error_ns >= 20000 && error_ns < 80000);
	CHECK(fabs(fit.line.rate - 20e-6) < 5e-9 * 1e3);
	CHECK(worst(&t, &fit.line, 77 * SEC, 97 * SEC) < 20e3);
}

/* Two moments tell no speed: it is taken for the same, and the error grows with the distance. */
static void few_bounds(void)
{
	const struct clock_bound two[] = {{SEC, 1000, true}, {SEC, -1000, false}};
	struct clock_fit fit;
	uint64_t error_ns;

	CHECK_EQ(fit_of(two, 2, SEC, SEC, &fit, &error_ns), 0);
	CHECK(error_ns >= 1000 && error_ns <= 1002);
	CHECK(fabs(fit.line.rate) < 1e-12);
	CHECK_EQ(clock_line__apply(&fit.line, SEC), SEC);
	CHECK_EQ(fit_of(two, 2, SEC, 2 * SEC, &fit, &error_ns), 0);
	CHECK(error_ns > (uint64_t)(CLOCKS_MOST_DRIFT * 1e9) / 2 &&
	      error_ns <= (uint64_t)(CLOCKS_MOST_DRIFT * 1e9) + 1002);
	CHECK_EQ(fit_of(two, 1, SEC, SEC, &fit, &error_ns), -ENODATA);
	CHECK_EQ(fit_of(two + 1, 1, SEC, SEC, &fit, &error_ns), -ENODATA);
	CHECK_EQ(fit_of(two, 0, SEC, SEC, &fit, &error_ns), -ENODATA);
}

/*
 * A clock that goes right for 100 s, then `rate` faster: whether the line that is fitted is within
 * its error, in both halves.
 */
static void bend(long double rate, double least, double most, struct clock_fit *fit)
{
	const struct truth slow = {100 * SEC, 100e9L, 0}, fast = {200 * SEC, 200e9L, rate};
	static struct clock_bound all[2 * MOST];
	uint64_t error_ns;
	size_t first;

	make(&slow, 500, 100 * SEC, 200 * SEC, least, most);
	memcpy(all, bounds, nr * sizeof(*all));
	first = nr;
	make(&fast, 500, 200 * SEC, 300 * SEC, least, most);
	memcpy(all + first, bounds, nr * sizeof(*all));
	CHECK_EQ(fit_of(all, first + nr, 100 * SEC, 300 * SEC, fit, &error_ns), 0);
	CHECK(worst(&slow, &fit->line, 100 * SEC, 200 * SEC) <= (long double)error_ns);
	CHECK(worst(&fast, &fit->line, 200 * SEC, 300 * SEC) <= (long double)error_ns);
}

/* NTP changes a clock's speed on the way: a line with slack. */
static void a_speed_that_changes(void)
{
	struct clock_fit fit;

	srand(3);
	bend(3e-6L, 10e3, 50e3, &fit);
	CHECK(fit.slack_ns > 10000 && fit.slack_ns < 200000);
}

/* One that changes so little that there is a line: few lines are left, none of which is true. */
static void a_slight_bend(void)
{
	struct clock_fit fit;

	srand(9);
	for (int i = 1; i < 12; i++)
		bend(i * 2e-7L, 20e3, 220e3, &fit);
}

/* Bounds in the first second of ten minutes: a likely speed is taken, and the error is large. */
static void only_at_first(void)
{
	struct truth t = {SEC, 5e15L, 20e-6};
	struct clock_fit fit;
	uint64_t error_ns;

	srand(6);
	make(&t, 10, SEC, 2 * SEC, 20e3, 2e6);
	CHECK_EQ(fit_of(bounds, nr, SEC, 600 * SEC, &fit, &error_ns), 0);
	CHECK(fabs(fit.line.rate) <= CLOCKS_LIKELY_DRIFT);
	CHECK(worst(&t, &fit.line, SEC, 600 * SEC) <= (long double)error_ns);
	CHECK(error_ns > 100000000);
}

/* Of many bounds, those that lines do not touch are left out, and nothing changes by that. */
static void corners(void)
{
	struct truth t = {SEC, 5e12L, -7e-6};
	struct clock_fit fit;
	uint64_t error_ns;
	size_t left;

	srand(8);
	make(&t, MOST / 2, SEC, 100 * SEC, 20e3, 9e6);
	left = nr;
	CHECK_EQ(clock_fit(bounds, &left, &fit), 0);
	CHECK(left > 3 && left < 100);
	error_ns = clock_fit__error(&fit, bounds, left, SEC, 100 * SEC);
	CHECK(worst(&t, &fit.line, SEC, 100 * SEC) <= (long double)error_ns);
	/* Beyond the bounds, the error grows with the distance. */
	CHECK(clock_fit__error(&fit, bounds, left, SEC, 90000 * SEC) > error_ns);
}

static void contradictions(void)
{
	struct truth t = {SEC, 9e12L, 0}, other = {SEC, 9e12L + 50e6L, 0};
	struct clock_fit fit;
	uint64_t error_ns;
	static struct clock_bound all[MOST];
	size_t first;

	srand(4);
	make(&t, 20, SEC, 5 * SEC, 1e3, 1e6);
	memcpy(all, bounds, nr * sizeof(*all));
	first = nr;
	make(&other, 20, SEC, 5 * SEC, 1e3, 1e6);
	memcpy(all + first, bounds, nr * sizeof(*all));
	CHECK_EQ(fit_of(all, first + nr, SEC, 5 * SEC, &fit, &error_ns), -ERANGE);
	/* Numbers of a hostile file. */
	all[0] = (struct clock_bound){UINT64_MAX, INT64_MIN, true};
	all[1] = (struct clock_bound){0, INT64_MAX, false};
	fit_of(all, 2, 0, UINT64_MAX, &fit, &error_ns);
	clock_line__apply(&fit.line, UINT64_MAX);
}

static void lines(void)
{
	const struct clock_line line = {10 * SEC, 7000 * SEC, 50e-6}, none = {0};
	struct clock_line back = clock_line__inverse(&line), both = clock_line__then(&line, &back);

	CHECK_EQ(clock_line__apply(&none, 12345), 12345);
	CHECK_EQ(clock_line__apply(&none, UINT64_MAX), 1); /* "before" 0 */
	CHECK_EQ(clock_line__apply(&none, INT64_MAX), INT64_MAX);
	CHECK_EQ(clock_line__apply(&line, 10 * SEC), 7000 * SEC);
	CHECK_EQ(clock_line__apply(&line, 11 * SEC), 7001 * SEC + 50000);
	CHECK_EQ(clock_line__apply(&line, 9 * SEC), 6999 * SEC - 50000);
	for (uint64_t ns = SEC; ns < 1000 * SEC; ns += 7 * SEC + 1) {
		int64_t off =
			(int64_t)(clock_line__apply(&back, clock_line__apply(&line, ns)) - ns);

		CHECK(off >= -1 && off <= 1);
		CHECK_EQ(clock_line__apply(&both, ns), ns);
	}
}

UNIT_MAIN(TEST(the_error_holds), TEST(many_bounds_leave_little), TEST(few_bounds),
	  TEST(a_speed_that_changes), TEST(a_slight_bend), TEST(only_at_first), TEST(corners),
	  TEST(contradictions), TEST(lines))
