// SPDX-License-Identifier: BSD-2-Clause
#include "merge/clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/order.h"

/* Halvings and thirds of an interval of drifts: 2e-3 becomes less than 1e-15. */
#define STEPS 100
/* Moments, without the first one, at which the bounds are looked at without a line. */
#define PARTS 16

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

static double y_of(const struct fit *f, const struct clock_bound *b)
{
	return (double)(int64_t)((uint64_t)b->ns - (uint64_t)f->ns);
}

/* Of all lines with this rate, the lowest and highest at x = 0 that are within the bounds. */
static void gap(const struct fit *f, double rate, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	for (size_t i = 0; i < f->nr; i++) {
		const struct clock_bound *b = &f->bounds[i];
		double at_zero = y_of(f, b) - rate * x_of(f, b->at_ns);

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
	return fmax(reach(f, x, 1, from, to) - y, y - reach(f, x, -1, from, to));
}

/* ---- the bounds that matter ---- */

static int by_side_and_time(const void *pa, const void *pb)
{
	const struct clock_bound *a = pa, *b = pb;

	return a->upper != b->upper ? a->upper - b->upper : order_u64(a->at_ns, b->at_ns);
}

/* Whether b, between a and c, is farther in than the straight line from a to c. */
static bool is_corner(const struct fit *f, const struct clock_bound *a, const struct clock_bound *b,
		      const struct clock_bound *c)
{
	double across = (y_of(f, b) - y_of(f, a)) * (x_of(f, c->at_ns) - x_of(f, a->at_ns)) -
			(y_of(f, c) - y_of(f, a)) * (x_of(f, b->at_ns) - x_of(f, a->at_ns));

	return a->upper ? across < 0 : across > 0;
}

/* Of the bounds of one side, in order of time, keeps the corners: lines touch no others. */
static size_t keep_corners(const struct fit *f, const struct clock_bound *from, size_t nr,
			   struct clock_bound *to)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		struct clock_bound b = from[i];

		while (kept > 1 && !is_corner(f, &to[kept - 2], &to[kept - 1], &b))
			kept--;
		to[kept++] = b;
	}
	return kept;
}

/*
 * What the bounds leave open on the farther side of the line, the most of some moments, if the
 * clock is not on a line, but its speed changes by no more than CLOCKS_MOST_CHANGE: then bounds of
 * other moments hold, the less the farther away they are.
 */
static double left_open(const struct fit *f, double rate, double at_zero)
{
	double first = INFINITY, last = -INFINITY, most = 0;

	for (size_t i = 0; i < f->nr; i++) {
		first = fmin(first, x_of(f, f->bounds[i].at_ns));
		last = fmax(last, x_of(f, f->bounds[i].at_ns));
	}
	for (int part = 0; part <= PARTS; part++) {
		double x = first + (last - first) * part / PARTS, above = INFINITY,
		       below = INFINITY;

		for (size_t i = 0; i < f->nr; i++) {
			const struct clock_bound *b = &f->bounds[i];
			double at = x_of(f, b->at_ns), off = y_of(f, b) - (at_zero + rate * at);
			double farther = CLOCKS_MOST_CHANGE * fabs(x - at);

			if (b->upper)
				above = fmin(above, off + farther);
			else
				below = fmin(below, farther - off);
		}
		most = fmax(most, fmax(above, below));
	}
	return most;
}

static uint64_t whole_ns(double ns)
{
	return ns < 1e18 ? (uint64_t)ceil(ns) : (uint64_t)1e18;
}

/* The likely ones of the rates that are possible. */
static double middle_rate(double from, double to)
{
	double likely_from = fmax(from, -CLOCKS_LIKELY_DRIFT);
	double likely_to = fmin(to, CLOCKS_LIKELY_DRIFT);

	return likely_from <= likely_to ? (likely_from + likely_to) / 2 : (from + to) / 2;
}

/* Chooses the line between the corners. False: there is none. */
static bool choose(const struct fit *f, struct fit *corners, struct clock_fit *out)
{
	double rate = widest(corners), low, high;

	/* Twice what the best line needs: others remain, and tell how uncertain it is. */
	corners->slack = fmax(0, -width(corners, rate));
	if (corners->slack > CLOCKS_MOST_SLACK_NS)
		return false;
	out->least_rate = last_with_gap(corners, rate, -CLOCKS_MOST_DRIFT);
	out->most_rate = last_with_gap(corners, rate, CLOCKS_MOST_DRIFT);
	rate = middle_rate(out->least_rate, out->most_rate);
	gap(corners, rate, &low, &high);
	low = (low + high) / 2;
	out->slack_ns = whole_ns(corners->slack);
	out->open_ns = whole_ns(left_open(f, rate, low)) + 1;
	out->line = (struct clock_line){
		.at_ns = f->at_ns,
		.to_ns = f->at_ns + (uint64_t)f->ns + (uint64_t)(int64_t)llround(low),
		.rate = rate,
	};
	return true;
}

int clock_fit(struct clock_bound *bounds, size_t *nr, struct clock_fit *out)
{
	struct fit f = {.bounds = bounds, .nr = *nr}, of_corners;
	struct clock_bound *corners;
	size_t lowers = 0;
	bool fits;

	*out = (struct clock_fit){0};
	for (size_t i = 0; i < *nr; i++)
		lowers += !bounds[i].upper;
	if (!lowers || lowers == *nr)
		return -ENODATA;
	corners = calloc(*nr, sizeof(*corners));
	if (!corners)
		return -ENOMEM;
	qsort(bounds, *nr, sizeof(*bounds), by_side_and_time);
	f.at_ns = bounds[lowers / 2].at_ns;
	f.ns = bounds[lowers / 2].ns;
	of_corners = f;
	of_corners.bounds = corners;
	of_corners.nr = keep_corners(&f, bounds, lowers, corners);
	of_corners.nr += keep_corners(&f, bounds + lowers, *nr - lowers, corners + of_corners.nr);
	fits = choose(&f, &of_corners, out);
	if (fits) {
		memcpy(bounds, corners, of_corners.nr * sizeof(*bounds));
		*nr = of_corners.nr;
	}
	free(corners);
	return fits ? 0 : -ERANGE;
}

uint64_t clock_fit__error(const struct clock_fit *fit, const struct clock_bound *bounds, size_t nr,
			  uint64_t from_ns, uint64_t to_ns)
{
	struct fit f = {.bounds = bounds,
			.nr = nr,
			.at_ns = fit->line.at_ns,
			.ns = (int64_t)(fit->line.to_ns - fit->line.at_ns),
			.slack = (double)fit->slack_ns};
	double error = 0;

	for (int i = 0; i < 2; i++) {
		double x = x_of(&f, i ? to_ns : from_ns);

		error = fmax(error,
			     error_at(&f, x, fit->line.rate * x, fit->least_rate, fit->most_rate));
	}
	return whole_ns(fmax(error + f.slack, (double)fit->open_ns)) + 1;
}
