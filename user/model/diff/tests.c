// SPDX-License-Identifier: BSD-2-Clause
/* From what was counted to differences: which rows are tested, and what the tests say. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "util/error.h"

/* A row of fewer samples, of both sides, is not tested: their number is too far from normal. */
#define MIN_SAMPLES 10
/* `least` is found in this share of comparisons. */
#define POWER 0.8

struct testing {
	struct kprof_diff *d;
	double min_share, run_spread;
	bool run_spread_given;
	/* Of rows: by index, and the list of those that are tested together. */
	struct stats_difference *found;
	struct stats_test *tests;
	size_t nr_tests;
};

static size_t captures_of(const struct kprof_diff_info *info, enum diff_side side)
{
	return side == DIFF_BEFORE ? info->nr_before : info->nr_after;
}

/* Of how many captures a row has a time. Only per call can it have none. */
static size_t runs_of(const struct diff_table *t, const struct diff_count *c, enum diff_side side)
{
	return t->info.per == KPROF_DIFF_PER_CALL ? c->nr : captures_of(&t->info, side);
}

static struct stats_mean mean_of(const struct diff_table *t, uint32_t row, enum diff_side side,
				 unsigned int level)
{
	const struct diff_count *c = &diff_table__entry(t, row)->side[side];
	const struct diff_count *whole = &diff_table__entry(t, DIFF_ROW_WHOLE)->side[side];
	size_t nr = runs_of(t, c, side);

	if (nr > 1)
		return stats_of_runs(c->sum, c->squares, nr);
	if (c->nr || !nr)
		return c->blocks[level];
	/* A name that the capture does not have: no time in any of its blocks. */
	return (struct stats_mean){.df = whole->blocks[level].df};
}

/*
 * Where only one side has several captures, their spread is taken for that of the other side, too.
 */
static void share_spread(struct stats_mean *one, struct stats_mean *many, size_t nr)
{
	many->var *= (double)nr + 1;
	one->var = 0;
	one->df = many->df;
}

static struct stats_difference difference_at(const struct testing *s, uint32_t row,
					     unsigned int level)
{
	const struct diff_table *t = &s->d->table;
	const struct diff_entry *e = diff_table__entry(t, row);
	struct stats_mean a = mean_of(t, row, DIFF_BEFORE, level);
	struct stats_mean b = mean_of(t, row, DIFF_AFTER, level);
	size_t nr_a = runs_of(t, &e->side[DIFF_BEFORE], DIFF_BEFORE);
	size_t nr_b = runs_of(t, &e->side[DIFF_AFTER], DIFF_AFTER);

	if (nr_a == 1 && nr_b > 1)
		share_spread(&a, &b, nr_b);
	else if (nr_b == 1 && nr_a > 1)
		share_spread(&b, &a, nr_a);
	return stats_welch(&a, &b);
}

/* The difference by the length of blocks that makes it least sure. */
static struct stats_difference difference(const struct testing *s, uint32_t row)
{
	struct stats_difference out = difference_at(s, row, 0);

	for (unsigned int level = 1; level < STATS_LEVELS; level++) {
		struct stats_difference other = difference_at(s, row, level);

		if (other.df > 0 && other.p > out.p) {
			other.change = out.change;
			out = other;
		}
	}
	return out;
}

static double per_unit(const struct diff_table *t, enum diff_side side, double sum)
{
	return t->units[side] > 0 ? sum / t->units[side] : 0;
}

static double measure_of(const struct diff_table *t, uint32_t row, enum diff_side side)
{
	const struct diff_count *c = &diff_table__entry(t, row)->side[side];

	return per_unit(t, side, t->info.total ? c->total : c->self);
}

/* The row's share of the time of both sides. What chooses the rows must not know which is which. */
static double share_of(const struct diff_table *t, uint32_t row)
{
	double whole = measure_of(t, DIFF_ROW_WHOLE, DIFF_BEFORE) +
		       measure_of(t, DIFF_ROW_WHOLE, DIFF_AFTER);

	if (whole <= 0)
		return 0;
	return (measure_of(t, row, DIFF_BEFORE) + measure_of(t, row, DIFF_AFTER)) / whole;
}

static bool is_small(const struct testing *s, uint32_t row)
{
	const struct diff_table *t = &s->d->table;
	const struct diff_entry *e = diff_table__entry(t, row);
	double count = e->side[DIFF_BEFORE].calls + e->side[DIFF_AFTER].calls;

	return count <= 0 || share_of(t, row) < s->min_share ||
	       (t->info.of_samples && count < MIN_SAMPLES);
}

static bool is_tested(const struct testing *s, uint32_t row)
{
	const struct kprof_diff_info *info = &s->d->table.info;

	if (row == DIFF_ROW_WHOLE)
		return info->per != KPROF_DIFF_PER_CALL && info->per != KPROF_DIFF_PER_SHARE;
	if (row == DIFF_ROW_STEP)
		return info->per == KPROF_DIFF_PER_STEP;
	return !is_small(s, row);
}

