// SPDX-License-Identifier: BSD-2-Clause
/* user/util/ration.c */
#include "unit.h"

#include <time.h>

#include "util/ration.h"
#include "util/util.h"

static void work(struct ration *r, uint64_t ns)
{
	struct timespec t;
	uint64_t until_ns;

	ration__open(r);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	until_ns = (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec + ns;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec < until_ns);
	ration__close(r);
}

/*
 * At first 200 ms of work; then next to nothing a second. Work may be said to have taken more than
 * it did: a thread of a virtual machine is charged for the time in which that had no CPU.
 */
static void ends(void)
{
	struct ration r;

	ration__begin(&r, 1000, 200 * NSEC_PER_MSEC);
	CHECK(ration__lasts(&r, RATION_NEW));
	work(&r, 5 * NSEC_PER_MSEC);
	CHECK(ration__lasts(&r, RATION_NEW));
	work(&r, 196 * NSEC_PER_MSEC);
	CHECK_EQ(r.nr_served, 2);
	CHECK(!ration__lasts(&r, RATION_NEW));
	CHECK_EQ(r.nr_served, 2);
}

/* What was given at first and is not used in two seconds is not there for later. */
static void at_once_or_not(void)
{
	struct ration r;

	ration__begin(&r, 1000, 20 * NSEC_PER_MSEC);
	CHECK(ration__lasts_at(&r, RATION_NEW, r.first_ns + NSEC_PER_SEC));
	CHECK_EQ(r.left_ns, 20 * NSEC_PER_MSEC);
	CHECK(ration__lasts_at(&r, RATION_NEW, r.first_ns + 2 * NSEC_PER_SEC));
	CHECK_EQ(r.left_ns, 1000);
	CHECK_EQ(r.nr_served, 2);
}

/* What was used too much is paid back in time. */
static void comes_again(void)
{
	struct ration r;
	uint64_t begin_ns;

	begin_ns = clock_mono_ns();
	ration__begin(&r, NSEC_PER_SEC / 50, NSEC_PER_MSEC);
	work(&r, 5 * NSEC_PER_MSEC);
	while (!ration__lasts(&r, RATION_NEW))
		nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
	/* 4 ms at 20 ms a second */
	CHECK(clock_mono_ns() - begin_ns >= 190 * NSEC_PER_MSEC);
	ration__set(&r, 1000, 1);
	/* who was away for long, on a machine that has no CPU for it, has more than what is due */
	work(&r, (uint64_t)r.left_ns + NSEC_PER_MSEC);
	CHECK(!ration__lasts(&r, RATION_NEW));
}

/* Of one read that takes very long, not all is paid back: nothing else would be read for hours. */
static void debts_have_an_end(void)
{
	struct ration r;

	ration__begin(&r, 1000, 0);
	work(&r, 5 * NSEC_PER_MSEC);
	CHECK_EQ(r.left_ns, -1000 * RATION_DEBT);
	CHECK(!ration__lasts_at(&r, RATION_NEW, r.until_ns + (RATION_DEBT - 1) * NSEC_PER_SEC));
	CHECK(ration__lasts_at(&r, RATION_NEW, r.until_ns + RATION_DEBT * NSEC_PER_SEC));
}

/* For a while only a part is paid in: from now on, and debts are what they were. */
static void a_part_of_it(void)
{
	struct ration r;

	ration__begin(&r, NSEC_PER_SEC, 0);
	nanosleep(&(struct timespec){.tv_nsec = 10 * NSEC_PER_MSEC}, NULL);
	ration__set(&r, NSEC_PER_SEC, 0.25);
	CHECK(r.left_ns >= 10 * (int64_t)NSEC_PER_MSEC); /* that time was paid for in full */
	r.left_ns = 0;                                   /* it may have slept for long */
	CHECK(ration__lasts_at(&r, RATION_NEW, r.until_ns + 100 * NSEC_PER_MSEC));
	CHECK_EQ(r.left_ns, 25 * NSEC_PER_MSEC);
	CHECK(ration__lasts_at(&r, RATION_NEW, r.until_ns + 100 * NSEC_PER_SEC));
	CHECK_EQ(r.left_ns, NSEC_PER_SEC / 4); /* no more than a second of it */
	r.left_ns = -5 * (int64_t)NSEC_PER_SEC;
	CHECK(!ration__lasts_at(&r, RATION_NEW, r.until_ns + 19 * NSEC_PER_SEC));
	CHECK(ration__lasts_at(&r, RATION_NEW, r.until_ns + 2 * NSEC_PER_SEC));
}

