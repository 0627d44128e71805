/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How one clock runs against another, when nothing is known but moments that were before others.
 *
 * Something that happens on one machine and can't happen before something on the other one bounds
 * the difference of their clocks from one side, at one time. Clocks run evenly, at almost the same
 * speed: so the difference is a straight line over time, between all of the bounds. Of the lines
 * that are, one in the middle is taken, and how far the others are from it is the error. A clock
 * whose speed changes a little is not on any line; so the error is also what the bounds that are
 * near each moment leave open.
 */
#ifndef KPROF_MERGE_CLOCKS_H
#define KPROF_MERGE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Clocks that differ more in speed are none: NTP slews by up to 500 ppm, quartzes differ by 100.
 */
#define CLOCKS_MOST_DRIFT 1e-3
/* Where the bounds allow it, a clock is taken for one that differs no more than this. */
#define CLOCKS_LIKELY_DRIFT 1e-4

/* What a time of one clock is on another. */
struct clock_line {
	uint64_t at_ns, to_ns; /* the same moment on both clocks */
	double rate;           /* how much faster the other one is: 1e-6 is 1 us in each second */
};

/* Of what is to be added to a clock, to get the other one. */
struct clock_bound {
	uint64_t at_ns; /* on the first clock */
	int64_t ns;     /* at this time, at most or at least so much is added */
	bool upper;
};

struct clock_fit {
	struct clock_line line;
	/*
	 * By so much all bounds were made wider, since no line is between them: the clocks' speed
	 * has changed on the way, as NTP changes it. 0: there is a line.
	 */
	uint64_t slack_ns;
	/*
	 * For clock_fit__error(): the rates of the lines that are possible; what single moments
	 * leave open.
	 */
	double least_rate, most_rate;
	uint64_t open_ns;
};
/* So much a clock's speed changes during a recording, at most. */
#define CLOCKS_MOST_CHANGE 1e-5
/* Bounds that contradict each other by more are not those of two clocks. */
#define CLOCKS_MOST_SLACK_NS 1000000.0

/*
 * Fits a line between bounds, and sorts them: on success, only those that matter to lines remain.
 * -ENODATA: there are no bounds of one side; -ERANGE: they contradict each other by more than
 * CLOCKS_MOST_SLACK_NS.
 */
int clock_fit(struct clock_bound *bounds, size_t *nr, struct clock_fit *out);
/* How far the line is from the truth, at most, between two times of the first clock. */
uint64_t clock_fit__error(const struct clock_fit *fit, const struct clock_bound *bounds, size_t nr,
			  uint64_t from_ns, uint64_t to_ns);

/* The time on the other clock, kept between 1 and 2^63 - 1. */
uint64_t clock_line__apply(const struct clock_line *line, uint64_t ns);
struct clock_line clock_line__inverse(const struct clock_line *line);
/* First one line, then the other one. */
struct clock_line clock_line__then(const struct clock_line *first, const struct clock_line *second);

#endif