/* ---- the spread among runs, where there is one of each side ---- */

/* Fewer rows do not tell how much rows differ. */
#define MIN_ROWS 6

/*
 * Samples have large errors of their own, beside which the spread among runs is small, if there is
 * any to be seen: it must show beyond chance (one in twenty). Of spans it is the rule.
 */
#define DOUBT 1.645

/* The middle of before and after. */
static double middle_of(const struct testing *s, uint32_t row)
{
	return (mean_of(&s->d->table, row, DIFF_BEFORE, 0).mean +
		mean_of(&s->d->table, row, DIFF_AFTER, 0).mean) /
	       2;
}

/*
 * The variance of rows' relative changes beyond that within the captures. Most rows are taken to be
 * of code that has not changed: what they differ by is what two runs differ by, be it that caches
 * are used otherwise or that the machine was busier. A change of all rows alike is part of that:
 * one capture of each side does not tell a slower program from a slower machine.
 */
static double spread_of_rows(const struct testing *s, double *df)
{
	struct stats_value *values = calloc(s->d->table.entries.nr, sizeof(*values));
	double var = 0;
	size_t nr = 0;

	*df = 0;
	if (!values)
		return 0;
	for (uint32_t row = DIFF_OWN_ROWS; row < s->d->table.entries.nr; row++) {
		const struct stats_difference *found = &s->found[row];
		double middle = middle_of(s, row);

		if (!is_tested(s, row) || !(found->df > 0) || fabs(found->change) >= 2 * middle)
			continue; /* new and gone ones say nothing of the others */
		values[nr++] = (struct stats_value){found->change / middle,
						    found->error * found->error / middle / middle};
	}
	if (nr >= MIN_ROWS) {
		var = stats_excess_var(values, nr, s->d->table.info.of_samples ? DOUBT : 0);
		*df = stats_median_df(nr);
	}
	free(values);
	return var;
}

static void widen(struct testing *s)
{
	const struct kprof_diff_info *info = &s->d->table.info;
	double df = INFINITY, var = s->run_spread_given ? 0 : spread_of_rows(s, &df);

	if (info->nr_before > 1 || info->nr_after > 1)
		return;
	/* Of each of the two. */
	if (!(var > 2 * s->run_spread * s->run_spread)) {
		var = 2 * s->run_spread * s->run_spread;
		df = INFINITY;
	}
	s->d->table.info.run_spread = sqrt(var / 2);
	for (uint32_t row = 0; row < s->d->table.entries.nr; row++) {
		double middle = middle_of(s, row);

		stats_widen(&s->found[row], var * middle * middle, df);
	}
}

static void choose(struct testing *s)
{
	struct diff_table *t = &s->d->table;

	for (uint32_t row = 0; row < t->entries.nr; row++)
		s->found[row] = difference(s, row);
	widen(s);
	for (uint32_t row = 0; row < t->entries.nr; row++) {
		if (!is_tested(s, row) || !(s->found[row].df > 0))
			continue;
		s->tests[s->nr_tests++] = (struct stats_test){.p = s->found[row].p, .index = row};
		t->info.tested += row >= DIFF_ROW_OTHERS;
	}
	stats_holm(s->tests, s->nr_tests, KPROF_DIFF_LEVEL);
}

/* ---- rows ---- */

static struct kprof_diff_change change_of(const struct testing *s, uint32_t row,
					  const struct stats_test *test)
{
	const struct stats_difference *found = &s->found[row];
	struct kprof_diff_change out = {
		.before = mean_of(&s->d->table, row, DIFF_BEFORE, 0).mean,
		.after = mean_of(&s->d->table, row, DIFF_AFTER, 0).mean,
		.change = found->change,
		.low = found->change,
		.high = found->change,
		.p = 1,
		.verdict = KPROF_DIFF_UNTESTED,
	};
	double half, strictest;

	if (!test)
		return out;
	half = found->error * stats_t_of_p(KPROF_DIFF_LEVEL / test->divisor, found->df);
	strictest = stats_t_of_p(KPROF_DIFF_LEVEL / (double)s->nr_tests, found->df);
	out.low -= half;
	out.high += half;
	out.p = test->adjusted;
	out.least = found->error * (strictest + stats_t_of_p(2 * (1 - POWER), found->df));
	out.verdict = test->adjusted > KPROF_DIFF_LEVEL ? KPROF_DIFF_NONE
		      : found->change > 0               ? KPROF_DIFF_MORE
							: KPROF_DIFF_LESS;
	return out;
}

