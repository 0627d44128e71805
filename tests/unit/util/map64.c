// SPDX-License-Identifier: BSD-2-Clause
/* user/util/map64.c */
#include "unit.h"

#include "util/map64.h"

/* Counts survive growth, zeros go, and the size follows what is left. */
static void counts(void)
{
	struct map64 m = {0};
	size_t cap;

	for (uint64_t i = 0; i < 100000; i++)
		*map64__at(&m, i << 32) = i + 1;
	for (uint64_t i = 0; i < 100000; i++)
		CHECK_EQ(*map64__at(&m, i << 32), i + 1);
	CHECK_EQ(m.used, 100000);
	cap = m.cap;
	for (uint64_t i = 10; i < 100000; i++)
		*map64__at(&m, i << 32) = 0;
	for (uint64_t i = 0; i < 300000; i++)
		*map64__at(&m, i << 32 | 5) = 0;
	CHECK(m.cap < cap);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_EQ(*map64__at(&m, i << 32), i + 1);
	CHECK_EQ(*map64__at(&m, 99ull << 32), 0);
	cap = m.used;
	CHECK_EQ(map64__get(&m, 9ull << 32), 10);
	CHECK_EQ(map64__get(&m, 7), 0);
	CHECK_EQ(m.used, cap);
	map64__free(&m);
	CHECK_EQ(map64__get(&m, 0), 0);
}

UNIT_MAIN(TEST(counts))
