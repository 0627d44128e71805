// SPDX-License-Identifier: BSD-2-Clause
#include "stacks_fixture.h"

#define ADD "main;train (train.py);aten::add;outer;inlined"

static void known(void)
{
	char *text;

	known_capture(in_scratch("a.kprof"));
	text = exported_as("a.kprof", "a.folded");
	CHECK_STR(text, "main (7);main;train (train.py) 10000\n"
			"main (7);" ADD " 40000\n"
			"main (7);" ADD ";sys_read_[k] 10000\n"
			"worker (8);[incomplete];main 10000\n"
			"worker (8);[no stack] 10000\n"
			"worker (8);main 2\n" /* not lost, though it is next to nothing */
			"worker (8);main;[off CPU] 10000\n"
			"worker (8);" ADD " 10000\n");
	free(text);
}

/* Whatever the names: a line a stack, its number last, no separator in a name. */
static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t total_us = 0;
		char *text, *line, *rest;

		hostile_capture(in_scratch("h.kprof"), seed);
		text = rest = exported_as("h.kprof", "h.folded");
		CHECK(*text);
		while ((line = strsep(&rest, "\n")) && *line) {
			char *number = strrchr(line, ' ');

			CHECK(number && strspn(number + 1, "0123456789") == strlen(number + 1));
			total_us += number ? strtoull(number + 1, NULL, 10) : 0;
			for (const uint8_t *p = (const uint8_t *)line; *p; p++)
				CHECK(*p >= 0x20 && *p != 0x7f);
		}
		CHECK_EQ(total_us, HOSTILE_NAMES * PERIOD_NS / 1000);
		free(text);
	}
}

/* What stands between frames and lines is in no name. */
static void separators(void)
{
	struct made_stacks s;
	char *text;

	known_tables(&s, in_scratch("s.kprof"));
	made__thread(&s.m, 7, 9, "x;y");
	made__sample(
		&s, 0, 2,
		made__stack(&s, 1,
			    made__frame(&s, STORE_FRAME_KERNEL, 0, "", "a;b\nc;;", "", 0, NULL)),
		PERIOD_NS, WHOLE);
	made__finish(&s.m);
	text = exported_as("s.kprof", "s.folded");
	CHECK_STR(text, "x:y (9);main;a:b\\x0ac::_[k] 10000\n");
	free(text);
}

static void none(void)
{
	struct made_stacks s;

	known_tables(&s, in_scratch("none.kprof"));
	made__finish(&s.m);
	CHECK_EQ(export_as(in_scratch("none.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("none.folded")}),
		 -ENODATA);
	CHECK(strstr(kprof_error_cause(), "has no samples"));
	CHECK(kprof_error_hint() && strstr(kprof_error_hint(), "kprof sample"));
	CHECK(!file_exists(in_scratch("none.folded")));
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(hostile), TEST(separators), TEST(none),
	  {"(clean-up)", scratch__remove})
