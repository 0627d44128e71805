// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/steps.c: when a recording of some steps begins and ends. */
#include "unit.h"

#include "capture/event/steps.h"

enum { PROFILER = 1, NAMED, INNER, OPTIMIZER, OTHER };

static struct steps *s;
static uint64_t now;
static enum steps_act act;

static void begin(uint64_t nr, uint64_t warm_up, uint64_t warm_up_ns, const char *annotation)
{
	const struct steps_opts opts = {nr, warm_up, warm_up_ns, annotation, 0};

	CHECK_EQ(steps__new(&opts, &s), 0);
	CHECK_EQ(steps__described(s, PROFILER, "user_annotation", "ProfilerStep#7"), 0);
	CHECK_EQ(steps__described(s, NAMED, "user_annotation", "iteration 5"), 0);
	CHECK_EQ(steps__described(s, INNER, "user_annotation", "train_step"), 0);
	CHECK_EQ(steps__described(s, OPTIMIZER, "user_annotation", "Optimizer.step#SGD.step"), 0);
	CHECK_EQ(steps__described(s, OTHER, "user_annotation", "forward"), 0);
	now = 100;
	steps__start(s, now);
}

static enum steps_act on(uint32_t pid, uint32_t description)
{
	const struct steps_range r = {pid, pid, ++now, description};

	CHECK_EQ(steps__begin(s, &r, &act), 0);
	return act;
}

static enum steps_act off(uint32_t pid, uint32_t description)
{
	const struct steps_range r = {pid, pid, ++now, description};

	CHECK_EQ(steps__end(s, &r, &act), 0);
	return act;
}

static struct steps_state state(void)
{
	struct steps_state out;

	steps__state(s, &out);
	return out;
}

static void profiler(void)
{
	begin(2, 0, 0, NULL);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING); /* of one that began before */
	CHECK_EQ(on(1, OPTIMIZER), STEPS_NOTHING);
	CHECK_EQ(off(1, OPTIMIZER), STEPS_NOTHING);
	CHECK_EQ(on(1, PROFILER), STEPS_OPEN);
	CHECK_EQ(on(1, OPTIMIZER), STEPS_NOTHING);
	CHECK_EQ(off(1, OPTIMIZER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(state().least_done, 1);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING); /* inside */
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_CLOSE);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK(state().closed);
	steps__free(s);
}

/* A worse kind of step is taken only when a whole one has shown that there is no better one. */
static void learnt(void)
{
	begin(1, 0, 0, NULL);
	CHECK_EQ(on(1, INNER), STEPS_NOTHING); /* in an iteration that began before */
	CHECK_EQ(off(1, INNER), STEPS_NOTHING);
	CHECK_EQ(on(1, NAMED), STEPS_OPEN);
	CHECK_EQ(on(1, INNER), STEPS_NOTHING);
	CHECK_EQ(off(1, INNER), STEPS_NOTHING);
	CHECK_EQ(off(1, NAMED), STEPS_CLOSE);
	steps__free(s);

	begin(1, 0, 0, NULL);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(on(1, OPTIMIZER), STEPS_NOTHING);
		CHECK_EQ(off(1, OPTIMIZER), i ? STEPS_OPEN : STEPS_NOTHING);
	}
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING); /* too late */
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(1, OPTIMIZER), STEPS_NOTHING);
	CHECK_EQ(off(1, OPTIMIZER), STEPS_CLOSE);
	steps__free(s);
}

static void warm_up(void)
{
	begin(1, 2, 0, NULL);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(on(1, PROFILER), i == 2 ? STEPS_OPEN : STEPS_NOTHING);
		CHECK_EQ(off(1, PROFILER), i == 2 ? STEPS_CLOSE : STEPS_NOTHING);
	}
	steps__free(s);
	begin(1, 0, 50, NULL);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	now = 149;
	CHECK_EQ(on(1, PROFILER), STEPS_OPEN);
	steps__free(s);
}

/* The number in the name says whose turn it is; with none, the next one has it. */
static void multiples(void)
{
	const struct steps_opts opts = {.nr = 1, .warm_up = 1, .multiple_of = 4};

	CHECK_EQ(steps__new(&opts, &s), 0);
	for (uint32_t i = 1; i < 13; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ProfilerStep#%u", i);
		CHECK_EQ(steps__described(s, i, "user_annotation", name), 0);
	}
	CHECK_EQ(steps__described(s, 20, "user_annotation", "Optimizer.step#SGD.step"), 0);
	now = 100;
	steps__start(s, now);
	for (uint32_t i = 4; i < 9; i++) { /* 4 is the warm-up */
		CHECK_EQ(on(1, i), i == 8 ? STEPS_OPEN : STEPS_NOTHING);
		CHECK_EQ(off(1, i), i == 8 ? STEPS_CLOSE : STEPS_NOTHING);
	}
	CHECK(!state().unnumbered);
	steps__free(s);
	CHECK_EQ(steps__new(&opts, &s), 0);
	CHECK_EQ(steps__described(s, 20, "user_annotation", "Optimizer.step#SGD.step"), 0);
	steps__start(s, now);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(on(1, 20), STEPS_NOTHING);
		CHECK_EQ(off(1, 20), i ? STEPS_OPEN : STEPS_NOTHING);
	}
	CHECK(state().unnumbered);
	steps__free(s);
}

static void chosen(void)
{
	begin(1, 0, 0, "forward");
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(1, OTHER), STEPS_OPEN);
	CHECK_EQ(off(1, OTHER), STEPS_CLOSE);
	steps__free(s);
	begin(1, 0, 0, "iteration");
	CHECK_EQ(on(1, INNER), STEPS_NOTHING);
	CHECK_EQ(on(1, NAMED), STEPS_OPEN);
	steps__free(s);
}

/* Each process has its own; who has none is not waited for, nor who has ended. */
static void processes(void)
{
	begin(2, 1, 0, NULL);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(2, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(3, OTHER), STEPS_NOTHING);
	CHECK_EQ(on(4, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(1, PROFILER), STEPS_OPEN);
	CHECK_EQ(state().pid, 1);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(2, PROFILER), STEPS_NOTHING); /* began before the window */
	CHECK_EQ(on(2, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(1, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(1, PROFILER), STEPS_NOTHING); /* process 1 has had its steps */
	CHECK_EQ(state().least_done, 0);
	CHECK_EQ(off(2, PROFILER), STEPS_NOTHING);
	CHECK_EQ(on(2, PROFILER), STEPS_NOTHING);
	CHECK_EQ(off(2, PROFILER), STEPS_NOTHING);
	CHECK_EQ(state().processes, 3);
	CHECK_EQ(steps__gone(s, 4), STEPS_CLOSE);
	CHECK_EQ(steps__gone(s, 77), STEPS_NOTHING);
	steps__free(s);
}

UNIT_MAIN(TEST(profiler), TEST(learnt), TEST(warm_up), TEST(multiples), TEST(chosen),
	  TEST(processes))
