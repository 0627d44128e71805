// SPDX-License-Identifier: BSD-2-Clause
/* include/kprof/within.h: names and patterns, held to the C library's fnmatch(). */
#include "unit.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/within.h"

static enum kprof_within_verdict compare(const char *text, const char *pattern, uint32_t steps)
{
	struct kprof_within_match m = {0};
	enum kprof_within_verdict verdict = KPROF_WITHIN_MORE;

	for (uint32_t i = 0; i < steps && verdict == KPROF_WITHIN_MORE; i++) {
		CHECK(m.text <= strlen(text) && m.pattern <= strlen(pattern));
		verdict = kprof_within_step(&m, text[m.text], pattern[m.pattern]);
	}
	return verdict;
}

static void random_text(char *to, size_t most, const char *letters)
{
	size_t nr = (size_t)rand() % (most + 1);

	for (size_t i = 0; i < nr; i++)
		to[i] = letters[(size_t)rand() % strlen(letters)];
	to[nr] = '\0';
}

static void as_fnmatch(void)
{
	size_t same = 0, wrong = 0;
	char text[16], pattern[16];

	srand(1);
	for (int i = 0; i < 300000; i++) {
		bool ours;

		random_text(text, 10, "ab");
		random_text(pattern, 7, "ab*?");
		ours = compare(text, pattern, KPROF_WITHIN_STEPS) == KPROF_WITHIN_SAME;
		wrong += ours != !fnmatch(pattern, text, 0);
		same += ours;
	}
	CHECK(!wrong);
	CHECK(same > 1000 && same < 290000);
}

/* The longest text that is compared, and a pattern that goes back as often as it can. */
static void is_bounded(void)
{
	char text[KPROF_WIRE_TEXT_LONG], pattern[KPROF_WITHIN_BYTES];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i % 16 ? 'a' : '*';
	pattern[sizeof(pattern) - 2] = 'b';
	pattern[sizeof(pattern) - 1] = '\0';
	CHECK(compare(text, pattern, KPROF_WITHIN_STEPS) != KPROF_WITHIN_SAME);
	CHECK(compare(text, "*a*", KPROF_WITHIN_STEPS) == KPROF_WITHIN_SAME);
	CHECK(compare(text, "*b", KPROF_WITHIN_STEPS) == KPROF_WITHIN_OTHER);
}

UNIT_MAIN(TEST(as_fnmatch), TEST(is_bounded))
