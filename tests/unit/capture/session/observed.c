// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operators that agents observe, and hits that wait for them: what is told in which order, and that
 * a process that says anything at all leaves no span open, no hit behind and no memory used.
 */
#include <stdint.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "unit.h"
#include "util/util.h"

#define PID 77u
#define THREADS 4u
#define MOST_TOLD 4096

/* ---- the agent ---- */

static struct {
	uint32_t tid;
	uint64_t since_ns; /* 0: everything has been handed over */
	unsigned int salvaged;
} agent;

bool agents__observes(const struct agents *a, const struct target *t)
{
	return t->pid == PID;
}

void agents__unread(struct agents *a, const struct target *t,
		    void (*early)(void *ctx, uint32_t tid, uint64_t since_ns), void *ctx)
{
	if (agent.since_ns)
		early(ctx, agent.tid, agent.since_ns);
}

int agents__salvage_thread(struct agents *a, const struct thread *th)
{
	agent.salvaged++;
	return 0;
}

/* ---- the session ---- */

static struct kprof_session s;
static struct thread *threads[THREADS];
static char path[64];

static struct {
	uint64_t time_ns[MOST_TOLD];
	char what[MOST_TOLD + 1]; /* ( a span begins, ) ends, h: a hit */
	size_t nr;
	uint64_t depth, hits;
	uint64_t latest_ns;
	uint64_t last_hit[THREADS];
} told;

static void tell(char what, uint64_t time_ns)
{
	if (time_ns > told.latest_ns)
		told.latest_ns = time_ns;
	if (told.nr == MOST_TOLD)
		return;
	told.time_ns[told.nr] = time_ns;
	told.what[told.nr++] = what;
	told.what[told.nr] = '\0';
}

static int begins(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		  uint64_t *number)
{
	told.depth++;
	tell('(', time_ns);
	return 0;
}

static int ends(void *ctx, const struct span_end *end)
{
	told.depth--;
	tell(')', end->time_ns);
	return 0;
}

static int take(struct kprof_session *session, struct thread *th, const struct kprof_wire_hdr *h)
{
	told.hits++;
	CHECK(h->time_ns >= told.last_hit[th->index]);
	told.last_hit[th->index] = h->time_ns;
	tell('h', h->time_ns);
	return 0;
}

static void begin(void)
{
	const struct spans_ops ops = {.begin = begins, .end = ends};
	struct target *t;

	memset(&s, 0, sizeof(s));
	s.opts.observe = ~0u; /* all scopes */
	memset(&told, 0, sizeof(told));
	memset(&agent, 0, sizeof(agent));
	snprintf(path, sizeof(path), "/dev/shm/kprof-unit-observed.%d", (int)getpid());
	CHECK_EQ(recorder__new(path, NULL, &s.recorder), 0);
	CHECK_EQ(targets__new(&s.targets) | threads__new(&s.threads), 0);
	CHECK_EQ(spans__new(&ops, &s.spans), 0);
	CHECK_EQ(observed__new(&s, take), 0);
	spans__open_window(s.spans, 0);
	t = targets__add(s.targets, PID);
	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i] = threads__add(s.threads, t, (uint64_t)PID << 32 | (PID + i));
		threads[i]->spans = spans__thread(s.spans, i, PID);
	}
}

static void end(void)
{
	CHECK_EQ(observed__finish(&s), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		CHECK(!observed__holds(&s, threads[i]));
		CHECK_EQ(observed__thread_ends(&s, threads[i]), 0);
		CHECK_EQ(spans__thread_end(s.spans, threads[i]->spans, told.latest_ns), 0);
	}
	CHECK_EQ(told.depth, 0);
	observed__free(&s);
	spans__free(s.spans);
	threads__free(s.threads);
	targets__free(s.targets);
	recorder__free(s.recorder);
	unlink(path);
}

static void hit(uint32_t thread, uint64_t time_ns)
{
	struct kprof_wire_hdr h = {.time_ns = time_ns, .size = sizeof(h)};

	CHECK_EQ(observed__hold(&s, threads[thread], &h), 0);
}

static struct agent_span began(uint64_t time_ns)
{
	return (struct agent_span){.time_ns = time_ns, .name = 1, .text = "aten::a"};
}

static struct agent_span ended(uint64_t time_ns)
{
	return (struct agent_span){.time_ns = time_ns, .kind = AGENT_SPAN_END};
}

static void hits_wait_for_operators(void)
{
	struct agent_span spans[] = {began(10), began(20), ended(30), ended(40)};

	begin();
	hit(0, 5);
	hit(0, 25);
	hit(0, 35);
	hit(0, 45);
	CHECK_STR(told.what, "");
	CHECK_EQ(observed__spans(&s, threads[0], 0, spans, 4), 0);
	CHECK_STR(told.what, "h((h)h)");
	CHECK(observed__holds(&s, threads[0]));
	end();
	CHECK_STR(told.what, "h((h)h)h");
}

