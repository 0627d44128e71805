/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How numbers are spread, in fixed memory: eight classes to each doubling, so that an answer is off
 * by 7 % at most.
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
 * The value that this share of them (0 to 1) does not exceed: the middle of its class. 0: there is
 * none.
 */
uint32_t histogram__quantile(const struct histogram *h, double share);

#endif
