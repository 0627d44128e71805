// SPDX-License-Identifier: BSD-2-Clause
#include "util/ranges.h"

#include <stdbool.h>

#include "unit.h"

static void grow_together(void)
{
	struct ranges r = {0};
	uint32_t at;

	CHECK(ranges__take(&r, 1, &at) < 0);
	CHECK_EQ(ranges__give(&r, 10, 0), 0);
	CHECK_EQ(r.nr, 0);
	CHECK_EQ(ranges__give(&r, 30, 10), 0);
	CHECK_EQ(ranges__give(&r, 10, 10), 0);
	CHECK_EQ(r.nr, 2);
	CHECK(ranges__take(&r, 20, &at) < 0);
	CHECK_EQ(ranges__give(&r, 20, 10), 0);
	CHECK_EQ(r.nr, 1);
	CHECK_EQ(ranges__take(&r, 30, &at), 0);
	CHECK_EQ(at, 10);
	CHECK_EQ(r.nr, 0);
	ranges__free(&r);
}

/* Against an array that knows of each element who has it. */
static void at_random(void)
{
	enum { ELEMENTS = 4096, OWNERS = 200 };
	static uint32_t owner[ELEMENTS];
	struct range has[OWNERS] = {{0}};
	struct ranges r = {0};
	uint32_t taken = 0;

	srand(7);
	CHECK_EQ(ranges__give(&r, 0, ELEMENTS), 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t who = (uint32_t)rand() % OWNERS, nr = 1 + (uint32_t)rand() % 60, at;

		if (has[who].nr) {
			for (uint32_t k = 0; k < has[who].nr; k++)
				owner[has[who].at + k] = 0;
			taken -= has[who].nr;
			CHECK_EQ(ranges__give(&r, has[who].at, has[who].nr), 0);
			has[who].nr = 0;
			continue;
		}
		if (ranges__take(&r, nr, &at))
			continue;
		has[who] = (struct range){at, nr};
		taken += nr;
		for (uint32_t k = 0; k < nr; k++) {
			CHECK_EQ(owner[at + k], 0);
			owner[at + k] = who + 1;
		}
	}
	for (uint32_t who = 0; who < OWNERS; who++)
		ranges__give(&r, has[who].at, has[who].nr);
	CHECK(taken > 0);
	CHECK_EQ(r.nr, 1);
	CHECK_EQ(r.free[0].nr, ELEMENTS);
	ranges__free(&r);
}

UNIT_MAIN(TEST(grow_together), TEST(at_random))