/* What is in a slot was read at a look: only what the rings had until after that is known. */
static void a_look(uint32_t tid, bool held)
{
	uint64_t now_ns = clock_mono_ns();

	begin();
	agent.tid = tid;
	agent.since_ns = 100;
	hit(0, 50);
	hit(0, 150);
	CHECK_EQ(observed__tend(&s, now_ns, UINT64_MAX), 0);
	now_ns += NSEC_PER_SEC;
	CHECK_EQ(observed__tend(&s, now_ns, 1), 0); /* the rings are far behind */
	CHECK_STR(told.what, "");
	now_ns += NSEC_PER_SEC;
	CHECK_EQ(observed__tend(&s, now_ns, UINT64_MAX), 0);
	CHECK_STR(told.what, held ? "h" : "hh");
	end();
}

static void what_is_not_handed_over(void)
{
	a_look(PID, true);
	a_look(PID + 1, false);
	a_look(0, true); /* of any thread: a slot that threads share */
}

/* A batch that is handed over after the time of a look, and before its slot is looked at. */
static void handed_over_meanwhile(void)
{
	uint64_t now_ns = clock_mono_ns() - NSEC_PER_MSEC;

	begin();
	hit(0, 50);
	CHECK_EQ(observed__tend(&s, now_ns, UINT64_MAX), 0);
	CHECK_EQ(observed__tend(&s, now_ns + NSEC_PER_SEC, now_ns + 1), 0);
	CHECK_STR(told.what, "");
	end();
}

static void times_to_come(void)
{
	struct agent_span spans[] = {began(UINT64_MAX), ended(UINT64_MAX / 2), ended(1)};

	begin();
	CHECK_EQ(observed__spans(&s, threads[0], 0, spans, 3), 0);
	CHECK(told.latest_ns <= clock_mono_ns());
	CHECK_STR(told.what, "()");
	end();
}

/* Spans that were open before kprof knew of the thread. */
static void ends_of_unknown_spans(void)
{
	struct agent_span crossing = {.time_ns = 20, .kind = AGENT_SPAN_END, .inside = 1};
	struct agent_span spans[] = {began(10), crossing, ended(30), ended(40)};
	struct agent_span next[] = {began(50), ended(60)};

	begin();
	CHECK_EQ(observed__spans(&s, threads[0], 2, spans, 4), 0);
	CHECK_EQ(observed__spans(&s, threads[0], 0, next, 2), 0);
	CHECK_STR(told.what, "()()");
	CHECK_EQ(told.time_ns[1], 30);
	CHECK_EQ(spans__count(s.spans, 0)->orphan_ends, 0);
	end();
}

/* An agent that never hands over what it has: hits do not wait without end. */
static void what_is_held_is_bounded(void)
{
	const uint64_t each = (4u << 20) / sizeof(struct kprof_wire_hdr);

	begin();
	for (uint64_t i = 1; i <= 3 * each; i++)
		hit(0, i);
	CHECK(told.hits >= 2 * each);
	end();
	CHECK_EQ(told.hits, 3 * each);
}

static uint32_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void any_spans(uint64_t now_ns)
{
	struct agent_span spans[8];
	size_t nr = any(8) + 1;

	for (size_t i = 0; i < nr; i++)
		spans[i] = (struct agent_span){
			.time_ns = any(9)   ? now_ns + any(40) - 20
				   : any(2) ? 0
					    : UINT64_MAX,
			.kind = (enum agent_span_kind)any(3),
			.scope = any(12),
			.name = any(3),
			.text = "aten::a",
			.inside = any(4) ? any(3) : UINT32_MAX,
		};
	CHECK_EQ(
		observed__spans(&s, threads[any(THREADS)], any(4) ? any(3) : UINT32_MAX, spans, nr),
		0);
}

static void anything_at_all(void)
{
	for (uint32_t run = 0; run < 100; run++) {
		uint64_t now_ns = 1000, at_ns = clock_mono_ns(), hits = 0;
		uint32_t thread;

		seed = run;
		begin();
		for (uint32_t i = 0; i < 1000; i++, now_ns += any(10)) {
			switch (any(4)) {
			case 0:
				hit(any(THREADS), now_ns);
				hits++;
				break;
			case 1:
				any_spans(now_ns);
				break;
			case 2:
				agent.tid = any(2) ? PID + any(THREADS) : 0;
				agent.since_ns = any(3) ? now_ns - any(50) : 0;
				at_ns += NSEC_PER_SEC;
				CHECK_EQ(observed__tend(&s, at_ns, any(2) ? UINT64_MAX : 1), 0);
				break;
			default:
				thread = any(THREADS);
				if (!any(8)) /* exec */
					CHECK_EQ(observed__thread_ends(&s, threads[thread]), 0);
			}
		}
		CHECK(told.latest_ns <= clock_mono_ns());
		end();
		CHECK_EQ(told.hits, hits);
	}
}

UNIT_MAIN(TEST(hits_wait_for_operators), TEST(what_is_not_handed_over), TEST(handed_over_meanwhile),
	  TEST(times_to_come), TEST(ends_of_unknown_spans), TEST(what_is_held_is_bounded),
	  TEST(anything_at_all))
