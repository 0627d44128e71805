/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_UTIL_ORDER_H
#define KPROF_UTIL_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Sorts numbers of things by those, like qsort_r(); quick where they are in order already. */
void order_numbers(uint32_t *numbers, size_t nr,
		   int (*compare)(const void *a, const void *b, void *ctx), void *ctx);

/* -1, 0, 1. */
static inline int order_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

#endif
