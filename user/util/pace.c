// SPDX-License-Identifier: BSD-2-Clause
#include "util/pace.h"

#include <time.h>

#include "util/util.h"

/* Looking at the clocks costs as much as some hundred instructions' decoding. */
#define EVERY 32
/* Of what was not used, so much may be at once, in ns of CPU time. */
#define SPARE_NS (2 * (int64_t)NSEC_PER_MSEC)
/* The rate may be another meanwhile, or the work be given up. Short naps cost by themselves. */
#define NAP_NS (20 * (long)NSEC_PER_MSEC)
#define SHORTEST_NS (5 * (long)NSEC_PER_MSEC)

static _Thread_local struct {
	struct pace *pace;
	uint32_t calls;
	uint64_t cpu_ns, wall_ns; /* as last read */
	int64_t credit_ns;        /* what may be used; below 0: what was used too much */
} work;

void pace_begin(struct pace *p)
{
	work.pace = p;
	work.cpu_ns = clock_thread_ns();
	work.wall_ns = clock_mono_ns();
	work.credit_ns = SPARE_NS + (p ? (int64_t)p->at_once_ns : 0);
}

/* What the time since the last look allows, less what it took. */
static void look(uint64_t ns_a_second)
{
	uint64_t cpu_ns = clock_thread_ns(), wall_ns = clock_mono_ns();
	double seconds = (double)(wall_ns - work.wall_ns) / (double)NSEC_PER_SEC;

	if (work.credit_ns < SPARE_NS) {
		work.credit_ns += (int64_t)(seconds * (double)ns_a_second);
		if (work.credit_ns > SPARE_NS)
			work.credit_ns = SPARE_NS;
	}
	work.credit_ns -= (int64_t)(cpu_ns - work.cpu_ns);
	atomic_fetch_add(&work.pace->used_ns, cpu_ns - work.cpu_ns);
	work.cpu_ns = cpu_ns;
	work.wall_ns = wall_ns;
}

static void nap(int64_t missing_ns, uint64_t ns_a_second)
{
	double ns = (double)missing_ns / (double)ns_a_second * (double)NSEC_PER_SEC;
	struct timespec t = {.tv_nsec = ns < NAP_NS ? (long)ns : NAP_NS};

	if (t.tv_nsec < SHORTEST_NS)
		t.tv_nsec = SHORTEST_NS;
	nanosleep(&t, NULL);
}

void pace_rest(void)
{
	uint64_t ns_a_second;

	if (!work.pace || ++work.calls % EVERY)
		return;
	while ((ns_a_second = atomic_load(&work.pace->ns_a_second)) &&
	       !(work.pace->stop && atomic_load(work.pace->stop))) {
		look(ns_a_second);
		if (work.credit_ns >= 0)
			return;
		nap(-work.credit_ns, ns_a_second);
	}
	/* nothing was owed while there was no limit */
	pace_begin(work.pace);
}