static void add_row(struct testing *s, uint32_t row, const struct stats_test *test)
{
	const struct diff_table *t = &s->d->table;
	const struct diff_entry *e = diff_table__entry(t, row);
	const struct diff_count *a = &e->side[DIFF_BEFORE], *b = &e->side[DIFF_AFTER];

	if (a->calls + b->calls <= 0)
		return;
	s->d->rows[s->d->nr_rows++] = (struct kprof_diff_row){
		.name = e->name,
		.category = e->category,
		.where = e->where,
		.time = change_of(s, row, test),
		.self_before = per_unit(t, DIFF_BEFORE, a->self),
		.self_after = per_unit(t, DIFF_AFTER, b->self),
		.total_before = per_unit(t, DIFF_BEFORE, a->total),
		.total_after = per_unit(t, DIFF_AFTER, b->total),
		.calls_before = per_unit(t, DIFF_BEFORE, a->calls),
		.calls_after = per_unit(t, DIFF_AFTER, b->calls),
	};
}

static bool is_found(const struct kprof_diff_change *c)
{
	return c->verdict == KPROF_DIFF_MORE || c->verdict == KPROF_DIFF_LESS;
}

static int by_size(const void *a, const void *b)
{
	const struct kprof_diff_row *x = a, *y = b;
	bool found = is_found(&x->time);
	double p, q;
	int order;

	if (found != is_found(&y->time))
		return found ? -1 : 1;
	p = found ? fabs(x->time.change) : fmax(x->time.before, x->time.after);
	q = found ? fabs(y->time.change) : fmax(y->time.before, y->time.after);
	if (p != q)
		return p > q ? -1 : 1;
	order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->category, y->category);
	return order ? order : strcmp(x->where, y->where);
}

static void sum_small(struct testing *s)
{
	struct kprof_diff_info *info = &s->d->table.info;
	double sums[DIFF_SIDES] = {0};

	for (uint32_t row = DIFF_ROW_OTHERS; row < s->d->table.entries.nr; row++) {
		if (is_tested(s, row))
			continue;
		info->small += share_of(&s->d->table, row) > 0;
		for (int side = 0; side < DIFF_SIDES; side++)
			sums[side] += diff_table__entry(&s->d->table, row)->side[side].self;
	}
	for (int side = 0; side < DIFF_SIDES; side++) {
		double whole = diff_table__entry(&s->d->table, DIFF_ROW_WHOLE)->side[side].self;

		info->small_share = fmax(info->small_share, whole > 0 ? sums[side] / whole : 0);
	}
}

static void fill(struct testing *s)
{
	struct kprof_diff_info *info = &s->d->table.info;
	struct kprof_diff_change *own[] = {&info->whole, &info->step};

	info->between_runs = info->nr_before > 1 || info->nr_after > 1;
	info->units_before = s->d->table.units[DIFF_BEFORE];
	info->units_after = s->d->table.units[DIFF_AFTER];
	info->recorded_before = s->d->table.seconds[DIFF_BEFORE];
	info->recorded_after = s->d->table.seconds[DIFF_AFTER];
	info->whole = change_of(s, DIFF_ROW_WHOLE, NULL);
	info->step = change_of(s, DIFF_ROW_STEP, NULL);
	for (size_t i = 0; i < s->nr_tests; i++) {
		const struct stats_test *test = &s->tests[i];

		if (test->index < DIFF_ROW_OTHERS)
			*own[test->index] = change_of(s, (uint32_t)test->index, test);
		else
			add_row(s, (uint32_t)test->index, test);
	}
	for (uint32_t row = DIFF_ROW_OTHERS; row < s->d->table.entries.nr; row++)
		if (!is_tested(s, row) || !(s->found[row].df > 0))
			add_row(s, row, NULL);
	sum_small(s);
	qsort(s->d->rows, s->d->nr_rows, sizeof(*s->d->rows), by_size);
}

/* 0: the default; negative: none. */
static double setting(double given, double otherwise)
{
	return given < 0 ? 0 : given > 0 ? given : otherwise;
}

int diff_test(struct kprof_diff *d, const struct kprof_diff_opts *opts)
{
	struct testing s = {.d = d,
			    .min_share = setting(opts->min_share, KPROF_DIFF_MIN_SHARE),
			    .run_spread = setting(opts->run_spread, KPROF_DIFF_RUN_SPREAD),
			    .run_spread_given = opts->run_spread != 0};
	size_t nr = d->table.entries.nr;
	int err = 0;

	s.found = calloc(nr, sizeof(*s.found));
	s.tests = calloc(nr, sizeof(*s.tests));
	d->rows = calloc(nr, sizeof(*d->rows));
	if (!s.found || !s.tests || !d->rows) {
		err = error_set(-ENOMEM, NULL, "out of memory for a comparison");
	} else {
		choose(&s);
		fill(&s);
	}
	free(s.found);
	free(s.tests);
	return err;
}
