/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The free pieces of an array, as ranges of elements. The first range that is large enough is used;
 * adjacent free ranges are merged.
 */
#ifndef KPROF_UTIL_RANGES_H
#define KPROF_UTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint32_t at, nr;
};

struct ranges { /* all zero: nothing is free */
	struct range *free;
	size_t nr, cap;
};

/* Marks `nr` elements from `at` as free (nothing for nr 0). -ENOMEM: they stay in use. */
int ranges__give(struct ranges *r, uint32_t at, uint32_t nr);
/*
 * Takes `nr` (> 0) adjacent elements and sets *at to the first. -ENOSPC: no free range is large
 * enough.
 */
int ranges__take(struct ranges *r, uint32_t nr, uint32_t *at);
void ranges__free(struct ranges *r);

#endif
