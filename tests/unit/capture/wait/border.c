// SPDX-License-Identifier: BSD-2-Clause
/* A thread's times up to a border, and from it on: each adds up, and both are all of it. */
#include <stdlib.h>
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

/* ---- what the files before have ---- */

#define NUMBER (7ull << 32 | 8)
#define MIN_NS 10

/* Two borders: at 1000 the thread had waited since 900, and at 2000 nothing is known. */
static struct waits two_borders(void)
{
	struct waits w = {
		.from_ns = 100, .bordering = true, .before.at_ns = 1000, .latest.at_ns = 2000};
	struct wait_told told = {.end_ns = 1005, .blocked_ns = 105, .told = 3, .split_ns = 900};

	CHECK_EQ(wait_border_tell(&w.before, NUMBER, &told), 0);
	return w;
}

static void forget(struct waits *w)
{
	wait_border_free(&w->latest);
	wait_border_free(&w->before);
	free(w->kept.data);
}

static void the_border_before_what_is_told_of(void)
{
	struct waits w = two_borders();
	struct wait_told told = {.end_ns = 2005, .blocked_ns = 1105, .told = 3};
	struct kprof_wait k = {.number = NUMBER, .start_ns = 200, .off_ns = 900};

	wait_border_tell(&w.latest, NUMBER, &told);
	CHECK_EQ(waits_told(&w, &k, 2006).end_ns, 2005);
	CHECK_EQ(waits_told(&w, &k, 2005).end_ns, 1005); /* it ended by then: of the file before */
	CHECK_EQ(waits_told(&w, &k, 1005).end_ns, 0);
	k.start_ns = 2010; /* the number is another thread's now */
	CHECK_EQ(waits_told(&w, &k, 2020).end_ns, 0);
	forget(&w);
}

static void a_wait_over_a_border(void)
{
	struct wait_told told = {.end_ns = 1000};
	struct kprof_wait k = {.off_ns = 900};

	CHECK_EQ(wait_from(&k, &told, MIN_NS), 1000);
	k.off_ns = 1000 - MIN_NS + 1; /* too short to be split */
	CHECK_EQ(wait_from(&k, &told, MIN_NS), k.off_ns);
	k.off_ns = 1500;
	CHECK_EQ(wait_from(&k, &told, MIN_NS), 1500);
}

/* There since waits are recorded, it has its first event after the border. */
static void who_had_slept_all_along(void)
{
	struct waits w = two_borders();
	struct kprof_wait k = {.number = NUMBER + 1,
			       .start_ns = 100,
			       .off_ns = 100,
			       .since_ns = 2500,
			       .blocked_ns = 2390,
			       .runnable_ns = 10};
	struct wait_told told = waits_told(&w, &k, 2500);

	CHECK_EQ(told.end_ns, 2000);
	CHECK_EQ(told.blocked_ns, 1900);
	CHECK_EQ(told.told, 0);
	wait_part(&k, &told);
	CHECK_EQ(k.blocked_ns, 490);
	CHECK_EQ(sum(&k), 500);
	/* woken before the border, and on a CPU after it */
	k = (struct kprof_wait){.number = NUMBER + 1,
				.start_ns = 100,
				.since_ns = 2100,
				.blocked_ns = 1500,
				.runnable_ns = 500};
	told = waits_told(&w, &k, 2100);
	CHECK_EQ(told.end_ns, 2000);
	CHECK_EQ(told.blocked_ns, 1500);
	CHECK_EQ(told.runnable_ns, 400);
	/* begun since: its first event would have been before the border */
	k.start_ns = 150;
	CHECK_EQ(waits_told(&w, &k, 2100).end_ns, 0);
	forget(&w);
}

static bool is_kept(struct waits *w, uint64_t number, uint64_t start_ns, uint64_t end_ns)
{
	struct kprof_wait k = {.number = number, .start_ns = start_ns, .since_ns = end_ns};
	struct store_record r = {.type = STORE_WAIT};

	CHECK_EQ(waits_settle(w, &k), 0);
	return waits_keep(w, &k, end_ns, &r);
}

/* A thread that was not looked at, as it ended or began meanwhile: all of it is on one side. */
static void one_side_of_the_border(void)
{
	struct waits w = two_borders();

	CHECK(!is_kept(&w, 1, 1500, 1990));
	CHECK(!is_kept(&w, 1, 1500, 2010));
	CHECK(is_kept(&w, 2, 1999, 2003));
	CHECK(is_kept(&w, 2, 1999, 2010));
	CHECK(is_kept(&w, NUMBER, 200, 2010)); /* it was looked at before, not now */
	CHECK_EQ(wait_border_find(&w.latest, NUMBER)->blocked_ns, 105);
	CHECK_EQ(w.kept.nr, 3);
	w.bordering = false;
	CHECK(!is_kept(&w, 3, 2020, 2040));
	CHECK(!wait_border_find(&w.latest, 3));
	forget(&w);
}

/* The record of a wait of which a part was put at the border, though it had ended by then. */
static void records_that_come_late(void)
{
	struct waits w = {.latest.at_ns = 2000};
	struct wait_told told = {.end_ns = 2000, .split_ns = 1500, .told = 1};
	struct kprof_wait k = {.number = NUMBER, .off_ns = 1500, .since_ns = 2100};

	wait_border_tell(&w.latest, NUMBER, &told);
	CHECK(!waits_has(&w, &k)); /* it did go on */
	k.since_ns = 1990;
	CHECK(waits_has(&w, &k));
	CHECK_EQ(wait_border_find(&w.latest, NUMBER)->told, 2);
	forget(&w);
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
	  TEST(parts_are_the_whole), TEST(the_border_before_what_is_told_of),
	  TEST(a_wait_over_a_border), TEST(who_had_slept_all_along), TEST(one_side_of_the_border),
	  TEST(records_that_come_late))
