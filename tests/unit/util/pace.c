// SPDX-License-Identifier: BSD-2-Clause
/* user/util/pace.c */
#include "unit.h"

#include <pthread.h>
#include <time.h>

#include "util/pace.h"
#include "util/util.h"

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Works until so much CPU time is used. */
static void work(uint64_t ns)
{
	uint64_t until_ns = cpu_ns() + ns;

	while (cpu_ns() < until_ns)
		pace_rest();
}

/* A fiftieth of a CPU: 20 ms of work take a second, less what may be used at once. */
static void holds_back(void)
{
	struct pace p = {.ns_a_second = NSEC_PER_SEC / 50};
	uint64_t begin_ns = clock_mono_ns();

	pace_begin(&p);
	work(20 * NSEC_PER_MSEC);
	CHECK(clock_mono_ns() - begin_ns >= 700 * NSEC_PER_MSEC);
	pace_begin(NULL);
}

/* What could be used at once at first cannot be after two seconds without work. */
static void at_once_or_not(void)
{
	struct pace p = {.ns_a_second = NSEC_PER_SEC / 50, .at_once_ns = NSEC_PER_SEC};
	uint64_t begin_ns;

	pace_begin(&p);
	nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
	begin_ns = clock_mono_ns();
	work(20 * NSEC_PER_MSEC);
	CHECK(clock_mono_ns() - begin_ns >= 700 * NSEC_PER_MSEC);
	pace_begin(NULL);
}

/* What it owes from the begin on takes half a second. */
static void rests_first(void)
{
	struct pace p = {.ns_a_second = NSEC_PER_SEC / 50,
			 .at_once_ns = -10 * (int64_t)NSEC_PER_MSEC};
	uint64_t begin_ns = clock_mono_ns();

	pace_begin(&p);
	work(NSEC_PER_MSEC / 2);
	CHECK(clock_mono_ns() - begin_ns >= 400 * NSEC_PER_MSEC);
	pace_begin(NULL);
}

/*
 * At a low rate, resting must not use up what is earned meanwhile: on some machines a wake-up costs
 * as much as this rate earns in a tenth of a second.
 */
static void gets_on(void)
{
	struct pace p = {.ns_a_second = NSEC_PER_MSEC};

	pace_begin(&p);
	work(4 * NSEC_PER_MSEC);
	CHECK(atomic_load(&p.used_ns) < 6 * NSEC_PER_MSEC);
	pace_begin(NULL);
}

struct held {
	struct pace pace;
	atomic_bool stop, done;
};

static void *hold(void *arg)
{
	struct held *h = arg;

	pace_begin(&h->pace);
	work(10 * NSEC_PER_MSEC);
	atomic_store(&h->done, true);
	return NULL;
}

/* At next to nothing, it would be weeks. */
static void let_go(bool by_stop)
{
	struct held h = {.pace = {.ns_a_second = 1}};
	struct timespec moment = {.tv_nsec = 200 * (long)NSEC_PER_MSEC};
	pthread_t thread;

	h.pace.stop = &h.stop;
	CHECK(!pthread_create(&thread, NULL, hold, &h));
	nanosleep(&moment, NULL);
	CHECK(!atomic_load(&h.done));
	if (by_stop)
		atomic_store(&h.stop, true);
	else
		atomic_store(&h.pace.ns_a_second, 0);
	pace_wake(&h.pace);
	pthread_join(thread, NULL);
	CHECK(atomic_load(&h.done));
}

/* Without anybody's pace, nothing is held back. */
static void free_of_it(void)
{
	pace_rest();
	work(NSEC_PER_MSEC);
}

static void stopped(void)
{
	let_go(true);
}

static void set_free(void)
{
	let_go(false);
}

UNIT_MAIN(TEST(free_of_it), TEST(holds_back), TEST(at_once_or_not), TEST(rests_first),
	  TEST(gets_on), TEST(stopped), TEST(set_free))
