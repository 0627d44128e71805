// SPDX-License-Identifier: BSD-2-Clause
#include "push/impl.h"
#include "store_fixture.h"

static void headers(void)
{
	static const char *const wrong[] = {
		"",           "X",
		"X:",         ": x",
		"X Y: z",     "X:  ",
		"X: a\nY: b", "X: a\r",
		"X\x01: a",   "authorization: Bearer x",
		"HOST: a",    "content-length: 3",
		"Expect: x",
	};

	CHECK_EQ(push_header_check("X-Scope-OrgID: 7"), 0);
	CHECK_EQ(push_header_check("X:7"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_EQ(push_header_check(wrong[i]), -EINVAL);
}

static int load(const char *bytes, size_t nr, struct push_secret *s)
{
	spit(in_scratch("secret"), bytes, nr);
	return push_secret__load(s, in_scratch("secret"));
}

static void secrets(void)
{
	static const char twice[] = "a\nb\n", nul[] = "a\0b", header[] = "a\r\nX: b";
	static char large[17 << 10];
	struct push_secret s;

	CHECK_EQ(load("abc\r\n", 5, &s), 0);
	CHECK_STR(s.text, "abc");
	spit(in_scratch("secret"), "new", 3);
	push_secret__renew(&s);
	CHECK_STR(s.text, "new");
	/* Being written just now, or gone: what was known stays. */
	spit(in_scratch("secret"), "", 0);
	push_secret__renew(&s);
	CHECK_STR(s.text, "new");
	unlink(in_scratch("secret"));
	push_secret__renew(&s);
	CHECK_STR(s.text, "new");
	push_secret__free(&s);
	CHECK(!s.text);

	CHECK(push_secret__load(&s, in_scratch("secret")) < 0);
	CHECK(strstr(kprof_error_cause(), "No such file"));
	CHECK(load("", 0, &s) < 0);
	CHECK(load(twice, 4, &s) < 0);
	CHECK(!strchr(kprof_error_cause(), '\n'));
	CHECK(load(nul, 3, &s) < 0);
	CHECK(load(header, 7, &s) < 0);
	memset(large, 'x', sizeof(large));
	CHECK(load(large, sizeof(large), &s) < 0);
	CHECK_EQ(mkfifo(in_scratch("pipe"), 0600), 0);
	CHECK(push_secret__load(&s, in_scratch("pipe")) < 0); /* at once */
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(headers), TEST(secrets),
	  {"(clean-up)", scratch__remove})
