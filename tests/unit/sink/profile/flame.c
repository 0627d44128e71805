// SPDX-License-Identifier: BSD-2-Clause
#include "util/utf8.h"
#include "stacks_fixture.h"

static bool has(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	printf("# not there: %s\n", part);
	return false;
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void known(void)
{
	char *text;

	known_capture(in_scratch("a.kprof"));
	text = exported_as("a.kprof", "a.svg");
	CHECK(has(text, ">prog</text>"));
	CHECK(has(text, "99 Hz · 11 samples of 100 ms · 0 lost · 90.0 % whole stacks · 10.0 s from "
			"2024-10-04 12:00:00 UTC</text>"));
	CHECK(has(text,
		  "<title>train (train.py)\n/app/train.py\n60.0 ms (60.0 %), 6 samples; itself "
		  "10.0 ms (10.0 %)</title>"));
	CHECK(has(text, "<title>inlined\nadd.h\n/lib/libx.so\n50.0 ms (50.0 %), 5 samples"));
	CHECK(has(text, "<title>aten::add\n10.0 ms (10.0 %), 1 sample; itself 0 ns (0.0 %)"));
	CHECK(has(text, "Python 10 %"));
	CHECK(has(text, "kernel 10 %"));
	/*
	 * 6 kinds of paths of thread "main", 4 + 3 of "worker", the threads, all; main's 1 µs is
	 * part of it.
	 */
	CHECK_EQ(count(text, "<g class=\"f "), 1 + 1 + 6 + 1 + 2 + 1 + 1 + 1 + 4);
	CHECK(!strstr(text, "http://") ||
	      count(text, "http://") == count(text, "http://www.w3.org/"));
	free(text);
}

/*
 * The tags of what comes before the script, by a scanner that takes nothing that XML does not
 * allow.
 */
static void check_markup(const char *text)
{
	const char *end = strstr(text, "<script>"), *p = text, *open[64];
	size_t depth = 0;

	CHECK(end && has(text, "]]></script>\n</svg>\n"));
	for (; end && p < end; p++) {
		const char *close = *p == '<' ? strchr(p, '>') : NULL;

		CHECK(*p != '>');
		CHECK((uint8_t)*p >= 0x20 || *p == '\n' || *p == '\t');
		if (*p == '&')
			CHECK(!strncmp(p, "&lt;", 4) || !strncmp(p, "&gt;", 4) ||
			      !strncmp(p, "&amp;", 5) || !strncmp(p, "&quot;", 6));
		if (!close)
			continue;
		if (p[1] == '/') {
			CHECK(depth > 0);
			depth -= depth > 0;
			CHECK(!strncmp(p + 2, open[depth] + 1, (size_t)(close - p - 2)));
		} else if (p[1] != '?' && close[-1] != '/') {
			CHECK(depth < ARRAY_SIZE(open));
			open[depth < ARRAY_SIZE(open) ? depth++ : 0] = p;
		}
		p = close;
	}
	CHECK_EQ(depth, 1);
	for (size_t left = strlen(text), used; left; text += used, left -= used) {
		used = utf8_len(text, left);
		CHECK(used);
		used += !used;
	}
}

static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *text;

		hostile_capture(in_scratch("h.kprof"), seed);
		text = exported_as("h.kprof", "h.svg");
		check_markup(text);
		free(text);
	}
}

/* What is too narrow to see stays in its caller's width; a file has a bound. */
static void bounded(void)
{
	struct made_stacks s;
	char name[32], *text;

	known_tables(&s, in_scratch("b.kprof"));
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		made__sample(
			&s, i, 0,
			made__stack(&s, 1,
				    made__frame(&s, STORE_FRAME_NATIVE, 1, "", name, "", 0, NULL)),
			i ? 1000 : 10 * 1000 * 1000, WHOLE);
	}
	made__finish(&s.m);
	text = exported_as("b.kprof", "b.svg");
	CHECK(has(text, "<title>main\n/lib/libx.so\n30.0 ms (100.0 %), 20,000 samples"));
	CHECK(has(text, "<title>f0\n"));
	CHECK(!strstr(text, "<title>f1\n")); /* 0.04 of 1200 */
	CHECK(has(text, "19,999 frames too narrow to draw"));
	CHECK(strlen(text) < 100000);
	free(text);

	/* All of the same width, and wide enough each, but too many. */
	known_tables(&s, in_scratch("c.kprof"));
	for (uint32_t i = 0, stack = 1; i < 30000; i++) {
		if (i % 30 == 0)
			stack = 1;
		snprintf(name, sizeof(name), "f%u", i);
		stack = made__stack(&s, stack,
				    made__frame(&s, STORE_FRAME_NATIVE, 1, "", name, "", 0, NULL));
		if (i % 30 == 29)
			made__sample(&s, i, 0, stack, 1000, WHOLE);
	}
	made__finish(&s.m);
	text = exported_as("c.kprof", "c.svg");
	CHECK_EQ(count(text, "<g class=\"f "), 12000);
	check_markup(text);
	free(text);
}

