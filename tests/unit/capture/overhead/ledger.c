// SPDX-License-Identifier: BSD-2-Clause
/* Sums over the last second, of made numbers. */
#include "capture/overhead/impl.h"
#include "capture/overhead/ledger.h"
#include "capture/overhead/overhead.h"

#include <math.h>

#include "unit.h"

#define MS 1000000ull

static struct ledger l;

/* A reading at this time: so much of a cost, and so much used, so far. */
static void put(uint64_t ms, uint64_t cost_ms, uint64_t used_ms)
{
	struct ledger_reading r = {.time_ns = ms * MS, .used_ns = used_ms * MS};

	r.part_ns[LEDGER_TRAPS] = cost_ms * MS;
	ledger__add(&l, &r);
}

static double share(void)
{
	struct ledger_reading last;

	return ledger__last(&l, &last) ? ledger_share(&last, ledger_cost(&last)) : -1;
}

#define CHECK_SHARE(x) CHECK(fabs(share() - (x)) < 1e-9)

static void begin(void)
{
	memset(&l, 0, sizeof(l));
}

static void one_reading_tells_nothing(void)
{
	begin();
	CHECK_SHARE(-1);
	put(5000, 70, 900);
	CHECK_SHARE(-1);
	put(5000, 70, 900); /* no time has passed */
	CHECK_SHARE(-1);
}

/* Eight threads: 2 % of what they use is 0.16 CPUs. */
static void of_what_is_used(void)
{
	begin();
	for (uint64_t i = 0; i <= 8; i++)
		put(i * 250, i * 40, i * 2000);
	CHECK_SHARE(0.02);
}

/* Where less than one CPU is used, the share is of one. */
static void of_one_cpu_at_least(void)
{
	begin();
	for (uint64_t i = 0; i <= 8; i++)
		put(i * 250, i * 5, i * 3);
	CHECK_SHARE(0.02);
}

static void only_the_last_second(void)
{
	begin();
	put(0, 0, 0);
	put(250, 250, 250);
	CHECK_SHARE(0.25); /* as if it were over: less than a second is a second */
	for (uint64_t i = 2; i <= 5; i++)
		put(i * 250, 250, i * 250);
	CHECK_SHARE(0);
}

/* A burst that is over is not held against the whole second before it was over. */
static void a_short_burst(void)
{
	begin();
	put(0, 0, 0);
	put(250, 10, 250);
	CHECK_SHARE(0.01);
	put(500, 10, 500);
	CHECK_SHARE(0.01);
	put(1000, 10, 1000);
	CHECK_SHARE(0.01);
}

static void late_readings(void)
{
	begin();
	put(0, 0, 0);
	put(10000, 1000, 10000); /* kprof did not run for ten seconds */
	CHECK_SHARE(0.1);
	put(10250, 1000, 10250);
	put(11250, 1000, 11250);
	CHECK_SHARE(0);
}

static void from_a_restart_on(void)
{
	begin();
	put(0, 0, 0);
	put(500, 400, 500);
	ledger__restart(&l);
	CHECK_SHARE(-1);
	put(750, 401, 750);
	CHECK_SHARE(0.001);
}

/* The last second up to a time after the latest reading: what goes out of it counts no more. */
static void up_to_now(void)
{
	struct ledger_reading now = {0}, last;

	begin();
	CHECK(!ledger__until(&l, &now, &last));
	put(0, 0, 0);
	put(250, 100, 250);
	for (uint64_t i = 2; i <= 4; i++)
		put(i * 250, 100, i * 250);
	now = l.readings[l.next - 1];
	now.time_ns += 200 * MS;
	now.used_ns += 200 * MS;
	now.part_ns[LEDGER_OWN] = 7 * MS;
	CHECK(ledger__until(&l, &now, &last));
	CHECK_EQ(last.time_ns, 1200 * MS);
	CHECK_EQ(ledger_cost(&last), 107 * MS);
	now.time_ns += 50 * MS;
	CHECK(ledger__until(&l, &now, &last));
	CHECK_EQ(last.time_ns, 1000 * MS);
	CHECK_EQ(ledger_cost(&last), 7 * MS);
}

/* What a quarter of a second cost, as if a whole one went on like that. */
static void as_if_it_went_on(void)
{
	struct ledger_reading r = {
		.time_ns = 250 * MS, .used_ns = 500 * MS, .paced_ns = 1, .switches = 5};

	for (int i = 0; i < LEDGER_PARTS; i++)
		r.part_ns[i] = 2 * MS;
	for (int i = 0; i < LEDGER_CAUSES; i++)
		r.cause_ns[i] = 3;
	ledger_go_on(&r);
	CHECK_EQ(r.time_ns, 1000 * MS);
	CHECK_EQ(r.used_ns, 2000 * MS);
	CHECK_EQ(ledger_cost(&r), LEDGER_PARTS * 8 * MS);
	for (int i = 0; i < LEDGER_CAUSES; i++)
		CHECK_EQ(r.cause_ns[i], 12);
	CHECK_EQ(r.paced_ns, 4);
	CHECK_EQ(r.switches, 20);
	r.time_ns = 1250 * MS; /* longer than a second: as it is */
	ledger_go_on(&r);
	CHECK_EQ(r.time_ns, 1250 * MS);
	CHECK_EQ(r.switches, 20);
}

