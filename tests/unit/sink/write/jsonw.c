// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/sink/write/jsonw.c and user/util/json_valid.c, held to cJSON and to the C library's printf.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "sink/write/write.h"
#include "unit.h"
#include "util/json_valid.h"
#include "util/util.h"

struct sink {
	char *data;
	size_t bytes, calls;
	int err; /* returned from the second call on */
};

static int collect(void *ctx, const void *data, size_t bytes)
{
	struct sink *s = ctx;

	if (s->calls++ && s->err)
		return s->err;
	s->data = realloc(s->data, s->bytes + bytes + 1);
	if (!s->data)
		abort();
	memcpy(s->data + s->bytes, data, bytes);
	s->bytes += bytes;
	s->data[s->bytes] = '\0';
	return 0;
}

/* What a reader gets back of a name. The caller frees it. */
static char *round_trip(const char *bytes, size_t len)
{
	size_t quoted_len;
	char *quoted = jsonw_quote(bytes, len, &quoted_len), *text = NULL;
	cJSON *json;

	CHECK(quoted);
	if (!quoted)
		return NULL;
	CHECK_EQ(strlen(quoted), quoted_len);
	CHECK(json_valid(quoted));
	json = cJSON_ParseWithOpts(quoted, NULL, 1);
	CHECK(cJSON_IsString(json));
	if (cJSON_IsString(json))
		text = strdup(json->valuestring);
	cJSON_Delete(json);
	free(quoted);
	return text;
}

static void check_round_trip(const char *bytes, const char *expected)
{
	char *text = round_trip(bytes, strlen(bytes));

	CHECK_STR(text, expected);
	free(text);
}

static void every_byte(void)
{
	for (int byte = 1; byte < 256; byte++) {
		const char name[] = {'a', (char)byte, 'z', '\0'};
		char expected[8];

		/* Alone, a byte from 0x80 on is no UTF-8. */
		snprintf(expected, sizeof(expected), byte < 0x80 ? "a%cz" : "a\\x%02xz", byte);
		check_round_trip(name, expected);
	}
}

static void zero_byte(void)
{
	size_t len;
	char *quoted = jsonw_quote("a\0b", 3, &len);

	CHECK_STR(quoted, "\"a\\u0000b\"");
	free(quoted);
}

