// SPDX-License-Identifier: BSD-2-Clause
/* catalog_match(): by hand, and against the C library's fnmatch() on random globs. */
#include <fnmatch.h>
#include <stdbool.h>

#include "catalog/catalog.h"
#include "unit.h"

static void single(void)
{
	CHECK(catalog_match("abc", "abc"));
	CHECK(!catalog_match("abc", "abcd"));
	CHECK(!catalog_match("abcd", "abc"));
	CHECK(catalog_match("*", ""));
	CHECK(catalog_match("*", "anything"));
	CHECK(catalog_match("a*c", "ac"));
	CHECK(catalog_match("a*c", "abcbc"));
	CHECK(!catalog_match("a*c", "abcb"));
	CHECK(catalog_match("a?c", "abc"));
	CHECK(!catalog_match("a?c", "ac"));
	CHECK(catalog_match("_ZN2at4_ops*4callE*",
			    "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_"));
	CHECK(!catalog_match("_ZN2at4_ops*4callE*", "_ZN2at4_ops10add_Tensor10redispatchEN3c10"));
	CHECK(catalog_match("libtorch_cpu.so*", "libtorch_cpu.so.1.13.0"));
	CHECK(!catalog_match("libtorch_cpu.so*", "libtorch_python.so"));
}

static void several(void)
{
	CHECK(catalog_match("a b", "b"));
	CHECK(catalog_match("  a   b* ", "bcd"));
	CHECK(!catalog_match("a b", "a b"));
	CHECK(!catalog_match("a b", "c"));
}

static void nothing(void)
{
	CHECK(!catalog_match(NULL, "a"));
	CHECK(!catalog_match("", ""));
	CHECK(!catalog_match("   ", ""));
}

static void sets(void)
{
	CHECK(catalog_match("a[bc]d", "acd"));
	CHECK(!catalog_match("a[!bc]d", "acd"));
	CHECK(catalog_match("a[!bc]d", "aed"));
	CHECK(catalog_match("[0-9]*", "7x"));
	CHECK(catalog_match("[]]", "]"));
	CHECK(catalog_match("[a-]", "-"));
	CHECK(catalog_match("[ab", "[ab"));
	CHECK(!catalog_match("[ab", "a"));
	CHECK(catalog_match("\\*", "*"));
	CHECK(!catalog_match("\\*", "a"));
}

/* A star that is tried at every place must not make the others be tried again. */
static void no_explosion(void)
{
	char text[4096];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(!catalog_match("*a*a*a*a*a*a*a*a*a*a*b", text));
}

static unsigned int state = 12345;

static unsigned int next_random(unsigned int below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 16) % below;
}

static void like_fnmatch(void)
{
	static const char in_globs[] = "aabc**??[]!-";
	unsigned int matched = 0;

	for (int i = 0; i < 200000; i++) {
		char glob[10], text[10];
		unsigned int glob_len = 1 + next_random(8), text_len = next_random(8);
		bool want;

		for (unsigned int k = 0; k < glob_len; k++)
			glob[k] = in_globs[next_random(sizeof(in_globs) - 1)];
		glob[glob_len] = '\0';
		for (unsigned int k = 0; k < text_len; k++)
			text[k] = "abc[]!-"[next_random(next_random(3) ? 3 : 7)];
		text[text_len] = '\0';
		want = !fnmatch(glob, text, 0);
		matched += want;
		if (catalog_match(glob, text) != want) {
			printf("# glob \"%s\" text \"%s\": fnmatch says %d\n", glob, text, want);
			CHECK(catalog_match(glob, text) == want);
			return;
		}
	}
	printf("# %u of 200000 match\n", matched);
	CHECK(matched > 5000);
}

UNIT_MAIN(TEST(single), TEST(several), TEST(nothing), TEST(sets), TEST(no_explosion),
	  TEST(like_fnmatch))
