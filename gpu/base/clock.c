// SPDX-License-Identifier: BSD-2-Clause
/* Conversion from a device's clock to CLOCK_MONOTONIC. */
#include <stddef.h>

#include "gpu/base/clock.h"
#include "gpu/base/module.h"

#define MAX_SKEW 1e-3   /* no clock runs that wrong: a larger rate means that a clock was set */
#define WORK_OFF_NS 1e9 /* an error is corrected within this time */
/* pairs must be far enough apart to give the rate at least this exactly … */
#define RATE_ERROR 2e-6
#define ANCHOR_AGE_NS 64e9 /* … and near enough that it has not changed meanwhile */

static double difference(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(a - b);
}

static uint64_t along(const struct gpu_clock_piece *p, uint64_t device_ns)
{
	int64_t since = (int64_t)(device_ns - p->device_ns);

	double more = (double)since * p->skew;

	return p->mono_ns + (uint64_t)since +
	       (uint64_t)(int64_t)(more < 0 ? more - 0.5 : more + 0.5);
}

static double clamped(double skew)
{
	return skew < -MAX_SKEW ? -MAX_SKEW : skew > MAX_SKEW ? MAX_SKEW : skew;
}

static void append(struct gpu_clock *c, uint64_t device_ns, uint64_t mono_ns, double skew)
{
	uint64_t nr = __atomic_load_n(&c->nr, __ATOMIC_RELAXED);
	struct gpu_clock_piece *p = &c->piece[nr % GPU_CLOCK_PIECES];

	p->device_ns = device_ns;
	p->mono_ns = mono_ns;
	p->skew = skew;
	__atomic_store_n(&c->nr, nr + 1, __ATOMIC_RELEASE);
}

/*
 * Measures the rate from two pairs, if they are far enough apart for the uncertainty that their
 * widths leave.
 */
static void measure_rate(struct gpu_clock *c, const struct gpu_clock_pair *pair)
{
	double device = difference(pair->device_ns, c->anchor.device_ns);
	double open = (double)(pair->width_ns + c->anchor.width_ns) / 2;
	double rate = difference(pair->mono_ns, c->anchor.mono_ns) / device - 1;

	if (__builtin_fabs(rate) > MAX_SKEW) { /* one of the clocks was set */
		c->anchor = *pair;
		return;
	}
	if (open / device > RATE_ERROR)
		return;
	c->rate = rate;
	if (device > ANCHOR_AGE_NS)
		c->anchor = *pair;
}

void gpu_clock__add(struct gpu_clock *c, const struct gpu_clock_pair *pair)
{
	const struct gpu_clock_piece *last;
	uint64_t nr = __atomic_load_n(&c->nr, __ATOMIC_RELAXED), here;
	double error, open = (double)pair->width_ns / 2;

	if (!nr) {
		c->anchor = *pair;
		append(c, pair->device_ns, pair->mono_ns, 0);
		return;
	}
	last = &c->piece[(nr - 1) % GPU_CLOCK_PIECES];
	if (pair->device_ns <= last->device_ns)
		return;
	measure_rate(c, pair);
	here = along(last, pair->device_ns);
	error = difference(pair->mono_ns, here);
	if (__builtin_fabs(error) > MAX_SKEW * WORK_OFF_NS) {
		append(c, pair->device_ns, pair->mono_ns, c->rate);
		return;
	}
	/* Only what exceeds the uncertainty of the pair is an error. */
	error = error > open ? error - open : error < -open ? error + open : 0;
	append(c, pair->device_ns, here, clamped(c->rate + error / WORK_OFF_NS));
}

bool gpu_clock__ready(const struct gpu_clock *c)
{
	return __atomic_load_n(&c->nr, __ATOMIC_ACQUIRE) > 0;
}

uint64_t gpu_clock__to_mono(const struct gpu_clock *c, uint64_t device_ns)
{
	uint64_t nr = __atomic_load_n(&c->nr, __ATOMIC_ACQUIRE), i;
	/* Use one piece less than are kept: the oldest may be in the course of being replaced. */
	uint64_t kept = nr < GPU_CLOCK_PIECES ? nr : GPU_CLOCK_PIECES - 1;
	const struct gpu_clock_piece *p = NULL;

	for (i = 0; i < kept; i++) {
		p = &c->piece[(nr - 1 - i) % GPU_CLOCK_PIECES];
		if (p->device_ns <= device_ns)
			break;
	}
	return p ? along(p, device_ns) : device_ns;
}

bool gpu_clock__tightest(gpu_clock_read_fn read, void *ctx, unsigned int tries,
			 struct gpu_clock_pair *out)
{
	bool any = false;

	for (unsigned int i = 0; i < tries; i++) {
		uint64_t before = gpu_now_ns(), device = 0, after;

		if (!read(ctx, &device))
			return false;
		after = gpu_now_ns();
		if (any && after - before >= out->width_ns)
			continue;
		*out = (struct gpu_clock_pair){before + (after - before) / 2, device,
					       after - before};
		any = true;
	}
	return any;
}
