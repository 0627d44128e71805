// SPDX-License-Identifier: BSD-2-Clause
/* user/sink/perfetto/sched.c: what a CPU ran, and the states in which threads leave it. */
#include "pftrace_fixture.h"

/* A wait of thread 0, on one CPU. */
static void put_wait(uint64_t start_ns, uint64_t wake_ns, uint64_t end_ns, uint32_t flags)
{
	made__put(&m, (struct store_record){STORE_WAIT, .wait = {.start_ns = MONO_NS + start_ns,
								 .wake_ns = MONO_NS + wake_ns,
								 .end_ns = MONO_NS + end_ns,
								 .flags = flags,
								 .left_cpu = 1,
								 .got_cpu = 1}});
}

static void states(void)
{
	static const struct {
		uint64_t ns;
		int64_t state;
	} expected[] = {{1000, 1}, {2000, 2}, {3000, 0}, {4000, 0x100}, {5000, 4}};
	const Pf__FtraceEvents *e = NULL;
	struct packets p;
	uint64_t ns = 0;
	size_t nr = 0;

	made__start(&m, in_scratch("s.kprof"));
	made__meta(&m, "waits", "{}");
	made__process(&m, 7, 1, "python3");
	made__thread(&m, 7, 7, "main");
	put_wait(1000, 1200, 1300, STORE_WAIT_SLEEPING);
	put_wait(2000, 2200, 2300, STORE_WAIT_BLOCKED);
	put_wait(3000, 3000, 3300, STORE_WAIT_SLEEPING); /* woken before it had left its CPU */
	put_wait(4000, 4000, 4300, STORE_WAIT_PREEMPTED);
	put_wait(5000, 5200, 5300, STORE_WAIT_STOPPED);
	made__finish(&m);
	p = exported("s.kprof", "s.pftrace", 0);
	for (size_t i = 0; i < p.nr; i++)
		e = p.list[i]->ftrace_events ? p.list[i]->ftrace_events : e;
	CHECK(e);
	for (size_t i = 0; e && i < e->compact->n_ns; i++) {
		ns += e->compact->ns[i];
		if (e->compact->next_pids[i] || !i)
			continue; /* only where the thread leaves */
		CHECK(nr < 5 && ns == MONO_NS + expected[nr].ns);
		CHECK(nr < 5 && e->compact->prev_states[i] == expected[nr].state);
		nr++;
	}
	CHECK_EQ(nr, 5);
	CHECK_EQ(e ? e->n_event : 0, 3); /* wakings of those that had left it to wait */
	packets_free(&p);
}

static void setup(void)
{
	scratch__make();
}

UNIT_MAIN(TEST(setup), TEST(states), TEST(scratch__remove))
