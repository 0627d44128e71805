// SPDX-License-Identifier: BSD-2-Clause
#include "store/strings.h"

#include <stdbool.h>
#include <stdint.h>

#include "unit.h"

static void each_once(void)
{
	struct strings s = {0};

	CHECK_EQ(strings__find(&s, "a", 1), 0);
	CHECK_EQ(strings__add(&s, "a", 1, 7), 0);
	CHECK_EQ(strings__add(&s, "ab", 2, 8), 0);
	CHECK_EQ(strings__add(&s, "a", 1, 9), 0); /* known: the first id stays */
	CHECK_EQ(strings__add(&s, "", 0, 10), 0);
	CHECK_EQ(strings__find(&s, "a", 1), 7);
	CHECK_EQ(strings__find(&s, "abc", 2), 8);
	CHECK_EQ(strings__find(&s, "", 0), 10);
	CHECK_EQ(strings__find(&s, "a\0", 2), 0);
	strings__free(&s);
	CHECK_EQ(strings__find(&s, "a", 1), 0);
	CHECK_EQ(s.bytes, 0);
}

/* Ever new names: what is remembered stays bounded, and the latest are among it. */
static void bounded(void)
{
	struct strings s = {0};
	char text[64];
	size_t most = 0;

	for (uint32_t i = 1; i <= 600000; i++) {
		int len = snprintf(text, sizeof(text), "ProfilerStep#%u", i);

		if (strings__add(&s, text, (size_t)len, i)) {
			CHECK(false);
			break;
		}
		if (i % 1000 == 0)
			CHECK_EQ(strings__find(&s, text, (size_t)len), i);
		most = s.bytes > most ? s.bytes : most;
	}
	CHECK(most <= STRINGS_MAX_BYTES);
	CHECK(most > STRINGS_MAX_BYTES / 2);
	CHECK_EQ(strings__find(&s, "ProfilerStep#1", 14), 0);
	strings__free(&s);
}

UNIT_MAIN(TEST(each_once), TEST(bounded))
