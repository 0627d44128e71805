// SPDX-License-Identifier: BSD-2-Clause
/* A thread's times up to a border, and from it on: each adds up, and both are all of it. */
#include <string.h>

#include "capture/wait/impl.h"
#include "unit.h"

static uint64_t sum(const struct kprof_wait *k)
{
	return k->on_ns + k->runnable_ns + k->blocked_ns;
}

static void a_thread_that_runs(void)
{
	struct kprof_wait k = {.start_ns = 100,
			       .since_ns = 150,
			       .on_ns = 20,
			       .runnable_ns = 10,
			       .blocked_ns = 20,
			       .state = KPROF_WAIT_RUNS};

	CHECK_EQ(wait_at(&k, 170), 170);
	CHECK_EQ(k.on_ns, 40);
	CHECK_EQ(sum(&k), 70);
	/* it has changed after the time at which it was asked for */
	k.since_ns = 200;
	k.on_ns = 70;
	CHECK_EQ(wait_at(&k, 180), 200);
	CHECK_EQ(sum(&k), 100);
}

static void a_thread_that_waits(void)
{
	struct kprof_wait k = {.start_ns = 100,
			       .since_ns = 150,
			       .off_ns = 150,
			       .on_ns = 50,
			       .state = KPROF_WAIT_BLOCKED};
	struct kprof_wait woken = k, preempted = k;

	CHECK_EQ(wait_at(&k, 250), 250);
	CHECK_EQ(k.blocked_ns, 100);
	CHECK_EQ(k.wake_ns, 250);
	woken.wake_ns = 200;
	wait_at(&woken, 250);
	CHECK_EQ(woken.blocked_ns, 50);
	CHECK_EQ(woken.runnable_ns, 50);
	preempted.state = KPROF_WAIT_RUNNABLE;
	wait_at(&preempted, 250);
	CHECK_EQ(preempted.blocked_ns, 0);
	CHECK_EQ(preempted.runnable_ns, 100);
}

static void parts_are_the_whole(void)
{
	struct wait_told told = {
		.end_ns = 400, .runnable_ns = 30, .blocked_ns = 200, .switches = 4, .told = 2};
	struct kprof_wait k = {.start_ns = 100,
			       .since_ns = 1000,
			       .on_ns = 300,
			       .runnable_ns = 100,
			       .blocked_ns = 500,
			       .switches = 9,
			       .told = 5};
	struct kprof_wait whole = k;

	wait_part(&k, &told);
	CHECK_EQ(k.start_ns, 400);
	CHECK_EQ(sum(&k), 600);
	CHECK_EQ(k.runnable_ns, 70);
	CHECK_EQ(k.blocked_ns, 300);
	CHECK_EQ(k.switches, 5);
	CHECK_EQ(k.told, 3);
	/* what is not possible stays within the life */
	told.blocked_ns = told.runnable_ns = 0;
	told.end_ns = 900;
	wait_part(&whole, &told);
	CHECK_EQ(sum(&whole), 100);
	/* nothing was told before */
	told = (struct wait_told){0};
	k = whole;
	wait_part(&k, &told);
	CHECK(!memcmp(&k, &whole, sizeof(k)));
}

/* A file that goes on, since the next one could not be begun, has the waits that it had. */
static void files_without_waits(void)
{
	struct waits w = {.given_up = true};

	CHECK_EQ(waits__same_part(&w), 0);
	CHECK(!w.absent);
	CHECK_EQ(waits__next_part(&w), 0);
	CHECK(w.absent);
	CHECK_EQ(waits__same_part(&w), 0);
	CHECK(w.absent);
}

UNIT_MAIN(TEST(files_without_waits), TEST(a_thread_that_runs), TEST(a_thread_that_waits),
	  TEST(parts_are_the_whole))