static void utf8_edges(void)
{
	static const struct {
		const char *bytes;
		const char *read; /* NULL: as written */
	} cases[] = {
		{"", NULL},
		{"\x7f", NULL},
		{"\xc2\x80", NULL},         /* U+0080, the first of two bytes */
		{"\xdf\xbf", NULL},         /* U+07FF, the last */
		{"\xe0\xa0\x80", NULL},     /* U+0800, the first of three */
		{"\xed\x9f\xbf", NULL},     /* U+D7FF, below the surrogates */
		{"\xee\x80\x80", NULL},     /* U+E000, above them */
		{"\xef\xbf\xbf", NULL},     /* U+FFFF */
		{"\xf0\x90\x80\x80", NULL}, /* U+10000, the first of four */
		{"\xf4\x8f\xbf\xbf", NULL}, /* U+10FFFF, the last of all */
		{"\xe2\x80\xa8", NULL},     /* U+2028, a line end to JavaScript */
		{"aten::\xc3\xa4\xe4\xbd\xa0\xf0\x9f\x94\xa5", NULL},
		{"\xc0\x80", "\\xc0\\x80"}, /* overlong NUL */
		{"\xc1\xbf", "\\xc1\\xbf"},
		{"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
		{"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
		{"\xed\xbf\xbf", "\\xed\\xbf\\xbf"},
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
		{"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\x80", "\\x80"},          /* a tail without a head */
		{"\xc3", "\\xc3"},          /* a head without a tail */
		{"\xe2\x82", "\\xe2\\x82"}, /* a cut name */
		{"\xf0\x9f\x94", "\\xf0\\x9f\\x94"},
		{"\xe2\x82z", "\\xe2\\x82z"},
		{"\xc3\xc3\xa4", "\\xc3\xc3\xa4"}, /* finds its way back */
		{"\"\\/\b\f\n\r\t\x1f", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_round_trip(cases[i].bytes, cases[i].read ? cases[i].read : cases[i].bytes);
}

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return hash64(seed);
}

/* Whatever the bytes: valid JSON comes out, and both ways of writing agree, across buffers. */
static void random_bytes(void)
{
	struct sink s = {0};
	struct jsonw w;

	CHECK_EQ(jsonw__init(&w, collect, &s), 0);
	for (int i = 0; i < 20000; i++) {
		char name[41];
		size_t len = next_random() % 40, quoted_len,
		       before = s.bytes + (size_t)(w.pos - w.buf);
		char *text, *quoted;

		for (size_t n = 0; n < len; n++) /* 0 ends a name; heads and tails come often */
			name[n] = (char)(next_random() % 3 ? 0x80 + next_random() % 128
							   : 1 + next_random() % 255);
		name[len] = '\0';
		text = round_trip(name, len);
		free(text);
		quoted = jsonw_quote(name, len, &quoted_len);
		jsonw__string(&w, name);
		CHECK_EQ(s.bytes + (size_t)(w.pos - w.buf) - before, quoted_len);
		free(quoted);
	}
	CHECK_EQ(jsonw__flush(&w), 0);
	CHECK(s.calls > 2);
	jsonw__fini(&w);
	free(s.data);
}

static void check_u64(uint64_t v)
{
	char ours[JSONW_INT_BYTES + 1], theirs[32];

	*jsonw_put_u64(ours, v) = '\0';
	snprintf(theirs, sizeof(theirs), "%" PRIu64, v);
	CHECK_STR(ours, theirs);
}

static void integers(void)
{
	uint64_t power = 1;

	check_u64(0);
	check_u64(UINT64_MAX);
	for (int i = 0; i < 20; i++, power *= 10) {
		check_u64(power - 1);
		check_u64(power);
		check_u64(power + 1);
	}
	for (int i = 0; i < 64; i++) {
		check_u64(1ull << i);
		check_u64((1ull << i) - 1);
	}
	for (int i = 0; i < 20000; i++)
		check_u64(next_random() >> next_random() % 64);
}

static void check_us(int64_t ns)
{
	char ours[JSONW_US_BYTES + 1], theirs[40];
	uint64_t abs_ns = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char *end = jsonw_put_us(ours, ns);

	CHECK(end <= ours + JSONW_US_BYTES);
	*end = '\0';
	snprintf(theirs, sizeof(theirs), "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "",
		 abs_ns / 1000, abs_ns % 1000);
	if (abs_ns < 1000000000000000) {
		/* Readers with doubles: those that cut, and those that round. */
		CHECK_EQ((int64_t)(strtod(ours, NULL) * 1000), ns);
		CHECK_EQ(llround(strtod(ours, NULL) * 1000), ns);
		if ((int64_t)(strtod(theirs, NULL) * 1000) != ns)
			strcat(theirs, "2");
	}
	CHECK_STR(ours, theirs);
}

static void microseconds(void)
{
	static const int64_t cases[] = {0,
					1,
					9,
					10,
					99,
					100,
					999,
					1000,
					1001,
					-1,
					-999,
					-1000,
					86400000000000,
					INT64_MAX,
					INT64_MIN};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_us(cases[i]);
	for (int i = 0; i < 200000; i++)
		check_us((int64_t)next_random() >> next_random() % 64);
}

static void valid_json(void)
{
	static const char *const good[] = {
		"0",
		"-0",
		"1e5",
		"-1.25E-3",
		"true",
		"false",
		"null",
		"\"\"",
		"\"\\u00e4\\n\"",
		"[]",
		"{}",
		" [ 1 , 2 ] ",
		"{\"a\":{\"b\":[null,\"\xc3\xa4\"]},\"c\":0}",
		"\t\r\n1\n",
	};
	static const char *const bad[] = {
		"",       " ",        "01",       "1.",          ".5",
		"+1",     "-",        "1e",       "1e+",         "tru",
		"nul",    "True",     "NaN",      "Infinity",    "'a'",
		"\"",     "\"a",      "\"\\x\"",  "\"\\u12g4\"", "\"\\u12\"",
		"\"\n\"", "\"\xff\"", "\"\xc3\"", "[",           "[1",
		"[1,",    "[1,]",     "[,1]",     "]",           "{",
		"{\"a\"", "{\"a\":",  "{\"a\":1", "{\"a\":1,}",  "{a:1}",
		"{1:1}",  "1 2",      "[]]",      "{}{}",        "1//x",
		"\x01",
	};
	char deep[201];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cJSON *json = cJSON_ParseWithOpts(good[i], NULL, 1);

		CHECK(json_valid(good[i]));
		CHECK(json);
		cJSON_Delete(json);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (!json_valid(bad[i]))
			continue;
		printf("# taken for JSON: %s\n", bad[i]);
		CHECK(!"valid");
	}
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	deep[200] = '\0';
	CHECK(!json_valid(deep));
	memset(deep, '[', 60);
	memset(deep + 60, ']', 60);
	deep[120] = '\0';
	CHECK(json_valid(deep));
}

static void foreign_json(void)
{
	struct sink s = {0};
	struct jsonw w;

	CHECK_EQ(jsonw__init(&w, collect, &s), 0);
	jsonw__json(&w, "{\"a\": 1}");
	jsonw__json(&w, "{a\": 1}");
	CHECK_EQ(jsonw__flush(&w), 0);
	CHECK_STR(s.data, "{\"a\": 1}\"{a\\\": 1}\"");
	jsonw__fini(&w);
	free(s.data);
}

static void longer_than_the_buffer(void)
{
	size_t bytes = JSONW_BUFFER_BYTES * 2 + 12345;
	char *text = malloc(bytes + 1);
	struct sink s = {0};
	struct jsonw w;

	if (!text)
		abort();
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)('a' + i % 26);
	text[bytes] = '\0';
	CHECK_EQ(jsonw__init(&w, collect, &s), 0);
	jsonw__text(&w, "x");
	jsonw__raw(&w, text, bytes);
	jsonw__string(&w, text);
	CHECK_EQ(jsonw__flush(&w), 0);
	CHECK_EQ(s.bytes, 1 + bytes + bytes + 2);
	CHECK(!memcmp(s.data + 1, text, bytes));
	CHECK(!memcmp(s.data + 1 + bytes + 1, text, bytes));
	jsonw__fini(&w);
	free(s.data);
	free(text);
}

static void errors_stick(void)
{
	struct sink s = {.err = -ENOSPC};
	struct jsonw w;

	CHECK_EQ(jsonw__init(&w, collect, &s), 0);
	jsonw__text(&w, "first");
	CHECK_EQ(jsonw__flush(&w), 0);
	jsonw__text(&w, "second");
	CHECK_EQ(jsonw__flush(&w), -ENOSPC);
	jsonw__text(&w, "third");
	CHECK_EQ(jsonw__flush(&w), -ENOSPC);
	CHECK_EQ(s.calls, 2);
	CHECK_STR(s.data, "first");
	jsonw__fini(&w);
	free(s.data);
}

UNIT_MAIN(TEST(every_byte), TEST(zero_byte), TEST(utf8_edges), TEST(random_bytes), TEST(integers),
	  TEST(microseconds), TEST(valid_json), TEST(foreign_json), TEST(longer_than_the_buffer),
	  TEST(errors_stick))
