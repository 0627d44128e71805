// SPDX-License-Identifier: BSD-2-Clause
/* When waits that were given up come back, of made numbers. */
#include "capture/overhead/impl.h"

#include <errno.h>
#include <unistd.h>

#include "unit.h"
#include "util/error.h"
#include "util/util.h"

#define BOUND 0.01
#define SWITCHES 10000
/* Of one CPU in a second. */
#define CALM 0.002

static struct ledger_reading a_second(uint64_t switches)
{
	return (struct ledger_reading){
		.time_ns = NSEC_PER_SEC,
		.used_ns = NSEC_PER_SEC,
		.switches = switches,
	};
}

/* Looks each second from then on; returns after how many waits are due, 0: not in a minute. */
static unsigned int seconds_until_due(struct overhead *o, double share, uint64_t switches)
{
	struct ledger_reading last = a_second(switches);

	o->waits_due = false;
	o->waits_calm_ns = 0;
	for (unsigned int i = 1; i <= 60; i++) {
		CHECK(!back__tend(o, &last, share, i * NSEC_PER_SEC));
		if (o->waits_due)
			return i;
	}
	return 0;
}

static struct overhead without_waits(void)
{
	return (struct overhead){
		.opts = {.most = BOUND, .steady = true},
		.shed = 1u << SHED_WAITS | 1u << SHED_WAIT_STACKS,
		.waits_patience_ns = 10 * NSEC_PER_SEC,
		/* when they were given up, they were all of the bound */
		.wait_switch_ns = BOUND * (double)NSEC_PER_SEC / SWITCHES,
	};
}

static void when_calm(void)
{
	struct overhead o = without_waits();

	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 11);
	o.waits_patience_ns *= 2;
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 21);
}

/* The recording itself is calm, but as many threads switch as before: waits would be given up. */
static void not_while_they_would_cost_as_much(void)
{
	struct overhead o = without_waits();

	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES), 0);
	CHECK_EQ(seconds_until_due(&o, BOUND * 0.9, SWITCHES / 10), 0);
}

static void calm_without_a_break(void)
{
	struct overhead o = without_waits();
	struct ledger_reading few = a_second(SWITCHES / 10), many = a_second(SWITCHES);

	for (unsigned int i = 1; i <= 60; i++) {
		back__tend(&o, i % 8 ? &few : &many, CALM, i * NSEC_PER_SEC);
		CHECK(!o.waits_due);
	}
}

static void only_what_was_given_up(void)
{
	struct overhead o = without_waits();

	o.shed = 0;
	CHECK_EQ(seconds_until_due(&o, CALM, 1), 0);
	o.shed = 1u << SHED_WAITS;
	o.opts.steady = false;
	CHECK_EQ(seconds_until_due(&o, CALM, 1), 0);
}

/* Stacks first, then waits altogether: both come back, and so cost what both did. */
static void stacks_are_part_of_the_price(void)
{
	struct ledger_reading last = a_second(SWITCHES);
	struct overhead o = {.opts = {.most = BOUND, .steady = true}};

	last.cause_ns[LEDGER_FOR_WAITS] = NSEC_PER_SEC / 100;
	shed__note_waits(&o, &last, NSEC_PER_SEC);
	o.shed |= 1u << SHED_WAIT_STACKS;
	CHECK_EQ((long long)o.wait_switch_ns, NSEC_PER_SEC / 100 / SWITCHES);
	last.cause_ns[LEDGER_FOR_WAITS] /= 8;
	shed__note_waits(&o, &last, 3 * NSEC_PER_SEC);
	o.shed |= 1u << SHED_WAITS;
	CHECK_EQ((long long)o.wait_switch_ns, NSEC_PER_SEC / 100 / SWITCHES);
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 2), 0);
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 11);
	/* the next time, what they cost then */
	o.shed = 0;
	shed__note_waits(&o, &last, 3600 * NSEC_PER_SEC);
	CHECK_EQ((long long)o.wait_switch_ns, NSEC_PER_SEC / 100 / SWITCHES / 8);
}

static int nr_tries, resume_result;

static int resume(void *ctx, uint64_t *from_ns)
{
	(void)ctx;
	*from_ns = 0;
	nr_tries++;
	return resume_result ? error_set(resume_result, NULL, "no descriptor") : 0;
}

/* The recording goes on without them, and tries again, later. */
static void cannot_come_back(void)
{
	struct overhead o = without_waits();
	char path[64];

	snprintf(path, sizeof(path), "/tmp/kprof-unit-back-%d.kprof", (int)getpid());
	CHECK_EQ(recorder__new(path, NULL, &o.opts.recorder), 0);
	o.opts.resume_waits = resume;
	overhead__come_back(&o); /* they are not due */
	CHECK_EQ(nr_tries, 0);
	resume_result = -EMFILE;
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 11);
	overhead__come_back(&o);
	CHECK_EQ(nr_tries, 1);
	CHECK(shed__done(&o, SHED_WAITS) && shed__done(&o, SHED_WAIT_STACKS));
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 21);
	resume_result = -EAGAIN; /* what was given up is not all read yet */
	overhead__come_back(&o);
	CHECK_EQ(seconds_until_due(&o, CALM, SWITCHES / 10), 21);
	recorder__free(o.opts.recorder);
	unlink(path);
}

static void what_is_given_up_now(void)
{
	struct overhead o = without_waits();
	struct overhead_state state;

	overhead__state(&o, &state);
	CHECK_EQ(state.nr_now, 2);
	o.nr_dropped = 7; /* operators */
	overhead__state(&o, &state);
	CHECK_EQ(state.nr_now, 3);
	o.shed |= 1u << SHED_ALL_PROBES;
	overhead__state(&o, &state);
	CHECK_EQ(state.nr_now, 3);
}

UNIT_MAIN(TEST(stacks_are_part_of_the_price), TEST(cannot_come_back), TEST(what_is_given_up_now),
	  TEST(when_calm), TEST(not_while_they_would_cost_as_much), TEST(calm_without_a_break),
	  TEST(only_what_was_given_up))
