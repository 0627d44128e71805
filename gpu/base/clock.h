/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a device's clock to CLOCK_MONOTONIC: pairs of readings in, converted times out.
 *
 * Both count nanoseconds, but neither starts where the other does nor runs exactly as fast (NTP
 * steers CLOCK_MONOTONIC by up to 500 ppm). A pair is one moment on both, as tight as it could be
 * read. The map is a chain of straight pieces, one a pair, that meet: an error that a pair shows is
 * worked off during the next second instead of jumping, so that what follows one another on the
 * device does so after conversion, too.
 *
 * One thread adds; any thread converts, without a lock. All zero is a clock without pairs.
 */
#ifndef KPROF_GPU_CLOCK_H
#define KPROF_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_CLOCK_PIECES 32 /* a job that was queued longer ago is converted by the oldest */

struct gpu_clock_pair {
	uint64_t mono_ns, device_ns;
	uint64_t width_ns; /* the truth lies within ± half of it */
};

struct gpu_clock_piece {
	uint64_t device_ns, mono_ns; /* where it begins, on both clocks */
	double skew;                 /* a device's nanosecond is 1 + skew of ours */
};

struct gpu_clock {
	uint64_t nr; /* pieces ever made; the last GPU_CLOCK_PIECES of them are kept */
	struct gpu_clock_piece piece[GPU_CLOCK_PIECES];
	struct gpu_clock_pair anchor; /* what the rate is measured from */
	double rate;                  /* as measured, minus 1 */
};

/* Pairs come in the order of time. One that is not later than the last is passed over. */
void gpu_clock__add(struct gpu_clock *c, const struct gpu_clock_pair *pair);
bool gpu_clock__ready(const struct gpu_clock *c);
/* device_ns itself where no pair is known. */
uint64_t gpu_clock__to_mono(const struct gpu_clock *c, uint64_t device_ns);

/*
 * The tightest of so many tries. read returns false where the clock can't be read (and so does
 * this).
 */
typedef bool (*gpu_clock_read_fn)(void *ctx, uint64_t *device_ns);
bool gpu_clock__tightest(gpu_clock_read_fn read, void *ctx, unsigned int tries,
			 struct gpu_clock_pair *out);

uint64_t gpu_clock__mono_ns(void);

#endif
