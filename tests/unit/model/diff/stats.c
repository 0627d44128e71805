// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/diff/stats.c against numbers that were computed otherwise: by closed forms (Student's
 * distribution with 1 and 2 degrees of freedom), by Simpson's rule over its density, and with
 * Python's `statistics`.
 */
#include <math.h>

#include "model/diff/stats.h"
#include "unit.h"
#include "util/util.h"

#define CLOSE(a, b, by)                                                                         \
	do {                                                                                    \
		double a_ = (a), b_ = (b);                                                      \
		if (!(fabs(a_ - b_) <= (by)*fabs(b_))) {                                        \
			printf("# %s:%d: %s is %.12g, not %.12g\n", __FILE__, __LINE__, #a, a_, \
			       b_);                                                             \
			unit_failures_here++;                                                   \
		}                                                                               \
	} while (0)

static void students_distribution(void)
{
	static const struct {
		double t, df, p;
	} simpson[] = {{2.0, 3, 0.13932596855884893},
		       {0.5, 7.5, 0.6314109646224553},
		       {3.3, 39, 0.002072385599367732},
		       {6, 19, 8.979235458728141e-06},
		       {2.5, 4.2, 0.0638154134665303}};

	for (int i = 0; i < 100; i++) {
		double t = 0.37 * i;

		CLOSE(stats_t_p(t, 1), 1 - 2 * atan(t) / M_PI, 1e-9);
		CLOSE(stats_t_p(-t, 2), 1 - t / sqrt(2 + t * t), 1e-9);
		CLOSE(stats_t_p(t, 1e9), erfc(t / sqrt(2)), 1e-9);
	}
	for (size_t i = 0; i < ARRAY_SIZE(simpson); i++)
		CLOSE(stats_t_p(simpson[i].t, simpson[i].df), simpson[i].p, 1e-8);
	CLOSE(stats_t_p(0, 5), 1, 1e-12);
	CLOSE(stats_t_p(NAN, 5), 1, 0);
	CLOSE(stats_t_p(3, 0), 1, 0);
	CHECK(stats_t_p(INFINITY, 5) == 0);
}

static void its_quantiles(void)
{
	/* From any printed table. */
	CLOSE(stats_t_of_p(0.05, 1), 12.7062, 1e-5);
	CLOSE(stats_t_of_p(0.05, 10), 2.22814, 1e-5);
	CLOSE(stats_t_of_p(0.01, 10), 3.16927, 1e-5);
	CLOSE(stats_t_of_p(0.05, 1e12), 1.959964, 1e-6);
	for (int i = 0; i < 15; i++)
		for (int j = 0; j < 8; j++)
			CLOSE(stats_t_p(stats_t_of_p(pow(7, -i), pow(2.3, j)), pow(2.3, j)),
			      pow(7, -i), 1e-6);
	CHECK(isinf(stats_t_of_p(0, 5)));
	CHECK(isinf(stats_t_of_p(0.05, 0)));
}

static void welchs_test(void)
{
	static const double a[] = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
				   21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
	static const double b[] = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
				   24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4};
	double ones[ARRAY_SIZE(a)], sums[2] = {0}, squares[2] = {0};
	struct stats_mean x, y;
	struct stats_difference d;

	for (size_t i = 0; i < ARRAY_SIZE(a); i++) {
		ones[i] = 1;
		sums[0] += a[i];
		sums[1] += b[i];
		squares[0] += a[i] * a[i];
		squares[1] += b[i] * b[i];
	}
	/* Blocks of equal length, and runs, are both so many observations. */
	for (int runs = 0; runs < 2; runs++) {
		x = runs ? stats_of_runs(sums[0], squares[0], ARRAY_SIZE(a))
			 : stats_of_blocks(a, ones, ARRAY_SIZE(a), 0);
		y = runs ? stats_of_runs(sums[1], squares[1], ARRAY_SIZE(b))
			 : stats_of_blocks(b, ones, ARRAY_SIZE(b), 0);
		d = stats_welch(&x, &y);
		CLOSE(d.change, 2.833333333333332, 1e-9);
		CLOSE(d.error, 0.9931223809239543, 1e-9);
		CLOSE(d.df, 27.88730398842012, 1e-9);
		CLOSE(d.p, 0.008071938172209858, 1e-8);
	}
	/* What is known besides widens the interval, and has no end of degrees of freedom. */
	stats_widen(&d, 1, INFINITY);
	CLOSE(d.error, sqrt(0.9931223809239543 * 0.9931223809239543 + 1), 1e-9);
	CHECK(d.df > 100 && d.p > 0.04);
}

