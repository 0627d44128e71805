// SPDX-License-Identifier: BSD-2-Clause
/* Python frames among native ones, on stacks that are made up. */
#include "symbol/python/python.h"

#include "unit.h"
#include "util/util.h"

/*
 * What native frames there are is written "n" (other), "e" (eval), "h" (hidden), "c" (calls the
 * loop).
 */
static enum python_native native_of(void *ctx, size_t i)
{
	switch (((const char *)ctx)[i]) {
	case 'e':
		return PYTHON_NATIVE_EVAL;
	case 'h':
		return PYTHON_NATIVE_HIDE;
	case 'c':
		return PYTHON_NATIVE_CALL;
	default:
		return PYTHON_NATIVE_OTHER;
	}
}

/*
 * Python frames are written "p", "P" (entry); the result numbers native frames from A, Python
 * frames from 0.
 */
static const char *merge(const char *native, const char *python, bool whole, uint32_t flags)
{
	static struct python_merged out[64];
	static char text[64];
	struct kprof_python_frame frames[32] = {0};
	struct python_stacks s = {.nr_native = strlen(native),
				  .native = native_of,
				  .ctx = (void *)native,
				  .native_whole = whole,
				  .frames = frames,
				  .nr_frames = strlen(python),
				  .flags = flags};
	size_t nr;

	for (size_t i = 0; i < s.nr_frames; i++)
		frames[i].flags = python[i] == 'P' ? KPROF_PYTHON_ENTRY : 0;
	nr = python_interleave(&s, out);
	for (size_t i = 0; i < nr; i++)
		text[i] = (char)((out[i].python ? '0' : 'A') + (int)out[i].index);
	text[nr] = '\0';
	return text;
}

static void test_merge(void)
{
	/* Up to 3.10: one each. From 3.11: several. */
	CHECK_STR(merge("neneenn", "PPP", true, 0), "A0C12FG");
	CHECK_STR(merge("nenenn", "ppPpP", true, 0), "A012C34EF");
	CHECK_STR(merge("nenhen", "PP", true, 0), "A0C1F");
	CHECK_STR(merge("cecncen", "PP", true, 0), "A0DE1G");
	CHECK_STR(merge("nn", "", true, 0), "AB");
	CHECK_STR(merge("", "pP", true, 0), "01");
	/* The loop was just entered, or is about to be left. */
	CHECK_STR(merge("eecnen", "PP", true, 0), "A0D1F");
	CHECK_STR(merge("enen", "P", false, KPROF_PYTHON_BARE_EVAL), "AB0D");
	/* The native walk was cut, then the Python one, then both. */
	CHECK_STR(merge("nene", "pPpPpP", false, 0), "A01C2345");
	CHECK_STR(merge("nenenen", "pPp", true, KPROF_PYTHON_CUT), "A01C2EFG");
	CHECK_STR(merge("nene", "pPpPp", false, KPROF_PYTHON_CUT), "A01C234");
	/* More groups than eval frames, though both are whole: nothing gets lost. */
	CHECK_STR(merge("nen", "PPP", true, 0), "A0C12");
}

static void test_merge_random(void)
{
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		size_t nr_native = seed % 13, nr_python = hash64(seed) % 9, seen = 0;
		char native[16] = "", python[16] = "", next = '0', last = 'A' - 1;
		const char *got;

		for (size_t i = 0; i < nr_native; i++)
			native[i] = "nnehc"[hash64(seed * 31 + i) % 5];
		for (size_t i = 0; i < nr_python; i++)
			python[i] = "pP"[hash64(seed * 37 + i) % 2];
		got = merge(native, python, seed & 1, seed & 2 ? KPROF_PYTHON_CUT : 0);
		for (; *got; got++) {
			if (*got >= '0' && *got < 'A') {
				CHECK(*got == next++);
				seen++;
			} else {
				CHECK(*got > last);
				last = *got;
			}
		}
		CHECK_EQ(seen, nr_python);
	}
}

UNIT_MAIN(TEST(test_merge), TEST(test_merge_random))