/* The numbers of the strip: PARTS.WEIGHT[.SAMPLES] in base 36, a line for each frame. */
struct numbers {
	size_t lines, nr;
	uint64_t weight_ns, samples, last_part;
};

static struct numbers numbers_of(const char *text)
{
	const char *at = strstr(text, "<metadata id=\"numbers\">\n"), *end;
	struct numbers n = {0};
	uint64_t part = 0;
	char *next;

	CHECK(at);
	at = at ? strchr(at, '\n') + 1 : "</";
	end = strstr(at, "</");
	while (at < end) {
		if (*at == '\n' || *at == ' ') {
			n.lines += *at == '\n';
			part *= *at++ != '\n';
			continue;
		}
		part += strtoull(at, &next, 36);
		CHECK_EQ(*next, '.');
		n.weight_ns += strtoull(next + 1, &next, 36);
		n.samples += *next == '.' ? strtoull(next + 1, &next, 36) : 1;
		n.last_part = part > n.last_part ? part : n.last_part;
		n.nr++;
		at = next;
	}
	return n;
}

/* A second of 80 parts is 125 ms; with too many numbers, there are half as many parts. */
static void parts_of_the_time(void)
{
	struct made_stacks s;
	struct numbers n;
	char name[32], *text;

	known_capture(in_scratch("p.kprof"));
	text = exported_as("p.kprof", "p.svg");
	CHECK(has(text, "data-parts=\"80\" data-part-ns=\"125000001\""));
	n = numbers_of(text);
	CHECK_EQ(n.lines, count(text, "<g class=\"f "));
	CHECK_EQ(n.samples, 11);
	CHECK_EQ(n.weight_ns, 10 * PERIOD_NS + 1001);
	CHECK_EQ(n.last_part, 0); /* all of them in the first tenth of a second */
	free(text);

	known_tables(&s, in_scratch("q.kprof"));
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		made__stack(&s, 1, made__frame(&s, STORE_FRAME_NATIVE, 1, "", name, "", 0, NULL));
	}
	for (uint32_t i = 0; i < 3000 * 80; i++)
		made__sample(&s, i * (10 * SEC_NS / (3000 * 80)), 0, s.stacks - i % 3000, 1000,
			     WHOLE);
	made__finish(&s.m);
	text = exported_as("q.kprof", "q.svg");
	CHECK(has(text, "data-parts=\"40\" data-part-ns=\"250000002\""));
	n = numbers_of(text);
	CHECK_EQ(n.lines, count(text, "<g class=\"f "));
	CHECK_EQ(n.samples, 3000 * 80);
	CHECK_EQ(n.weight_ns, 3000 * 80 * 1000);
	CHECK_EQ(n.last_part, 39);
	CHECK(n.nr <= 150000);
	check_markup(text);
	free(text);
}

static void deep(void)
{
	struct made_stacks s;
	uint32_t stack = 1;
	char *text;

	known_tables(&s, in_scratch("d.kprof"));
	for (uint32_t i = 0; i < 5000; i++)
		stack = made__stack(&s, stack, 2);
	made__sample(&s, 0, 0, stack, PERIOD_NS, WHOLE);
	made__finish(&s.m);
	text = exported_as("d.kprof", "d.svg");
	CHECK_EQ(count(text, "<g class=\"f "), 1000);
	check_markup(text);
	free(text);
}

static void no_time(void)
{
	struct made_stacks s;

	known_tables(&s, in_scratch("z.kprof"));
	made__sample(&s, 0, 0, 1, 0, WHOLE);
	made__finish(&s.m);
	CHECK_EQ(export_as(in_scratch("z.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("z.svg")}),
		 -ENODATA);
	CHECK(strstr(kprof_error_cause(), "no time"));
	CHECK(!file_exists(in_scratch("z.svg")));
}

/* Numbers that no clock can give must not add up to nonsense. */
static void huge_weights(void)
{
	struct made_stacks s;
	char *text;

	known_tables(&s, in_scratch("w.kprof"));
	made__sample(&s, 0, 0, 1, UINT64_MAX, WHOLE);
	made__sample(&s, 1, 0, 2, UINT64_MAX, WHOLE);
	made__finish(&s.m);
	text = exported_as("w.kprof", "w.svg");
	check_markup(text);
	CHECK(has(text, "(100.0 %), 2 samples"));
	free(text);
	free(exported_as("w.kprof", "w.folded"));
	free(exported_as("w.kprof", "w.pb.gz"));
	free(exported_as("w.kprof", "w.speedscope.json"));
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(hostile), TEST(bounded),
	  TEST(parts_of_the_time), TEST(deep), TEST(no_time), TEST(huge_weights),
	  {"(clean-up)", scratch__remove})
