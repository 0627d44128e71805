// SPDX-License-Identifier: BSD-2-Clause
#include "model/diff/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- means ---- */

static double sum_of(const double *v, size_t nr)
{
	double sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += v[i];
	return sum;
}

struct stats_mean stats_of_blocks(const double *n, const double *d, size_t nr, unsigned int level)
{
	size_t joined = (size_t)1 << level, used = nr / joined * joined, groups = 0;
	double all = sum_of(d, nr), whole = sum_of(d, used), residuals = 0, ratio;
	struct stats_mean out = {.mean = all > 0 ? sum_of(n, nr) / all : 0};

	if (whole <= 0)
		return out;
	ratio = sum_of(n, used) / whole;
	for (size_t i = 0; i < used; i += joined) {
		double units = sum_of(d + i, joined);
		double residual = sum_of(n + i, joined) - ratio * units;

		residuals += residual * residual;
		groups += units > 0;
	}
	if (groups < STATS_MIN_BLOCKS)
		return out;
	out.df = (double)groups - 1;
	out.var = residuals * (double)groups / out.df / (whole * whole);
	return out;
}

struct stats_mean stats_of_runs(double sum, double squares, size_t nr)
{
	double n = (double)nr, spread;
	struct stats_mean out = {.mean = nr ? sum / n : 0};

	if (nr < 2)
		return out;
	out.df = n - 1;
	spread = (squares - sum * sum / n) / out.df;
	out.var = spread > 0 ? spread / n : 0;
	return out;
}

/* ---- Student's distribution ---- */

#define TINY 1e-300
#define STEPS_MAX 500

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	f = d;
	for (int m = 1; m < STEPS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 + even * d;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = 1 + even / c;
		c = fabs(c) < TINY ? TINY : c;
		f *= c * d;
		d = 1 + odd * d;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = 1 + odd / c;
		c = fabs(c) < TINY ? TINY : c;
		f *= c * d;
		if (fabs(c * d - 1) < 1e-14)
			break;
	}
	return f;
}

/* lgamma() writes to a global variable. */
static double log_gamma(double v)
{
	int sign;

	return lgamma_r(v, &sign);
}

/* The regularized incomplete beta function. */
static double beta_share(double a, double b, double x)
{
	double front;

	if (!(x > 0))
		return 0;
	if (x >= 1)
		return 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* From here on Student's distribution is the normal one as far as a double can tell it. */
#define DF_NORMAL 1e7

double stats_t_p(double t, double df)
{
	if (!(df > 0) || isnan(t))
		return 1;
	if (df > DF_NORMAL)
		return erfc(fabs(t) / sqrt(2));
	return beta_share(df / 2, 0.5, df / (df + t * t));
}

double stats_t_of_p(double p, double df)
{
	double low = 0, high = 1;

	if (!(df > 0) || !(p > 0))
		return INFINITY;
	while (high < 1e12 && stats_t_p(high, df) > p)
		high *= 2;
	for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2;

		if (stats_t_p(middle, df) > p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* ---- tests ---- */

static double squared(double v)
{
	return v * v;
}

/* The test of a change whose standard error and degrees of freedom are known. */
static void test(struct stats_difference *d)
{
	d->p = 1;
	if (d->df > 0 && d->error > 0)
		d->p = stats_t_p(d->change / d->error, d->df);
	else if (d->df > 0 && d->change != 0)
		d->p = 0;
}

struct stats_difference stats_welch(const struct stats_mean *a, const struct stats_mean *b)
{
	double var = a->var + b->var, below;
	struct stats_difference out = {.change = b->mean - a->mean, .error = sqrt(var), .p = 1};

	if (!(a->df > 0) || !(b->df > 0))
		return out;
	below = squared(a->var) / a->df + squared(b->var) / b->df;
	/* A side that is 0 in all of its blocks has no spread. */
	out.df = below > 0 ? squared(var) / below : a->df + b->df;
	test(&out);
	return out;
}

void stats_widen(struct stats_difference *d, double var, double df)
{
	double own = squared(d->error), below = squared(var) / df;

	if (!(d->df > 0) || !(var > 0))
		return;
	below += squared(own) / d->df;
	d->df = squared(own + var) / below;
	d->error = sqrt(own + var);
	test(d);
}

/* ---- excess variance ---- */

/* The median of the squared normal distribution: that of chi-squared with one degree. */
#define MEDIAN_OF_SQUARE 0.454936423119573
/* The efficiency of a scale that is estimated by a median, where values are normal. */
#define MEDIAN_EFFICIENCY 0.368

double stats_median_df(size_t nr)
{
	return MEDIAN_EFFICIENCY * (double)nr;
}

/* How many squares are above the median that they should have. */
static double above_median(const struct stats_value *values, size_t nr, double var)
{
	size_t above = 0;

	for (size_t i = 0; i < nr; i++)
		above += squared(values[i].value) > MEDIAN_OF_SQUARE * (values[i].var + var);
	return (double)above;
}

double stats_excess_var(const struct stats_value *values, size_t nr, double doubt)
{
	double half = (double)nr / 2, low = 0, high = 0;

	if (above_median(values, nr, 0) <= half + doubt * sqrt((double)nr) / 2)
		return 0;
	for (size_t i = 0; i < nr; i++)
		high = fmax(high, squared(values[i].value) / MEDIAN_OF_SQUARE);
	for (int i = 0; i < 100 && high - low > 1e-9 * high; i++) {
		double middle = (low + high) / 2;

		if (above_median(values, nr, middle) > half)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* ---- many tests ---- */

static int by_p(const void *a, const void *b)
{
	const struct stats_test *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

void stats_holm(struct stats_test *tests, size_t nr, double level)
{
	double least = 0, kept = 0;

	if (nr)
		qsort(tests, nr, sizeof(*tests), by_p);
	for (size_t i = 0; i < nr; i++) {
		double adjusted = tests[i].p * (double)(nr - i);

		least = adjusted > least ? adjusted : least;
		tests[i].adjusted = least < 1 ? least : 1;
		/* From the first one that is not rejected on, none is: they share its divisor. */
		if (!(kept > 0) && tests[i].adjusted > level)
			kept = (double)(nr - i);
		tests[i].divisor = kept > 0 ? kept : (double)(nr - i);
	}
}
