/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The statistics of comparing captures, on plain numbers.
 *
 * Samples and spans of one capture are not independent of each other: a program does one thing for
 * a while, then another. So the recorded time is cut into blocks, and the spread is that of whole
 * blocks (method of batch means). Blocks that are too short hide such phases: the spread is taken
 * at several lengths, and the one that says least counts. Where a side has several captures, each
 * is one observation, since runs of one program differ more than parts of a run.
 */
#ifndef KPROF_DIFF_STATS_H
#define KPROF_DIFF_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Lengths of blocks: 1, 2 and 4 of the shortest. */
#define STATS_LEVELS 3
/* Fewer blocks than this say nothing about spread. */
#define STATS_MIN_BLOCKS 4

/* An estimated mean, the variance of the estimate, and the degrees of freedom of that. */
struct stats_mean {
	double mean, var;
	double df; /* 0: the variance is not known */
};

/*
 * The sum of n[] per sum of d[], of nr blocks joined by 1 << level each: a ratio estimator, whose
 * variance is that of the blocks' residuals. Blocks that fill no group count in the mean only.
 */
struct stats_mean stats_of_blocks(const double *n, const double *d, size_t nr, unsigned int level);
/* Of nr observations, given their sum and the sum of their squares. */
struct stats_mean stats_of_runs(double sum, double squares, size_t nr);

/* The difference b - a, by Welch's test (1947). */
struct stats_difference {
	double change, error; /* error: standard error of the change */
	double df;            /* 0: no test is possible */
	double p;             /* probability of a change as large where there is none */
};
struct stats_difference stats_welch(const struct stats_mean *a, const struct stats_mean *b);
/* Adds a further variance, of so many degrees of freedom, that the two means do not know of. */
void stats_widen(struct stats_difference *d, double var, double df);

/*
 * How much the nr values differ from 0 beyond their own variances: the variance that makes the
 * median of their squares, each divided by its whole variance, that of the normal distribution.
 * Nearly half of the values may be anything. 0: not at all,
 * or by no more than chance does: so many standard deviations of how many squares are above that
 * median.
 */
struct stats_value {
	double value, var;
};
double stats_excess_var(const struct stats_value *values, size_t nr, double doubt);
/* The degrees of freedom of an estimate by the median of nr values. */
double stats_median_df(size_t nr);

/* Student's distribution: the two-sided probability of |t| and more, and the t of such a p. */
double stats_t_p(double t, double df);
double stats_t_of_p(double p, double df);

/* One of several hypotheses that are tested together. */
struct stats_test {
	double p;
	double adjusted; /* by Holm (1979): at most the level if it is rejected at that level */
	/* What the level is divided by for this one, for an interval that agrees with the test. */
	double divisor;
	size_t index; /* of the caller's; the order after stats_holm() is by p */
};
void stats_holm(struct stats_test *tests, size_t nr, double level);

#endif
