// SPDX-License-Identifier: BSD-2-Clause
#include "util/order.h"

#include <stdlib.h>

void order_numbers(uint32_t *numbers, size_t nr,
		   int (*compare)(const void *a, const void *b, void *ctx), void *ctx)
{
	size_t i = 1;

	while (i < nr && compare(&numbers[i - 1], &numbers[i], ctx) <= 0)
		i++;
	if (i < nr)
		qsort_r(numbers, nr, sizeof(*numbers), compare, ctx);
}
