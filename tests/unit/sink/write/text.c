// SPDX-License-Identifier: BSD-2-Clause
#include "sink/write/write.h"
#include "unit.h"

static char written[4096];
static size_t nr_written;

static int collect(void *ctx, const void *data, size_t bytes)
{
	memcpy(written + nr_written, data, bytes);
	nr_written += bytes;
	return 0;
}

static const char *xml(const char *name, unsigned int columns)
{
	struct jsonw w;

	nr_written = 0;
	if (jsonw__init(&w, collect, NULL))
		abort();
	text_xml(&w, name, columns);
	jsonw__flush(&w);
	jsonw__fini(&w);
	written[nr_written] = '\0';
	return written;
}

static void markup(void)
{
	CHECK_STR(xml("a<b>&\"c\"'", 0), "a&lt;b&gt;&amp;&quot;c&quot;'");
	CHECK_STR(xml("]]>", 0), "]]&gt;");
	CHECK_STR(xml("", 0), "");
	CHECK_STR(xml("\n\t\x1b[0m\x7f", 0), "\\x0a\\x09\\x1b[0m\\x7f");
}

static void bytes_that_are_no_text(void)
{
	CHECK_STR(xml("\xff\xc3", 0), "\\xff\\xc3");
	CHECK_STR(xml("caf\xc3\xa9", 0), "café");
	CHECK_STR(xml("\xed\xa0\x80", 0), "\\xed\\xa0\\x80");      /* a surrogate */
	CHECK_STR(xml("\xe2\x80\xae", 0), "\\xe2\\x80\\xae");      /* right to left from here */
	CHECK_STR(xml("\xef\xbf\xbf", 0), "\\xef\\xbf\\xbf");      /* not a character of XML's */
	CHECK_STR(xml("\xf0\x9f\x94\xa5", 0), "\xf0\x9f\x94\xa5"); /* one of four bytes */
	CHECK_STR(xml("\xc2\x85", 0), "\\xc2\\x85");
}

static void cut(void)
{
	CHECK_STR(xml("abcdef", 6), "abcdef");
	CHECK_STR(xml("abcdef", 5), "abcd…");
	CHECK_STR(xml("a&&&&&", 3), "a&amp;…");
	CHECK_STR(xml("函数函数", 8), "函数函数"); /* two columns each */
	CHECK_STR(xml("函数函数", 7), "函数函…");
	CHECK_STR(xml("函数函数", 6), "函数…");
	CHECK_STR(xml("a\xff\xff", 5), "a…"); /* never in the middle of \xff */
	CHECK_STR(xml("abc", 1), "…");
}

static void copies(void)
{
	char *text = text_copy("a\xff\"\n");

	CHECK_STR(text, "a\\xff\"\\x0a");
	free(text);
}

UNIT_MAIN(TEST(markup), TEST(bytes_that_are_no_text), TEST(cut), TEST(copies))
