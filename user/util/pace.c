// SPDX-License-Identifier: BSD-2-Clause
#include "util/pace.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/util.h"

/* Looking at the clocks costs as much as some hundred instructions' decoding. */
#define EVERY 32
/*
 * Waking up costs a tenth of a millisecond on some machines, and what was in the caches is gone:
 * once it rests, it rests until it may work for so long at a time. Of what was not used, no more
 * may be at once, either. In ns of CPU time.
 */
#define STRETCH_NS ((int64_t)NSEC_PER_MSEC / 2)
/* What was given more at first is there for so long. */
#define AT_ONCE_NS (2 * NSEC_PER_SEC)
/* The rate may be another meanwhile. */
#define NAP_NS (NSEC_PER_SEC - 1)

static _Thread_local struct {
	struct pace *pace;
	uint32_t calls;
	uint64_t cpu_ns, wall_ns; /* as last read */
	uint64_t first_ns;        /* when it began */
	int64_t credit_ns;        /* what may be used; below 0: what was used too much */
} work;

void pace_begin(struct pace *p)
{
	work.pace = p;
	work.cpu_ns = clock_thread_ns();
	work.wall_ns = work.first_ns = clock_mono_ns();
	work.credit_ns = STRETCH_NS + (p ? p->at_once_ns : 0);
}

/* What the time since the last look allows. */
static void earn(uint64_t ns_a_second)
{
	uint64_t wall_ns = clock_mono_ns();
	double seconds = (double)(wall_ns - work.wall_ns) / (double)NSEC_PER_SEC;

	if (work.credit_ns < STRETCH_NS) {
		work.credit_ns += (int64_t)(seconds * (double)ns_a_second);
		if (work.credit_ns > STRETCH_NS)
			work.credit_ns = STRETCH_NS;
	} else if (wall_ns >= work.first_ns + AT_ONCE_NS) {
		work.credit_ns = STRETCH_NS;
	}
	work.wall_ns = wall_ns;
}

/* What was used since the last look. */
static uint64_t use(void)
{
	uint64_t cpu_ns = clock_thread_ns(), used_ns = cpu_ns - work.cpu_ns;

	atomic_fetch_add(&work.pace->used_ns, used_ns);
	work.cpu_ns = cpu_ns;
	return used_ns;
}

/* Until pace_wake() is called, or was since it had been called so often. */
static void nap(int64_t missing_ns, uint64_t ns_a_second, uint32_t woken)
{
	double ns = (double)missing_ns / (double)ns_a_second * (double)NSEC_PER_SEC;
	struct timespec t = {.tv_nsec = ns < (double)NAP_NS ? (long)ns : (long)NAP_NS};

	syscall(SYS_futex, &work.pace->woken, FUTEX_WAIT_PRIVATE, woken, &t, NULL, 0);
}

void pace_wake(struct pace *p)
{
	atomic_fetch_add(&p->woken, 1);
	syscall(SYS_futex, &p->woken, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/*
 * Until there is credit for a stretch. What resting costs is not charged, else there might never
 * be. False: there is no rate any more.
 */
static bool rest(void)
{
	for (;;) {
		uint32_t woken = atomic_load(&work.pace->woken);
		uint64_t ns_a_second = atomic_load(&work.pace->ns_a_second);

		if (!ns_a_second || (work.pace->stop && atomic_load(work.pace->stop)))
			return false;
		earn(ns_a_second);
		if (work.credit_ns >= STRETCH_NS)
			break;
		nap(STRETCH_NS - work.credit_ns, ns_a_second, woken);
	}
	use();
	return true;
}

void pace_rest(void)
{
	if (work.pace && ++work.calls % EVERY == 0)
		pace_rest_now();
}

void pace_rest_now(void)
{
	uint64_t ns_a_second;

	if (!work.pace)
		return;
	ns_a_second = atomic_load(&work.pace->ns_a_second);
	if (ns_a_second) {
		earn(ns_a_second);
		work.credit_ns -= (int64_t)use();
	}
	/* nothing was owed while there was no limit */
	if (!ns_a_second || (work.credit_ns < 0 && !rest()))
		pace_begin(work.pace);
}
