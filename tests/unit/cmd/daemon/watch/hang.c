// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that look at chunks and never end: they are killed, what is waited for comes next, and
 * what is said of it is true. Each stops itself as soon as it is begun; the time is the test's.
 */
#include "unit.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"
#include "cmd/daemon/watch/triggers.h"

#define SECOND 1000000000ull
#define BOUND 0.01

static struct loop *loop;

/* In a process that was just begun. */
static void hang(void)
{
	raise(SIGSTOP);
}

/* Until the only child has stopped (WSTOPPED), or was killed (WEXITED). */
static void wait_until(int option)
{
	siginfo_t info;

	CHECK(!waitid(P_ALL, 0, &info, option | WNOWAIT));
}

static bool has(const struct metrics *m, const char *line)
{
	size_t bytes;
	char *text = metrics__text(m, METRICS_TEXT, &bytes);
	bool found = text && strstr(text, line);

	free(text);
	return found;
}

static void figures(void)
{
	uint64_t begun = now_ns(CLOCK_MONOTONIC);
	struct metrics *m = metrics__new();
	struct looks *l = looks__new(loop, m, "/tmp");

	looks__chunk(l, CHUNK_SAMPLES, "/nothing");
	looks__chunk(l, CHUNK_FLIGHT, "/nothing");
	looks__tend(l, begun + SECOND, BOUND); /* a chunk has just ended, which costs by itself */
	CHECK(children__nr() == 0);
	looks__tend(l, begun + 4 * SECOND, BOUND);
	wait_until(WSTOPPED);
	looks__tend(l, begun + 600 * SECOND, BOUND);
	CHECK(children__nr() == 1);
	CHECK(!has(m, "kprof_chunk_looks_total"));
	looks__tend(l, begun + 605 * SECOND, BOUND);
	wait_until(WEXITED);
	children__reap();
	CHECK(children__nr() == 0);
	CHECK(has(m, "kprof_chunk_looks_total{kind=\"samples\",result=\"failed\"} 1\n"));
	/* the next one, after a while in which looks do not use more CPU time than they may */
	looks__tend(l, begun + 606 * SECOND, BOUND);
	CHECK(children__nr() == 1);
	wait_until(WSTOPPED);
	looks__chunk(l, CHUNK_SAMPLES, "/nothing");
	looks__stop(l); /* the daemon ends */
	wait_until(WEXITED);
	children__reap();
	CHECK(has(m, "kprof_chunk_looks_total{kind=\"flight\",result=\"failed\"} 1\n"));
	looks__tend(l, begun + 700 * SECOND, BOUND);
	CHECK(children__nr() == 0);
	looks__free(l);
	metrics__free(m);
}

static void met(void *ctx, const struct trigger_rule *rule, uid_t asked_by, const char *what)
{
	(void)ctx;
	(void)rule;
	(void)asked_by;
	(void)what;
	abort();
}

static struct triggers *watching(const struct value_list *rules)
{
	const struct triggers_opts opts = {.loop = loop, .rules = rules, .met = met};
	struct triggers *t = triggers__new(&opts);

	triggers__chunk(t, "/proc/self/cmdline"); /* there is such a file */
	CHECK(children__nr() == 1);
	wait_until(WSTOPPED);
	return t;
}

static void rules(void)
{
	char rule[] = "step>500ms";
	char *items[] = {rule};
	const struct value_list rules = {.items = items, .nr = 1};
	uint64_t begun = now_ns(CLOCK_MONOTONIC);
	struct triggers *t = watching(&rules);

	triggers__tend(t, begun + 110 * SECOND);
	CHECK(!waitpid(-1, NULL, WNOHANG));
	triggers__tend(t, begun + 125 * SECOND);
	wait_until(WEXITED);
	children__reap();
	CHECK(children__nr() == 0);
	triggers__free(t);
	/* one that nobody waits for any more */
	t = watching(&rules);
	triggers__free(t);
	wait_until(WEXITED);
	children__reap();
	CHECK(children__nr() == 0);
}

static double number_of(const struct triggers *t, const char *key)
{
	cJSON *o = triggers__state(t);
	double v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, key));

	cJSON_Delete(o);
	return v;
}

/* The look that goes on ends. */
static void end_look(void)
{
	children__signal(SIGKILL);
	wait_until(WEXITED);
	children__reap();
}

/* A device window and a chunk that come while a look goes on are looked at afterwards. */
static void waiting(void)
{
	char idle[] = "gpu-idle>50%", mark[] = "mark:x";
	char *items[] = {idle, mark};
	const struct value_list rules = {.items = items, .nr = 2};
	struct triggers *t = watching(&rules);

	triggers__window(t, "/proc/self/cmdline");
	triggers__chunk(t, "/proc/self/cmdline");
	CHECK_EQ(number_of(t, "looks_skipped"), 0);
	triggers__chunk(t, "/proc/self/cmdline"); /* in place of that one */
	CHECK_EQ(number_of(t, "looks_skipped"), 1);
	for (int looks = 1; looks <= 2; looks++) {
		end_look();
		CHECK_EQ(number_of(t, "looks"), looks);
		CHECK_EQ(children__nr(), 1);
	}
	triggers__window(t, "/nothing"); /* gone when its turn comes */
	end_look();
	CHECK_EQ(children__nr(), 0);
	CHECK_EQ(number_of(t, "looks"), 3);
	CHECK_EQ(number_of(t, "looks_skipped"), 2);
	triggers__free(t);
}

static void begin(void)
{
	loop = loop__new();
	CHECK(loop);
	alarm(120); /* what is not killed is waited for in vain */
	CHECK(!pthread_atfork(NULL, NULL, hang));
}

UNIT_MAIN(TEST(begin), TEST(figures), TEST(rules), TEST(waiting))
