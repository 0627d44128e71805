// SPDX-License-Identifier: BSD-2-Clause
/* user/util/order.h: where a number is among sorted ones, or belongs. */
#include "unit.h"

#include "util/order.h"

struct item {
	char name[3];
	uint64_t at;
};

static void finds(void)
{
	static const struct item items[] = {
		{"a", 0}, {"b", 5}, {"c", 5}, {"d", 9}, {"e", UINT64_MAX}};

	CHECK_EQ(ORDER_LOWER(items, 5, at, 0), 0);
	CHECK_EQ(ORDER_UPTO(items, 5, at, 0), 1);
	CHECK_EQ(ORDER_LOWER(items, 5, at, 5), 1);
	CHECK_EQ(ORDER_UPTO(items, 5, at, 5), 3);
	CHECK_EQ(ORDER_LOWER(items, 5, at, 6), 3);
	CHECK_EQ(ORDER_UPTO(items, 5, at, 8), 3);
	CHECK_EQ(ORDER_LOWER(items, 5, at, UINT64_MAX), 4);
	CHECK_EQ(ORDER_UPTO(items, 5, at, UINT64_MAX), 5);
	CHECK_EQ(ORDER_UPTO(items, 4, at, UINT64_MAX), 4);
}

static void finds_nothing_in_nothing(void)
{
	const struct item *none = NULL;

	CHECK_EQ(ORDER_LOWER(none, 0, at, 7), 0);
	CHECK_EQ(ORDER_UPTO(none, 0, at, 7), 0);
}

UNIT_MAIN(TEST(finds), TEST(finds_nothing_in_nothing))