/* Who asks more often than there is a ns to pay in is paid as much as others. */
static void asked_often(void)
{
	struct ration r;
	uint64_t begin_ns;

	ration__begin(&r, NSEC_PER_MSEC, 0); /* a ns each us */
	r.left_ns = -10;
	begin_ns = r.until_ns;
	for (uint64_t ns = 0; ns < 10999; ns += 7)
		CHECK(!ration__lasts_at(&r, RATION_NEW, begin_ns + ns));
	CHECK(ration__lasts_at(&r, RATION_NEW, begin_ns + 11001));
}

/* Uses of which one asks six times as often, and first, get as much time as each other. */
static void take_turns(void)
{
	int served[RATION_USES] = {0};
	struct ration r;
	uint64_t now_ns;

	ration__begin(&r, NSEC_PER_MSEC, 0);
	now_ns = r.until_ns;
	for (int i = 0; i < 1000; i++) {
		static const enum ration_use uses[] = {
			RATION_SAMPLED, RATION_SAMPLED, RATION_SAMPLED, RATION_NEW,
			RATION_SAMPLED, RATION_CHANGED, RATION_SAMPLED, RATION_SAMPLED,
		};

		for (size_t k = 0; k < ARRAY_SIZE(uses); k++) {
			now_ns += NSEC_PER_MSEC; /* pays for 1 us */
			if (!ration__lasts_at(&r, uses[k], now_ns))
				continue;
			served[uses[k]]++;
			r.left_ns = -5000;
		}
	}
	CHECK(served[RATION_SAMPLED] > 100);
	CHECK(abs(served[RATION_SAMPLED] - served[RATION_NEW]) <= 1);
	CHECK(abs(served[RATION_SAMPLED] - served[RATION_CHANGED]) <= 1);
	/* one that was refused and has gone does not keep others waiting for ever */
	r.left_ns = -1;
	CHECK(!ration__lasts_at(&r, RATION_THREADS, now_ns));
	now_ns += NSEC_PER_SEC / 2;
	CHECK(!ration__lasts_at(&r, RATION_NEW, now_ns));
	CHECK(ration__lasts_at(&r, RATION_NEW, now_ns + NSEC_PER_SEC));
}

/* However much is left for reading, once the thread has used so much. */
static void rests(void)
{
	struct ration r;

	ration__begin(&r, NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	CHECK(!ration__rests(&r));
	ration__rest_after(&r, 50 * NSEC_PER_MSEC);
	CHECK(!ration__rests(&r) && ration__lasts(&r, RATION_NEW));
	work(&r, 51 * NSEC_PER_MSEC);
	CHECK(ration__rests(&r) && !ration__lasts(&r, RATION_NEW));
	ration__rest_after(&r, NSEC_PER_SEC);
	CHECK(!ration__rests(&r) && ration__lasts(&r, RATION_NEW));
	CHECK(ration__rests_within(&r, 2 * NSEC_PER_SEC));
	CHECK(ration__is_due(&r, 5, 5) && !ration__is_due(&r, 4, 5));
	ration__rest_after(&r, 0);
	CHECK(ration__rests(&r) && !ration__lasts(&r, RATION_NEW));
	CHECK(!ration__is_due(&r, 5, 5) && ration__is_due(&r, NSEC_PER_SEC + 5, 5));
}

static void no_bound(void)
{
	struct ration r = {0};

	ration__set(&r, 1000, 1); /* it has none, and gets none */
	ration__rest_after(&r, 0);
	CHECK(!ration__rests(&r) && !ration__rests(NULL));
	work(&r, 5 * NSEC_PER_MSEC);
	CHECK(ration__lasts(&r, RATION_NEW) && ration__lasts(NULL, RATION_NEW));
}

UNIT_MAIN(TEST(ends), TEST(at_once_or_not), TEST(comes_again), TEST(debts_have_an_end),
	  TEST(a_part_of_it), TEST(asked_often), TEST(take_turns), TEST(rests), TEST(no_bound))
