/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_UTIL_ORDER_H
#define KPROF_UTIL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compares two numbers: -1, 0 or 1. */
static inline int order_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/*
 * For an array that is sorted by a uint64_t member: how many elements have a member below `value`
 * (LOWER), or at most `value` (UPTO). LOWER is thus the index of the first element with this value
 * or where it would be inserted, UPTO the index after the last one.
 */
#define ORDER_LOWER(array, nr, member, value)                                                  \
	order_find(array, nr, sizeof(*(array)), offsetof(__typeof__(*(array)), member), value, \
		   false)
#define ORDER_UPTO(array, nr, member, value) \
	order_find(array, nr, sizeof(*(array)), offsetof(__typeof__(*(array)), member), value, true)

static inline size_t order_find(const void *array, size_t nr, size_t bytes, size_t offset,
				uint64_t value, bool upto)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		uint64_t at = *(const uint64_t *)((const char *)array + mid * bytes + offset);

		if (at < value || (upto && at == value))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
