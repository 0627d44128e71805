// SPDX-License-Identifier: BSD-2-Clause
/* What a capture becomes: how many requests, and their heads. push.bats has what is in them. */
#include <dirent.h>

#include "push/impl.h"
#include "stacks_fixture.h"

static struct push_head heads[16];

/* Makes the requests, and reads their heads; how many there are. */
static int made_requests(const char *capture, const char *url, const char *const *labels, size_t nr)
{
	struct kprof_push_url to;
	const struct push_make make = {.url = &to, .resource = {"a shop", labels, nr}};
	static int number;
	struct kprof_capture *c;
	char folder[300], path[400], *json;
	int n = 0;

	snprintf(folder, sizeof(folder), "%s/made-%d", scratch, number++);
	CHECK_EQ(mkdir(folder, 0700), 0);
	CHECK_EQ(kprof_push_parse_url(url, &to), 0);
	CHECK_EQ(kprof_capture_open(in_scratch(capture), &c), 0);
	CHECK_EQ(push_make_requests(&make, c, folder), 0);
	kprof_capture_close(c);
	for (;; n++) {
		snprintf(path, sizeof(path), "%s/%d.head", folder, n);
		if (read_file(path, 1 << 20, &json, NULL))
			break;
		CHECK(push_head_parse(json, &heads[n]));
		free(json);
		snprintf(path, sizeof(path), "%s/%d.body", folder, n);
		CHECK_EQ(access(path, R_OK), 0);
	}
	return n;
}

static void names(void)
{
	static const char *const labels[] = {"a.b=x, y{}", "a_b=2", "3=\xc3\xa4&c=d"};

	known_capture(in_scratch("a.kprof"));
	/* Samples, and one off the CPU that is among them. */
	CHECK_EQ(made_requests("a.kprof", "pyroscope+http://x", labels, 3), 1);
	CHECK_STR(
		heads[0].target,
		"/ingest?name=a_shop%7Bprocess_executable_name%3Dprog%2Ca_b%3Dx_%20y__%2C_3%3D___c_d%7D"
		"&from=1728043200&until=1728043210&format=pprof&spyName=kprof");
	CHECK(!heads[0].gzip);
	CHECK_EQ(made_requests("a.kprof", "parca+http://x", labels, 3), 1);
	CHECK_STR(heads[0].type, "application/json");
	CHECK_EQ(made_requests("a.kprof", "otlp+http://x", labels, 3), 1);
	CHECK_STR(heads[0].target, "/v1development/profiles");
	CHECK(heads[0].gzip);
}

/* A PID that two processes had is in one request, which has the samples of both. */
static void one_pid_twice(void)
{
	struct made_stacks s;

	known_tables(&s, in_scratch("b.kprof"));
	made__process_at(&s.m, 5 * SEC_NS, 7, 1, "later");
	made__process(&s.m, 9, 1, "other");
	made__put(&s.m, (struct store_record){STORE_THREAD,
					      .thread = {.index = s.m.threads++,
							 .pid = 7,
							 .tid = 7,
							 .start_ns = MONO_NS + 5 * SEC_NS}});
	made__thread(&s.m, 9, 9, "other");
	made__sample(&s, 0, 0, 1, PERIOD_NS, WHOLE);
	made__sample(&s, 6 * SEC_NS, 2, 1, PERIOD_NS, WHOLE);
	made__sample(&s, 6 * SEC_NS, 3, 1, PERIOD_NS, WHOLE);
	made__finish(&s.m);
	CHECK_EQ(made_requests("b.kprof", "pyroscope+http://x", NULL, 0), 2);
	CHECK(strstr(heads[0].target, "name%3Dprog"));
	CHECK(strstr(heads[1].target, "name%3Dother"));
}

/* The same capture has the same hash, another one another. */
static void hashes(void)
{
	char a[PUSH_HASH_BYTES], again[PUSH_HASH_BYTES], b[PUSH_HASH_BYTES];
	struct kprof_capture *c;

	CHECK_EQ(kprof_capture_open(in_scratch("a.kprof"), &c), 0);
	push_hash(c, a);
	kprof_capture_close(c);
	CHECK_EQ(kprof_capture_open(in_scratch("a.kprof"), &c), 0);
	push_hash(c, again);
	kprof_capture_close(c);
	CHECK_EQ(kprof_capture_open(in_scratch("b.kprof"), &c), 0);
	push_hash(c, b);
	kprof_capture_close(c);
	CHECK_STR(a, again);
	CHECK(strcmp(a, b) != 0);
	CHECK_EQ(strlen(a), 16);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(names), TEST(one_pid_twice), TEST(hashes),
	  {"(clean-up)", scratch__remove})
