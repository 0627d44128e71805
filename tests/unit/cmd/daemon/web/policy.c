// SPDX-License-Identifier: BSD-2-Clause
/* What clients say, and what is made of it. */
#include "cmd/daemon/web/policy.h"

#include "unit.h"

static const char *const names[] = {"node-7.cluster", "kprof"};

static void hosts(void)
{
	static const char *const ours[] = {
		"127.0.0.1",
		"127.0.0.1:11778",
		"localhost",
		"LOCALHOST:1",
		"[::1]",
		"[::1]:11778",
		"10.1.2.3:1",
		"[fe80::1]",
		"kprof",
		"Kprof:80",
		"node-7.cluster:65535",
	};
	static const char *const others[] = {
		"",
		"evil.example",
		"evil.example:11778",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"127.0.0.1:",
		"127.0.0.1:80x",
		"127.0.0.1:123456",
		"127.0.0.1@evil.example",
		"kprof.evil.example",
		"kprof ",
		" kprof",
		"[::1",
		"[::1]x",
		"[::1]:",
		"[evil.example]",
		"[]",
		"::1",
		"localhost:80:80",
		"0x7f.1",
		"2130706433",
	};
	char longest[400];

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		CHECK(policy_host(ours[i], names, 2));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		CHECK(!policy_host(others[i], names, 2));
	CHECK(!policy_host("kprof", NULL, 0));
	memset(longest, '1', sizeof(longest));
	longest[399] = '\0';
	CHECK(!policy_host(longest, names, 2));
}

static void tokens(void)
{
	CHECK_STR(policy_bearer("Bearer abc"), "abc");
	CHECK_STR(policy_bearer("bearer  abc"), "abc");
	CHECK_STR(policy_bearer("Bearer "), "");
	CHECK(!policy_bearer("Bearerabc"));
	CHECK(!policy_bearer("Basic abc"));
	CHECK(policy_equal("0123456789abcdef", "0123456789abcdef"));
	CHECK(!policy_equal("0123456789abcdeg", "0123456789abcdef"));
	CHECK(!policy_equal("0123456789abcdef0123456789abcdef", "0123456789abcdef"));
	CHECK(!policy_equal("0123456789abcde", "0123456789abcdef"));
	CHECK(!policy_equal("", "0123456789abcdef"));
	CHECK(!policy_equal("x", ""));
}

static void formats(void)
{
	CHECK(policy_openmetrics("application/openmetrics-text;version=1.0.0"));
	/* Prometheus 2.42, and 3 */
	CHECK(policy_openmetrics(
		"application/openmetrics-text;version=1.0.0,application/"
		"openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/"
		"*;q=0.1"));
	CHECK(policy_openmetrics(
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
		"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;"
		"version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;"
		"q=0.3,*/*;q=0.2"));
	CHECK(!policy_openmetrics(
		"text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.3"));
	CHECK(!policy_openmetrics("application/openmetrics-text;q=0"));
	CHECK(!policy_openmetrics("application/openmetrics-textual"));
	CHECK(!policy_openmetrics("*/*"));
	CHECK(!policy_openmetrics("text/html,application/xhtml+xml"));
	CHECK(!policy_openmetrics(""));
	CHECK(!policy_openmetrics(",,;;q=,"));
	CHECK(!policy_openmetrics(NULL));
}

static void paths(void)
{
	static const char *const none[] = {
		"",
		"/index.html",
		"/metrics/",
		"//metrics",
		"/Metrics",
		"/dump/",
		"/dump/.",
		"/dump/..",
		"/dump/.a",
		"/dump/a/b",
		"/dump/a%2fb",
		"/dump/a b",
		"/dump/../metrics",
		"/trace",
		"/dump/\xc3\xa4",
		"/api",
		"/api/../",
		"http://x/metrics",
		"metrics",
		"/dump/a\\b",
	};
	char longest[300] = "/trace/";
	struct web_question q;

	CHECK_EQ(policy_path("/", &q), POLICY_PAGE);
	CHECK(policy_path("/metrics", &q) == POLICY_ASK && q.get == WEB_METRICS);
	CHECK(policy_path("/api/status", &q) == POLICY_ASK && q.get == WEB_STATUS);
	CHECK(policy_path("/api/processes", &q) == POLICY_ASK && q.get == WEB_PROCESSES);
	CHECK(policy_path("/api/dumps", &q) == POLICY_ASK && q.get == WEB_DUMPS);
	CHECK(policy_path("/flame", &q) == POLICY_ASK && q.get == WEB_FLAME && !*q.name);
	CHECK(policy_path("/dump/slow-step.1", &q) == POLICY_ASK && q.get == WEB_DUMP);
	CHECK_STR(q.name, "slow-step.1");
	CHECK(policy_path("/trace/a_B-9", &q) == POLICY_ASK && q.get == WEB_TRACE);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		CHECK_EQ(policy_path(none[i], &q), POLICY_NOTHING);
	memset(longest + 7, 'a', WEB_NAME_BYTES);
	CHECK_EQ(policy_path(longest, &q), POLICY_ASK);
	CHECK_EQ(strlen(q.name), WEB_NAME_BYTES);
	longest[7 + WEB_NAME_BYTES] = 'a';
	CHECK_EQ(policy_path(longest, &q), POLICY_NOTHING);
}

UNIT_MAIN(TEST(hosts), TEST(tokens), TEST(formats), TEST(paths))
