// SPDX-License-Identifier: BSD-2-Clause
/* Waits whose records come before their process is told of. */
#include <stdlib.h>

#include "capture/session/session.h"
#include "unit.h"

static void hold(struct kprof_session *s, uint32_t pid, uint64_t since_ns, uint16_t flags)
{
	struct kprof_wire_wait e = {
		.h = {.kind = KPROF_WIRE_WAIT, .pid_tgid = (uint64_t)pid << 32 | pid},
		.w = {.since_ns = since_ns, .flags = flags, .told = 1},
	};

	CHECK_EQ(early__hold(s, &e.h), 0);
}

static void in_their_order(void)
{
	struct kprof_session s = {.machine = true};
	struct kprof_wire_wait e;

	hold(&s, 1, 10, 0);
	hold(&s, 2, 20, 0);
	hold(&s, 1, 30, 0);
	CHECK(early__take(&s, 1, &e));
	CHECK_EQ(e.w.since_ns, 10);
	CHECK(early__take(&s, 1, &e));
	CHECK_EQ(e.w.since_ns, 30);
	CHECK(!early__take(&s, 1, &e));
	CHECK(early__take(&s, 2, &e));
	CHECK_EQ(s.unknown_pids, 0);
	free(s.early_waits.data);
}

/* A thread that ends untold of takes its waits with it; each record is counted. */
static void ended(void)
{
	struct kprof_session s = {.machine = true};
	struct kprof_wire_wait e;

	hold(&s, 1, 10, 0);
	hold(&s, 2, 20, 0);
	hold(&s, 1, 30, KPROF_WAIT_LAST);
	CHECK(!early__take(&s, 1, &e));
	CHECK(early__take(&s, 2, &e));
	CHECK_EQ(s.unknown_pids, 2);
	free(s.early_waits.data);
}

/* A thread that has not waited for long: there is nothing of it that is lost. */
static void nothing_to_tell(void)
{
	struct kprof_session s = {.machine = true};
	struct kprof_wire_wait e = {
		.h = {.kind = KPROF_WIRE_WAIT, .pid_tgid = 1ull << 32 | 1},
		.w = {.since_ns = 10, .flags = KPROF_WAIT_LAST},
	};

	CHECK_EQ(early__hold(&s, &e.h), 0);
	CHECK_EQ(s.early_waits.nr + s.unknown_pids, 0);
}

static void bounded(void)
{
	struct kprof_session s = {.machine = true};
	struct kprof_wire_wait e;

	for (uint32_t i = 1; i <= 1000; i++)
		hold(&s, i, i, 0);
	CHECK_EQ(s.early_waits.nr + s.unknown_pids, 1000);
	CHECK(s.early_waits.nr < 1000);
	CHECK(!early__take(&s, 1, &e)); /* the oldest are given up */
	CHECK(early__take(&s, 1000, &e));
	free(s.early_waits.data);
}

/* Of chosen processes, nobody will be told of. */
static void only_of_a_machine(void)
{
	struct kprof_session s = {0};

	hold(&s, 1, 10, 0);
	CHECK_EQ(s.early_waits.nr, 0);
	CHECK_EQ(s.unknown_pids, 1);
}

UNIT_MAIN(TEST(in_their_order), TEST(ended), TEST(nothing_to_tell), TEST(bounded),
	  TEST(only_of_a_machine))
