// SPDX-License-Identifier: BSD-2-Clause
#include "push/impl.h"
#include "unit.h"
#include "util/util.h"

#define S NSEC_PER_SEC

static void verdicts(void)
{
	static const int taken[] = {200, 202, 204}, again[] = {408, 429, 502, 503, 504},
			 drop[] = {0,   100, 301, 302, 307, 308, 400, 401,
				   403, 404, 413, 422, 500, 501, 999, -1};

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		CHECK_EQ(push_verdict_of(taken[i]), PUSH_TAKEN);
	for (size_t i = 0; i < ARRAY_SIZE(again); i++)
		CHECK_EQ(push_verdict_of(again[i]), PUSH_AGAIN);
	for (size_t i = 0; i < ARRAY_SIZE(drop); i++)
		CHECK_EQ(push_verdict_of(drop[i]), PUSH_DROP);
}

static void pauses(void)
{
	/* Doubled, of which half is random, and never more than a minute. */
	CHECK_EQ(push_pause_ns(S, 1, 0, 0), S / 2);
	CHECK_EQ(push_pause_ns(S, 1, 0, UINT32_MAX), S);
	CHECK_EQ(push_pause_ns(S, 4, 0, UINT32_MAX), 8 * S);
	CHECK_EQ(push_pause_ns(S, 7, 0, UINT32_MAX), 60 * S);
	CHECK_EQ(push_pause_ns(S, UINT32_MAX, 0, 0), 30 * S);
	CHECK_EQ(push_pause_ns(UINT64_MAX, 2, 0, UINT32_MAX), 60 * S);
	/* What the receiver asks for is the least, within limits. */
	CHECK_EQ(push_pause_ns(S, 1, 20 * S, 0), 20 * S);
	CHECK_EQ(push_pause_ns(S, 7, 20 * S, UINT32_MAX), 60 * S);
	CHECK_EQ(push_pause_ns(S, 1, 86400 * S, 0), 300 * S);
	CHECK_EQ(push_pause_ns(S, 1, UINT64_MAX, 0), 300 * S);
}

static void partial(void)
{
	static const char some[] = "\x0a\x0a\x08\x03\x12\x06"
				   "a\nb\x1b"
				   "cd";
	static const char minus[] = "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
	char reason[PUSH_TEXT_BYTES];
	uint64_t nr;

	CHECK(push_partial("", 0, &nr, reason));
	CHECK_EQ(nr, 0);
	CHECK(push_partial("\x0a\x00", 2, &nr, reason));
	CHECK_EQ(nr, 0);
	CHECK(push_partial(some, sizeof(some) - 1, &nr, reason));
	CHECK_EQ(nr, 3);
	CHECK_STR(reason, "a b cd");
	CHECK(push_partial(minus, sizeof(minus) - 1, &nr, reason));
	CHECK_EQ(nr, 0);
	for (size_t i = 1; i < sizeof(some) - 1; i++)
		CHECK(!push_partial(some, i, &nr, reason));
	CHECK(!push_partial("{\"partialSuccess\":{}}", 21, &nr, reason));
}

static void printable(void)
{
	char out[PUSH_TEXT_BYTES], large[1000];

	push_printable(" \x1b]0;title\x07 a\r\n\r\nb \xff", 19, out);
	CHECK_STR(out, "]0;title a b");
	memset(large, 'x', sizeof(large));
	push_printable(large, sizeof(large), out);
	CHECK_EQ(strlen(out), PUSH_TEXT_BYTES - 1);
}

static void heads(void)
{
	struct push_head h;

	CHECK(push_head_parse(
		"{\"kind\":\"otlp\",\"target\":\"/v1\",\"type\":\"a/b\",\"gzip\":true}", &h));
	CHECK_STR(h.target, "/v1");
	CHECK(h.gzip);
	CHECK(!push_head_parse("", &h));
	CHECK(!push_head_parse("[]", &h));
	CHECK(!push_head_parse("{\"kind\":\"otlp\",\"target\":\"v1\",\"type\":\"a\"}", &h));
	CHECK(!push_head_parse("{\"kind\":\"otlp\",\"target\":\"@evil/\",\"type\":\"a\"}", &h));
	CHECK(!push_head_parse("{\"kind\":\"otlp\",\"target\":\"/a\\r\\nX: y\",\"type\":\"a\"}",
			       &h));
	CHECK(!push_head_parse("{\"kind\":\"otlp\",\"target\":\"/a\",\"type\":\"a\\nX: y\"}", &h));
	CHECK(!push_head_parse(
		"{\"kind\":\"a-kind-that-is-far-too-long\",\"target\":\"/\",\"type\":\"a\"}", &h));
}

UNIT_MAIN(TEST(verdicts), TEST(pauses), TEST(partial), TEST(printable), TEST(heads))
