// SPDX-License-Identifier: BSD-2-Clause
/* What the command line prints. */
#include "cmd/print/json.h"
#include "cmd/print/nearest.h"
#include "cmd/print/text.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void characters_are_judged_one_by_one(void)
{
	CHECK_EQ(text_utf8("a"), 1);
	CHECK_EQ(text_utf8("\xc3\xa9"), 2);
	CHECK_EQ(text_utf8("\xe2\x82\xac"), 3);
	CHECK_EQ(text_utf8("\xf0\x9f\x90\x8d"), 4);
	CHECK_EQ(text_utf8(""), 0);
	CHECK_EQ(text_utf8("\x80"), 0); /* a continuation first */
	CHECK_EQ(text_utf8("\xc3"), 0); /* cut short */
	CHECK_EQ(text_utf8("\xe2\x82"), 0);
	CHECK_EQ(text_utf8("\xc0\xaf"), 0); /* longer than need be */
	CHECK_EQ(text_utf8("\xe0\x80\xaf"), 0);
	CHECK_EQ(text_utf8("\xed\xa0\x80"), 0);     /* a surrogate */
	CHECK_EQ(text_utf8("\xf4\x90\x80\x80"), 0); /* above U+10FFFF */
}

static void terminals_get_no_control_characters(void)
{
	char defused[] = "a\033[2J\n\x7f\xc2\x9b\xff\xc3\xa9\xe2\x80\xae";
	char *text = text_printable("a\033[2J\n\x7f\xc2\x9b\xff\xc3\xa9");

	text_defuse(defused);
	CHECK_STR(defused, "a?[2J?"
			   "?"
			   "??"
			   "?\xc3\xa9???");
	CHECK_STR(text, "a\\x1b[2J\\x0a\\x7f\\xc2\\x9b\\xff\xc3\xa9");
	CHECK_EQ(text_columns(text), 2 + 4 * 7 - 4 + 3);
	free(text);
	text = text_printable("gnp.\xe2\x80\xae"
			      "exe");
	CHECK_STR(text, "gnp.\\xe2\\x80\\xaeexe");
	free(text);
}

static void numbers_have_units(void)
{
	char buf[TEXT_NUMBER_BYTES];

	CHECK_STR(text_time(buf, 0), "0ns");
	CHECK_STR(text_time(buf, 999), "999ns");
	CHECK_STR(text_time(buf, 12345), "12.345us");
	CHECK_STR(text_time(buf, 1234567), "1.235ms");
	CHECK_STR(text_time(buf, 5000000000), "5.000s");
	CHECK_STR(text_bytes(buf, 640), "640 B");
	CHECK_STR(text_bytes(buf, 64 << 20), "64.0 MiB");
	CHECK_STR(text_bytes(buf, UINT64_MAX), "16777216.0 TiB");
}

/* What a function writes, as a string. */
static char *printed(void (*print)(FILE *to))
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	print(to);
	fclose(to);
	return text;
}

static void print_table(FILE *to)
{
	static const struct table_column columns[] = {
		{"Name", false, 8}, {"N", true, 0}, {"Rest", false, 0}};
	struct table *t = table__new(columns, 3);

	CHECK(table__add(t, (const char *[]){"a\033", "7", "x"}));
	CHECK(table__add(t, (const char *[]){"\xc3\xa9t\xc3\xa9 comme hiver", "1234", "y z"}));
	table__print(t, to, true);
	table__free(t);
}

static void tables_line_up(void)
{
	char *text = printed(print_table);

	CHECK_STR(text, "--------  ----  ----\n"
			"Name         N  Rest\n"
			"--------  ----  ----\n"
			"a\\x1b        7  x\n"
			"\xc3\xa9t\xc3\xa9 c...  1234  y z\n"
			"--------  ----  ----\n");
	free(text);
}

static void print_json(FILE *to)
{
	struct json j = {.to = to};

	json_open(&j, NULL, '{');
	json_string(&j, "name \"x\"\\", "tab\t nul\x01 bad\xff\xc3 \xc3\xa9");
	json_string(&j, "control", "\x1b \x7f \xc2\x80\xc2\x9b\xc2\x9f \xc2\xa0");
	json_uint(&j, "big", UINT64_MAX);
	json_double(&j, "nan", 0.0 / 0.0);
	json_double(&j, "half", 0.5);
	json_bool(&j, "yes", true);
	json_open(&j, "empty", '[');
	json_close(&j, ']');
	json_open(&j, "list", '[');
	json_uint(&j, NULL, 1);
	json_open(&j, NULL, '{');
	json_close(&j, '}');
	json_close(&j, ']');
	json_close(&j, '}');
}

static void json_is_json_whatever_the_names(void)
{
	char *text = printed(print_json);
	cJSON *root = cJSON_Parse(text);

	CHECK(root);
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(root, "name \"x\"\\")),
		  "tab\t nul\x01 bad\xef\xbf\xbd\xef\xbf\xbd \xc3\xa9");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(root, "control")),
		  "\x1b \x7f \xc2\x80\xc2\x9b\xc2\x9f \xc2\xa0");
	CHECK(strstr(text, "\"\\u001b \\u007f \\u0080\\u009b\\u009f \xc2\xa0\""));
	CHECK(strstr(text, "18446744073709551615"));
	CHECK(cJSON_GetObjectItem(root, "nan")->valuedouble == 0);
	CHECK(cJSON_GetObjectItem(root, "half")->valuedouble == 0.5);
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(root, "yes")));
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetObjectItem(root, "empty")), 0);
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetObjectItem(root, "list")), 2);
	cJSON_Delete(root);
	free(text);
}

static void the_nearest_command(void)
{
	static const char *const names[] = {"attach", "run", "report", "export", "list"};
	char longer[200];

	CHECK_STR(nearest("atach", names, 5), "attach");
	CHECK_STR(nearest("attahc", names, 5), "attach");
	CHECK_STR(nearest("reprot", names, 5), "report");
	CHECK_STR(nearest("lst", names, 5), "list");
	CHECK(!nearest("", names, 5));
	CHECK(!nearest("frobnicate", names, 5));
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(!nearest(longer, names, 5));
}

UNIT_MAIN(TEST(characters_are_judged_one_by_one), TEST(terminals_get_no_control_characters),
	  TEST(numbers_have_units), TEST(tables_line_up), TEST(json_is_json_whatever_the_names),
	  TEST(the_nearest_command))
