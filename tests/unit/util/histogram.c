// SPDX-License-Identifier: BSD-2-Clause
/* user/util/histogram.c */
#include "unit.h"

#include <stdlib.h>

#include "util/histogram.h"
#include "util/util.h"

/* One value, whatever it is: told to within 7 %. */
static void one_value(void)
{
	static const uint32_t edges[] = {0, 1, 7, 8, 9, 15, 16, 17, 255, 256, 1u << 31, UINT32_MAX};

	for (uint32_t i = 0; i < 100000 + ARRAY_SIZE(edges); i++) {
		uint32_t value = i < ARRAY_SIZE(edges) ? edges[i] : (uint32_t)hash64(i) >> (i % 32);
		struct histogram h = {0};
		double told;

		histogram__add(&h, value);
		told = histogram__quantile(&h, 0.5);
		CHECK(told <= value * 1.07 && told >= value * 0.93);
		CHECK_EQ(histogram__quantile(&h, 0), histogram__quantile(&h, 1));
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Against the sorted values themselves. */
static void shares(void)
{
	static uint32_t values[10000];
	struct histogram h = {0};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		values[i] = (uint32_t)(hash64(i) % 100000) + (i % 50 ? 0 : 5000000);
		histogram__add(&h, values[i]);
	}
	qsort(values, ARRAY_SIZE(values), sizeof(*values), by_value);
	CHECK_EQ(h.nr, ARRAY_SIZE(values));
	for (size_t percent = 1; percent <= 100; percent++) {
		double is = values[ARRAY_SIZE(values) * percent / 100 - 1];
		double told = histogram__quantile(&h, (double)percent / 100);

		CHECK(told <= is * 1.07 && told >= is * 0.93);
	}
}

static void none(void)
{
	const struct histogram h = {0};

	CHECK_EQ(histogram__quantile(&h, 0.5), 0);
}

UNIT_MAIN(TEST(one_value), TEST(shares), TEST(none))
