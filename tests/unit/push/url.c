// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "push/impl.h"
#include "unit.h"
#include "util/util.h"

static void taken(void)
{
	static const struct {
		const char *text, *base;
		enum kprof_push_kind kind;
		bool tls, loopback;
	} urls[] = {
		{"otlp+http://localhost", "http://localhost:4318", KPROF_PUSH_OTLP, false, true},
		{"otlp+http://10.1.2.3:80", "http://10.1.2.3:80", KPROF_PUSH_OTLP, false, false},
		{"otlp+https://a.example/x/y//", "https://a.example:443/x/y", KPROF_PUSH_OTLP, true,
		 false},
		{"pyroscope+http://[::1]", "http://[::1]:4040", KPROF_PUSH_PYROSCOPE, false, true},
		{"parca+http://127.9.9.9", "http://127.9.9.9:7070", KPROF_PUSH_PARCA, false, true},
		{"parca+https://[2001:db8::1]:1/", "https://[2001:db8::1]:1", KPROF_PUSH_PARCA,
		 true, false},
		/* no address of this machine's, but somebody's name */
		{"parca+http://127.0.0.1.a.example", "http://127.0.0.1.a.example:7070",
		 KPROF_PUSH_PARCA, false, false},
		{"parca+http://localhost.example", "http://localhost.example:7070",
		 KPROF_PUSH_PARCA, false, false},
	};
	struct kprof_push_url url;

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		CHECK_EQ(kprof_push_parse_url(urls[i].text, &url), 0);
		CHECK_STR(url.base, urls[i].base);
		CHECK_EQ(url.kind, urls[i].kind);
		CHECK_EQ(url.tls, urls[i].tls);
		CHECK_EQ(url.loopback, urls[i].loopback);
	}
}

static void refused(void)
{
	static const char *const texts[] = {
		"",
		"http://a",
		"otlp://a",
		"otlp+ftp://a",
		"jaeger+http://a",
		"otlp+http://",
		"otlp+http:///x",
		"otlp+http://:4318",
		"otlp+http://a:0",
		"otlp+http://a:65536",
		"otlp+http://a:x",
		"otlp+http://a:",
		"otlp+http://a:000004318",
		"otlp+http://a b",
		"otlp+http://a\r\nHost: b",
		"otlp+http://a/x?y=1",
		"otlp+http://a/x#y",
		"otlp+http://a/../b",
		"otlp+http://a/%2e",
		"otlp+http://[]",
		"otlp+http://[::1",
		"otlp+http://[::1]x",
		"OTLP+http://a",
		"otlp+http://\xc3\xa4",
	};
	char longest[KPROF_PUSH_URL_BYTES + 64] = "otlp+http://a/";
	struct kprof_push_url url;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CHECK_EQ(kprof_push_parse_url(texts[i], &url), -EINVAL);
		CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
		CHECK(kprof_error_hint());
	}
	memset(longest + strlen(longest), 'x', KPROF_PUSH_URL_BYTES);
	CHECK_EQ(kprof_push_parse_url(longest, &url), -EINVAL);
	CHECK_EQ(kprof_push_parse_url("otlp+http://me:secret@a", &url), -EINVAL);
	CHECK(!strstr(kprof_error_cause(), "secret"));
}

UNIT_MAIN(TEST(taken), TEST(refused))