static void blocks(void)
{
	static const double n[] = {10, 12, 9, 11, 14, 8, 10, 13, 9};
	static const double equal[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
	static const double calls[] = {1, 2, 1, 1};
	struct stats_mean m = stats_of_blocks(n, equal, 9, 0);

	CLOSE(m.mean, 10.666666666666666, 1e-12);
	CLOSE(m.var, 0.4444444444444444, 1e-12);
	CLOSE(m.df, 8, 0);
	/* Pairs: the ninth has none, and counts in the mean. */
	m = stats_of_blocks(n, equal, 9, 1);
	CLOSE(m.mean, 10.666666666666666, 1e-12);
	CLOSE(m.var, 0.09895833333333333, 1e-12);
	CLOSE(m.df, 3, 0);
	/* Too few of four. */
	CLOSE(stats_of_blocks(n, equal, 9, 2).df, 0, 0);
	/* A ratio: the residuals count, not the values. */
	m = stats_of_blocks(n, calls, 4, 0);
	CLOSE(m.mean, 8.4, 1e-12);
	CLOSE(m.var, 1.7450666666666665, 1e-12);
	m = stats_of_blocks(n, equal, 0, 0);
	CHECK(m.mean == 0 && m.df == 0);
	CHECK(stats_of_runs(5, 25, 1).df == 0);
	CHECK(stats_of_runs(0, 0, 0).mean == 0);
}

static void no_spread(void)
{
	const struct stats_mean zero = {0, 0, 39}, three = {3, 0, 39}, unknown = {3, 0, 0};

	CHECK(stats_welch(&zero, &zero).p == 1);
	CHECK(stats_welch(&zero, &three).p == 0);
	CHECK(stats_welch(&zero, &unknown).df == 0);
	CHECK(stats_welch(&zero, &unknown).p == 1);
}

static void excess_of_the_median(void)
{
	/* Without variances of their own: the median square, 9, is 0.4549 of the variance. */
	static const struct stats_value bare[] = {{-1, 0}, {2, 0}, {3, 0}, {-100, 0}, {50, 0}};
	/* Their own variances are enough: 1 / 4 and 4 / 16 are below 0.4549. */
	static const struct stats_value explained[] = {{1, 4}, {-2, 16}, {30, 1}};
	/* Three of five above the median are chance. */
	static const struct stats_value chance[] = {{0, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 1}};
	/* Half of the squares are above it if (3 * 3) / (1 + x) is. */
	static const struct stats_value some[] = {{-1, 1}, {3, 1}, {5, 1}};

	CLOSE(stats_excess_var(bare, 5, 0), 9 / 0.454936423119573, 1e-6);
	CHECK(stats_excess_var(explained, 3, 0) == 0);
	CLOSE(stats_excess_var(some, 3, 0), 9 / 0.454936423119573 - 1, 1e-6);
	CHECK(stats_excess_var(chance, 5, 1) == 0);
	CHECK(stats_excess_var(chance, 5, 0) > 0);
	CHECK(stats_excess_var(NULL, 0, 0) == 0);
}

static void holms_order(void)
{
	/* Holm (1979): 0.01 * 4, 0.013 * 3 (no less than before), 0.03 * 2, 0.04 * 1. */
	struct stats_test tests[] = {{.p = 0.04, .index = 0},
				     {.p = 0.01, .index = 1},
				     {.p = 0.03, .index = 2},
				     {.p = 0.013, .index = 3}};

	stats_holm(tests, 4, 0.05);
	CHECK_EQ(tests[0].index, 1);
	CLOSE(tests[0].adjusted, 0.04, 1e-12);
	CHECK_EQ(tests[1].index, 3);
	CLOSE(tests[1].adjusted, 0.04, 1e-12);
	CHECK_EQ(tests[2].index, 2);
	CLOSE(tests[2].adjusted, 0.06, 1e-12);
	CHECK_EQ(tests[3].index, 0);
	CLOSE(tests[3].adjusted, 0.06, 1e-12);
	/* Intervals agree: from the first that is not rejected on, all have its divisor. */
	CLOSE(tests[0].divisor, 4, 0);
	CLOSE(tests[1].divisor, 3, 0);
	CLOSE(tests[2].divisor, 2, 0);
	CLOSE(tests[3].divisor, 2, 0);
	stats_holm(tests, 0, 0.05);
}

UNIT_MAIN(TEST(students_distribution), TEST(its_quantiles), TEST(welchs_test), TEST(blocks),
	  TEST(no_spread), TEST(excess_of_the_median), TEST(holms_order))
