// SPDX-License-Identifier: BSD-2-Clause
#include "merge/clocks.h"

#include <errno.h>
#include <math.h>

/* Halvings and thirds of an interval of drifts: 2e-3 becomes less than 1e-15. */
#define STEPS 100

uint64_t clock_line__apply(const struct clock_line *line, uint64_t ns)
{
	int64_t since = (int64_t)(ns - line->at_ns);
	__int128 to = (__int128)line->to_ns + since + (__int128)llround((double)since * line->rate);

	return to < 1 ? 1 : to > INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)to;
}

struct clock_line clock_line__inverse(const struct clock_line *line)
{
	return (struct clock_line){line->to_ns, line->at_ns, 1 / (1 + line->rate) - 1};
}

struct clock_line clock_line__then(const struct clock_line *first, const struct clock_line *second)
{
	return (struct clock_line){
		.at_ns = first->at_ns,
		.to_ns = clock_line__apply(second, first->to_ns),
		.rate = first->rate + second->rate + first->rate * second->rate,
	};
}

/*
 * The bounds, as seen from one point among them: differences of numbers that lie so near each other
 * that doubles are exact to the nanosecond.
 */
struct fit {
	const struct clock_bound *bounds;
	size_t nr;
	uint64_t at_ns;
	int64_t ns;
	double slack; /* bounds are wider by so much */
};

static double x_of(const struct fit *f, uint64_t at_ns)
{
	return (double)(int64_t)(at_ns - f->at_ns);
}

/* Of all lines with this rate, the lowest and highest at x = 0 that are within the bounds. */
static void gap(const struct fit *f, double rate, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	for (size_t i = 0; i < f->nr; i++) {
		const struct clock_bound *b = &f->bounds[i];
		double at_zero = (double)(int64_t)((uint64_t)b->ns - (uint64_t)f->ns) -
				 rate * x_of(f, b->at_ns);

		if (b->upper && at_zero < *high)
			*high = at_zero;
		if (!b->upper && at_zero > *low)
			*low = at_zero;
	}
	*low -= f->slack;
	*high += f->slack;
}

static double width(const struct fit *f, double rate)
{
	double low, high;

	gap(f, rate, &low, &high);
	return high - low;
}

/* The rate whose gap is widest. There is one: the gap is concave, the least of straight lines. */
static double widest(const struct fit *f)
{
	double from = -CLOCKS_MOST_DRIFT, to = CLOCKS_MOST_DRIFT;

	for (int i = 0; i < STEPS; i++) {
		double a = from + (to - from) / 3, b = to - (to - from) / 3;

		if (width(f, a) < width(f, b))
			from = a;
		else
			to = b;
	}
	return (from + to) / 2;
}

/* From a rate that has a gap towards one that may have none: the last one with a gap. */
static double last_with_gap(const struct fit *f, double with, double without)
{
	if (width(f, without) >= 0)
		return without;
	for (int i = 0; i < STEPS; i++) {
		double middle = (with + without) / 2;

		if (width(f, middle) >= 0)
			with = middle;
		else
			without = middle;
	}
	return with;
}

/* How high (sign 1) or low (sign -1) the lines within the bounds come at x. */
static double reach(const struct fit *f, double x, int sign, double from, double to)
{
	double best = -INFINITY;

	for (int i = 0; i < STEPS; i++) {
		double at[2] = {from + (to - from) / 3, to - (to - from) / 3}, y[2];

		for (int k = 0; k < 2; k++) {
			double low, high;

			gap(f, at[k], &low, &high);
			y[k] = sign > 0 ? high + at[k] * x : -(low + at[k] * x);
			if (y[k] > best)
				best = y[k];
		}
		if (y[0] < y[1])
			from = at[0];
		else
			to = at[1];
	}
	return sign * best;
}

/* How far lines within the bounds are from the one that was chosen, at most. */
static double error_at(const struct fit *f, double x, double y, double from, double to)
{
	double above = reach(f, x, 1, from, to) - y, below = y - reach(f, x, -1, from, to);

	return above > below ? above : below;
}

int clock_fit(const struct clock_bound *bounds, size_t nr, uint64_t from_ns, uint64_t to_ns,
	      struct clock_fit *out)
{
	struct fit f = {.bounds = bounds, .nr = nr};
	double rate, from, to, low, high, middle, error, other;
	size_t uppers = 0;

	for (size_t i = 0; i < nr; i++)
		uppers += bounds[i].upper;
	if (!uppers || uppers == nr)
		return -ENODATA;
	f.at_ns = from_ns + (to_ns - from_ns) / 2;
	f.ns = bounds[0].ns;
	rate = widest(&f);
	if (width(&f, rate) < 0) {
		/* Twice what the best line needs: others remain, and tell how uncertain it is. */
		f.slack = -width(&f, rate);
		if (f.slack > CLOCKS_MOST_SLACK_NS)
			return -ERANGE;
	}
	from = last_with_gap(&f, rate, -CLOCKS_MOST_DRIFT);
	to = last_with_gap(&f, rate, CLOCKS_MOST_DRIFT);
	rate = (from + to) / 2;
	gap(&f, rate, &low, &high);
	middle = (low + high) / 2;
	error = error_at(&f, x_of(&f, from_ns), middle + rate * x_of(&f, from_ns), from, to);
	other = error_at(&f, x_of(&f, to_ns), middle + rate * x_of(&f, to_ns), from, to);
	*out = (struct clock_fit){
		.line = {.at_ns = f.at_ns,
			 .to_ns = f.at_ns + (uint64_t)f.ns + (uint64_t)llround(middle),
			 .rate = rate},
		.error_ns = (uint64_t)ceil((error > other ? error : other) + f.slack) + 1,
		.slack_ns = (uint64_t)ceil(f.slack),
	};
	return 0;
}
