/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The distribution of numbers, in fixed memory: eight classes for each doubling, so that a quantile
 * is wrong by at most 7 %.
 */
#ifndef KPROF_UTIL_HISTOGRAM_H
#define KPROF_UTIL_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_CLASSES 240

struct histogram { /* all zero: empty */
	uint64_t nr;
	uint64_t counts[HISTOGRAM_CLASSES];
};

void histogram__add(struct histogram *h, uint32_t value);
/*
 * The value that this share (0 to 1) of the numbers does not exceed: the middle of its class. 0
 * when the histogram is empty.
 */
uint32_t histogram__quantile(const struct histogram *h, double share);

#endif
