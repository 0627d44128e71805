// SPDX-License-Identifier: BSD-2-Clause
#include "util/histogram.h"

#include <stddef.h>

#include "util/util.h"

#define SUB_BITS 3
#define SUB (1u << SUB_BITS)

/*
 * Below SUB, each value has a class of its own. Above, each power of two is split into SUB classes.
 */
static uint32_t class_of(uint32_t value)
{
	uint32_t shift;

	if (value < SUB)
		return value;
	shift = 31 - (uint32_t)__builtin_clz(value) - SUB_BITS;
	return (shift + 1) * SUB + ((value >> shift) & (SUB - 1));
}

static uint32_t middle_of(uint32_t class)
{
	uint32_t shift;

	if (class < SUB)
		return class;
	shift = class / SUB - 1;
	return ((SUB + class % SUB) << shift) + (shift ? 1u << (shift - 1) : 0);
}

void histogram__add(struct histogram *h, uint32_t value)
{
	h->nr++;
	h->counts[class_of(value)]++;
}

uint32_t histogram__quantile(const struct histogram *h, double share)
{
	double wanted = share * (double)h->nr;
	uint64_t seen = 0;
	uint32_t last = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(h->counts); i++) {
		if (!h->counts[i])
			continue;
		last = i;
		seen += h->counts[i];
		if ((double)seen >= wanted)
			break;
	}
	return h->nr ? middle_of(last) : 0;
}
