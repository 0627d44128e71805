// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/diff/tests.c: how often comparisons are right. The recordings are simulated, from a
 * generator with fixed seeds, so that the numbers of false alarms and of found changes are the same
 * at each run.
 */
#include <math.h>

#include "model/diff/impl.h"
#include "unit.h"

#define PAIRS 200
#define CHANGED_PAIRS 100 /* these take more samples */
#define ROWS 20
#define BLOCKS DIFF_BLOCKS
#define CHANGED 0 /* the function that changes: a fifth of the time */
/* 5 % of the pairs, and what chance adds in 99 of 100 such tests (of the binomial distribution). */
#define ALARMS 18
#define CHANGED_ALARMS 11

static uint64_t state;

static double uniform(void)
{
	state += 0x9e3779b97f4a7c15ull;
	return (double)(hash64(state) >> 11) / (double)(1ull << 53);
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* What is simulated of a program, and of how it differs from run to run. */
struct program {
	bool samples;      /* or spans */
	double per_block;  /* samples, or spans of each function, in a block */
	double phases;     /* of how many blocks; 0: it does the same all the time */
	double run_spread; /* of each function's time, from run to run */
	double slower;     /* by what share function CHANGED is slower after the change */
	size_t captures;   /* of each side */
};

static double share_of(const struct program *p, uint32_t function, double at, double offset)
{
	double share = pow(0.8, function) * 0.2;

	/* Functions come and go in turns. */
	if (p->phases > 0)
		share *= 1 + 0.8 * sin(2 * M_PI * (at / p->phases + offset) + function);
	return share;
}

static void add(struct diff_table *t, uint32_t function, uint32_t block, double ns, double calls)
{
	diff_table__add(t, DIFF_OWN_ROWS + function, block, ns, ns, calls);
	diff_table__add(t, DIFF_ROW_WHOLE, block, ns, ns, calls);
}

/* Each sample stands for 10 ms, and meets a function as often as its share of the time is. */
static void samples(struct diff_table *t, const struct program *p, const double *speed)
{
	double offset = uniform(), shares[ROWS], all, at;

	for (uint32_t block = 0; block < BLOCKS; block++) {
		all = 0;
		for (uint32_t f = 0; f < ROWS; f++)
			all += shares[f] = share_of(p, f, block, offset) * speed[f];
		/* The work is fixed: where all of it takes longer, there are more samples. */
		for (int i = 0; i < (int)(p->per_block * all + uniform()); i++) {
			uint32_t f = 0;

			for (at = uniform() * all; f + 1 < ROWS && at >= shares[f]; f++)
				at -= shares[f];
			add(t, f, block, 1e7, 1);
		}
	}
}

static void spans(struct diff_table *t, const struct program *p, const double *speed)
{
	double offset = uniform();

	for (uint32_t block = 0; block < BLOCKS; block++)
		for (uint32_t f = 0; f < ROWS; f++) {
			double mean = 1e6 * share_of(p, f, block, offset) * speed[f];

			/* Of durations whose spread is a fifth of them, so many. */
			add(t, f, block,
			    p->per_block * mean * (1 + normal() * 0.2 / sqrt(p->per_block)),
			    p->per_block);
		}
}

static void capture(struct diff_table *t, const struct program *p, enum diff_side side)
{
	double speed[ROWS];

	t->blocks = (struct diff_blocks){.nr = BLOCKS, .units = 1};
	for (uint32_t i = 0; i <= BLOCKS; i++)
		t->blocks.edge_ns[i] = i * NSEC_PER_SEC;
	for (uint32_t f = 0; f < ROWS; f++)
		speed[f] = 1 + p->run_spread * normal();
	if (side == DIFF_AFTER)
		speed[CHANGED] *= 1 + p->slower;
	CHECK_EQ(diff_table__begin(t, side), 0);
	if (p->samples)
		samples(t, p, speed);
	else
		spans(t, p, speed);
	diff_table__end(t);
}

static struct kprof_diff *pair(const struct program *p)
{
	struct kprof_diff_opts opts = {.sz = sizeof(opts)};
	struct kprof_diff *d = calloc(1, sizeof(*d));
	struct diff_table *t = &d->table;
	char name[16];
	uint32_t row;

	t->info = (struct kprof_diff_info){.by = KPROF_DIFF_BY_FUNCTION,
					   .per = KPROF_DIFF_PER_STEP,
					   .of_samples = p->samples,
					   .nr_before = p->captures,
					   .nr_after = p->captures};
	CHECK_EQ(diff_table__init(t), 0);
	for (uint32_t f = 0; f < ROWS; f++) {
		snprintf(name, sizeof(name), "f%u", f);
		CHECK_EQ(diff_table__row(t, &(struct diff_key){"native", name, ""}, &row), 0);
		CHECK_EQ(row, DIFF_OWN_ROWS + f);
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0; i < p->captures; i++)
			capture(t, p, (enum diff_side)side);
	CHECK_EQ(diff_test(d, &opts), 0);
	return d;
}

struct rates {
	int alarms;   /* pairs in which another function differs, or anything if none is changed */
	int found;    /* pairs in which CHANGED is slower */
	int covered;  /* pairs in which CHANGED's interval has the truth */
	double least; /* sum of what would have been found, as a share */
};

static bool is_found(const struct kprof_diff_change *c)
{
	return c->verdict == KPROF_DIFF_MORE || c->verdict == KPROF_DIFF_LESS;
}

static void judge(const struct program *p, const struct kprof_diff *d, struct rates *out)
{
	bool alarm = !(p->slower > 0) && is_found(&kprof_diff_info(d)->whole);

	for (size_t i = 0; i < kprof_diff_nr_rows(d); i++) {
		const struct kprof_diff_row *row = kprof_diff_row(d, i);
		double truth = row->time.before * p->slower;

		if (strcmp(row->name, "f0") != 0 || !(p->slower > 0))
			alarm |= is_found(&row->time);
		if (strcmp(row->name, "f0") != 0)
			continue;
		out->found += row->time.verdict == KPROF_DIFF_MORE;
		out->covered += row->time.low <= truth && truth <= row->time.high;
		out->least += row->time.least / row->time.before;
	}
	out->alarms += alarm;
}

static struct rates rates(const struct program *p, uint64_t seed, int pairs)
{
	struct rates out = {0};

	state = seed;
	for (int i = 0; i < pairs; i++) {
		struct kprof_diff *d = pair(p);

		judge(p, d, &out);
		kprof_diff_free(d);
	}
	printf("# %s, %g a block, phases %g, spread %g, %zu captures, +%g: %d alarms, %d found, "
	       "%d covered, least %.4f\n",
	       p->samples ? "samples" : "spans", p->per_block, p->phases, p->run_spread,
	       p->captures, p->slower, out.alarms, out.found, out.covered, out.least / pairs);
	return out;
}

static void false_alarms_are_rare(void)
{
	static const struct program programs[] = {
		{.samples = true, .per_block = 25, .captures = 1},
		{.samples = true, .per_block = 75, .captures = 1},
		{.samples = true, .per_block = 400, .captures = 1},
		{.samples = true, .per_block = 75, .phases = 2.7, .captures = 1},
		{.samples = true, .per_block = 75, .phases = 6.5, .captures = 1},
		{.samples = true, .per_block = 75, .phases = 13.3, .captures = 1},
		{.samples = true, .per_block = 75, .captures = 3, .run_spread = 0.01},
		{.samples = true, .per_block = 75, .captures = 1, .run_spread = 0.005},
		{.per_block = 20, .captures = 1},
		{.per_block = 2000, .captures = 1, .run_spread = 0.005},
		{.per_block = 2000, .phases = 6.5, .captures = 1, .run_spread = 0.005},
		{.per_block = 200, .captures = 2, .run_spread = 0.01},
		{.per_block = 200, .captures = 5, .run_spread = 0.02},
	};

	int all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct rates r = rates(&programs[i], i + 1, PAIRS);

		CHECK(r.alarms <= ALARMS);
		all += r.alarms;
	}
	CHECK(all <= (int)ARRAY_SIZE(programs) * PAIRS * 5 / 100);
}

static void a_function_that_is_5_percent_slower_is_found(void)
{
	static const struct program programs[] = {
		{.samples = true, .per_block = 5000, .captures = 1, .slower = 0.05},
		{.samples = true, .per_block = 800, .captures = 5, .slower = 0.05},
		{.per_block = 200, .captures = 1, .slower = 0.05},
		{.per_block = 2000, .captures = 1, .slower = 0.05, .run_spread = 0.004},
		{.per_block = 200, .captures = 5, .slower = 0.05, .run_spread = 0.01},
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct rates r = rates(&programs[i], 100 + i, CHANGED_PAIRS);

		CHECK(r.found >= CHANGED_PAIRS * 9 / 10);
		CHECK(r.alarms <= CHANGED_ALARMS);
		CHECK(r.covered >= CHANGED_PAIRS * 95 / 100);
	}
}

UNIT_MAIN(TEST(false_alarms_are_rare), TEST(a_function_that_is_5_percent_slower_is_found))
