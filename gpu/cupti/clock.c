// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUPTI's clock, which every tool of the process can replace. Records should have CLOCK_MONOTONIC
 * times. So the agent registers that clock where CUPTI still has its own, CLOCK_REALTIME. If
 * another tool has registered a clock, that tool relies on it: then it is kept, and times are
 * converted.
 */
#include <errno.h>
#include <time.h>

#include "gpu/base/batch.h"
#include "gpu/base/clock.h"
#include "gpu/base/util.h"
#include "gpu/cupti/cupti.h"

#define PAIR_TRIES 32
#define RATE_NS 20000000       /* pairs this far apart give the rate with an error of some 1e-6 */
#define CLOCK_SLACK_NS 1000000 /* clocks that differ by less than this are taken for the same */
#define OTHER_SLACK_NS UINT64_C(1000000000) /* the same for a clock that runs at another rate */
/* CLOCK_REALTIME is above, and CLOCK_MONOTONIC below, unless the machine is up for thirty years. */
#define LEAST_REALTIME_NS UINT64_C(1000000000000000000)

static struct {
	const struct cupti_functions *f;
	bool registered; /* CUPTI was given the agent's clock */
	bool converts;   /* CUPTI uses a clock that another tool has set */
	struct gpu_clock_pair first;
	double rate; /* CLOCK_MONOTONIC nanoseconds in one unit of that clock */
	struct gpu_clock clock;
	uint64_t realtime_offset_ns; /* from CLOCK_MONOTONIC */
} c;

static uint64_t realtime_ns(void)
{
	return gpu_clock_ns(CLOCK_REALTIME);
}

static bool near(uint64_t a, uint64_t b, uint64_t slack)
{
	return a - b + slack <= 2 * slack;
}

static bool read_cupti(void *ctx, uint64_t *time)
{
	return c.f->timestamp(time) == CUPTI_OK;
}

/*
 * Converts a time to ns. Another tool's clock may count anything (that of Kineto: the processor's
 * ticks), so its rate was measured at the start. CUPTI 13 was seen to return to its own clock after
 * another had been registered: which of the two a time is of can be told from its size.
 */
static uint64_t in_ns(uint64_t time)
{
	if (!c.converts && time < LEAST_REALTIME_NS)
		return time;
	if (!c.converts)
		return time - __atomic_load_n(&c.realtime_offset_ns, __ATOMIC_RELAXED);
	return c.first.mono_ns +
	       (uint64_t)(int64_t)((double)(int64_t)(time - c.first.device_ns) * c.rate);
}

static bool read_in_ns(void *ctx, uint64_t *time)
{
	if (!read_cupti(ctx, time))
		return false;
	*time = in_ns(*time);
	return true;
}

uint64_t cupti_clock__to_mono(uint64_t time)
{
	return c.converts ? gpu_clock__to_mono(&c.clock, in_ns(time)) : in_ns(time);
}

static void read_realtime(void)
{
	uint64_t before = gpu_now_ns(), real = realtime_ns(), after = gpu_now_ns();

	__atomic_store_n(&c.realtime_offset_ns, real - (before + (after - before) / 2),
			 __ATOMIC_RELAXED);
}

void cupti_clock__pair(void)
{
	struct gpu_clock_pair p;
	struct kprof_agent_clock_pair out;

	read_realtime();
	if (!gpu_clock__tightest(read_in_ns, NULL, PAIR_TRIES, &p))
		return;
	if (c.converts)
		gpu_clock__add(&c.clock, &p);
	out = BATCH_RECORD(struct kprof_agent_clock_pair, KPROF_AGENT_CLOCK, 0);
	out.mono_ns = p.mono_ns;
	out.device_ns = p.device_ns;
	out.width_ns = p.width_ns;
	batch__append(&out);
}

/* Measures the rate of CUPTI's clock. False: the clock stands still, or runs backwards. */
static bool measure_rate(void)
{
	static const uint32_t word;
	struct gpu_clock_pair second;

	if (!gpu_clock__tightest(read_cupti, NULL, PAIR_TRIES, &c.first))
		return false;
	while (gpu_now_ns() - c.first.mono_ns < RATE_NS)
		gpu_futex_wait(&word, 0, RATE_NS / 1000000, false);
	if (!gpu_clock__tightest(read_cupti, NULL, PAIR_TRIES, &second) ||
	    second.device_ns <= c.first.device_ns)
		return false;
	c.rate = (double)(second.mono_ns - c.first.mono_ns) /
		 (double)(second.device_ns - c.first.device_ns);
	return true;
}

/*
 * Is CUPTI's time, converted, the present one? It is then between two readings of the agent's
 * clock, however long this thread had to wait for a CPU.
 */
static bool is_present(uint64_t slack_ns)
{
	uint64_t before = gpu_now_ns(), time = 0, after;

	if (c.f->timestamp(&time) != CUPTI_OK)
		return false;
	after = gpu_now_ns();
	time = cupti_clock__to_mono(time);
	return time + slack_ns >= before && time <= after + slack_ns;
}

int cupti_clock__set(const struct cupti_functions *f, struct gpu_report *r)
{
	static const struct gpu_clock none;
	uint64_t time = 0;

	c.f = f;
	c.converts = c.registered = false;
	c.clock = none;
	read_realtime();
	if (f->timestamp(&time) != CUPTI_OK)
		return gpu_report(r, -EIO, KPROF_AGENT_OTHER, "CUPTI does not tell the time", NULL);
	if (f->register_timestamp && near(time, realtime_ns(), UINT64_C(1000000000)))
		c.registered = f->register_timestamp(gpu_now_ns) == CUPTI_OK;
	if (f->timestamp(&time) != CUPTI_OK || time >= LEAST_REALTIME_NS ||
	    !is_present(CLOCK_SLACK_NS)) {
		if (!measure_rate())
			return gpu_report(r, -EIO, KPROF_AGENT_OTHER, "CUPTI's clock stands still",
					  NULL);
		c.converts = true;
	}
	gpu_shm()->clock = c.converts ? KPROF_AGENT_CLOCK_CONVERTED : KPROF_AGENT_CLOCK_MONOTONIC;
	cupti_clock__pair();
	return 0;
}

bool cupti_clock__lost(void)
{
	/* CUPTI's own clock can be set while it is read. */
	return !is_present(c.converts ? OTHER_SLACK_NS : CLOCK_SLACK_NS) &&
	       (read_realtime(), !is_present(OTHER_SLACK_NS));
}

void cupti_clock__restore(void)
{
	/* Another tool may have replaced it since. */
	if (c.registered && !cupti_clock__lost())
		c.f->register_timestamp(realtime_ns);
	c.registered = false;
}