static double dearer(void)
{
	struct ledger_reading second;

	if (!ledger__last(&l, &second))
		return -1;
	ledger__dearer(&l, 200 * MS, &second);
	return ledger_share(&second, ledger_cost(&second));
}

/* A moment tells first that there is more to do, and the second before it that it was dear. */
static void the_dearer_of_both(void)
{
	begin();
	for (uint64_t i = 0; i <= 4; i++)
		put(i * 250, i, i * 250);
	put(1250, 9, 1250);
	CHECK(fabs(dearer() - 0.02) < 1e-9); /* 5 ms in a quarter of a second */
	put(1350, 9, 1350);
	CHECK(fabs(dearer() - 0.005 / 0.35) < 1e-9); /* since the reading 0.35 s ago */
	put(2000, 9, 2000);
	CHECK(fabs(dearer() - 0.005) < 1e-9); /* nothing for a while, but 5 ms in the second */
	begin();
	put(0, 0, 0);
	put(100, 7, 100);
	CHECK(fabs(dearer() - 0.007) < 1e-9); /* too short for telling */
}

/* More readings than there is room for. */
static void readings_go_round(void)
{
	begin();
	for (uint64_t i = 0; i <= 10 * LEDGER_READINGS; i++)
		put(i * 100, i, i * 100);
	CHECK_SHARE(0.01);
}

static void all_parts_count(void)
{
	struct ledger_reading r = {.used_ns = 1};

	for (int i = 0; i < LEDGER_PARTS; i++)
		r.part_ns[i] = 1ull << i;
	CHECK_EQ(ledger_cost(&r), (1 << LEDGER_PARTS) - 1);
}

/* ---- what the last second leaves ---- */

static void room_in_a_second(void)
{
	struct ledger_reading last = {.time_ns = 1000 * MS, .used_ns = 1000 * MS};

	CHECK(fabs(room_left(&last, 0.01, false) - 6e6) < 1);
	CHECK(fabs(room_left(&last, 0.01, true) - 3e6) < 1);
	last.part_ns[LEDGER_OWN] = 4 * MS;
	last.part_ns[LEDGER_BPF] = 1 * MS;
	CHECK(fabs(room_left(&last, 0.01, false) - 1e6) < 1);
	CHECK(fabs(room_left(&last, 0.01, true) + 2e6) < 1);
	last.time_ns = 500 * MS; /* as if nothing had been paid in the rest, of as much use */
	last.used_ns = 1000 * MS;
	CHECK(fabs(room_left(&last, 0.01, false) - 7e6) < 1);
	last.time_ns = 1250 * MS; /* of more than a second, all of it */
	last.used_ns = 1250 * MS;
	CHECK(fabs(room_left(&last, 0.01, false) - 2.5e6) < 1);
}

/* ---- what stacks of waits may take of each CPU ---- */

static bool is_about(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void shared_by_cpus(void)
{
	CHECK(is_about(overhead__wait_stacks(0.01, 0, 1), 0.0025));
	CHECK(is_about(overhead__wait_stacks(0.01, 0.2, 2), 0.00125));
	CHECK(is_about(overhead__wait_stacks(0.01, 2, 2), 0.0025));
	/* what runs on 64 CPUs is on few at a time, unless all are used */
	CHECK(is_about(overhead__wait_stacks(0.01, 0.5, 64), 0.000625));
	CHECK(is_about(overhead__wait_stacks(0.01, 8, 64), 0.000625));
	CHECK(is_about(overhead__wait_stacks(0.01, 64, 64), 0.0025));
	CHECK(is_about(overhead__wait_stacks(0.01, 1, -1), 0.0025)); /* nobody knows how many */
}

UNIT_MAIN(TEST(one_reading_tells_nothing), TEST(of_what_is_used), TEST(of_one_cpu_at_least),
	  TEST(only_the_last_second), TEST(a_short_burst), TEST(late_readings),
	  TEST(from_a_restart_on), TEST(up_to_now), TEST(as_if_it_went_on),
	  TEST(the_dearer_of_both), TEST(readings_go_round), TEST(all_parts_count),
	  TEST(room_in_a_second), TEST(shared_by_cpus))
