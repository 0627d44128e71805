/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversion from a device's clock to CLOCK_MONOTONIC, by pairs of readings of both.
 *
 * Both count nanoseconds, but neither starts where the other does nor runs exactly as fast (NTP
 * steers CLOCK_MONOTONIC by up to 500 ppm). A pair is one moment on both clocks, as exact as it
 * could be read. The conversion is a chain of straight pieces that meet, one for each pair: an
 * error that a pair shows is corrected during the next second, without a jump, so that the order of
 * events on the device is kept.
 *
 * One thread adds pairs; any thread converts, without a lock. A struct of zeros is a clock without
 * pairs.
 */
#ifndef KPROF_GPU_CLOCK_H
#define KPROF_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_CLOCK_PIECES 32 /* pieces kept; times before the oldest are converted by it */

struct gpu_clock_pair {
	uint64_t mono_ns, device_ns;
	uint64_t width_ns; /* uncertainty: the true moment is within ± half of it */
};

struct gpu_clock_piece {
	uint64_t device_ns, mono_ns; /* the piece's begin, on both clocks */
	/* a nanosecond of the device is 1 + skew ns of CLOCK_MONOTONIC */
	double skew;
};

struct gpu_clock {
	uint64_t nr; /* pieces made so far; the last GPU_CLOCK_PIECES of them are kept */
	struct gpu_clock_piece piece[GPU_CLOCK_PIECES];
	struct gpu_clock_pair anchor; /* the earlier pair from which the rate is measured */
	double rate;                  /* measured rate, minus 1 */
};

/* Adds a pair. A pair that is not later than the last one is ignored. */
void gpu_clock__add(struct gpu_clock *c, const struct gpu_clock_pair *pair);
bool gpu_clock__ready(const struct gpu_clock *c);
/* Converts a time; returns device_ns itself while no pair is known. */
uint64_t gpu_clock__to_mono(const struct gpu_clock *c, uint64_t device_ns);

/*
 * Reads the clock several times, and gives the pair with the smallest width. Returns false where
 * `read` does, which means that the clock cannot be read.
 */
typedef bool (*gpu_clock_read_fn)(void *ctx, uint64_t *device_ns);
bool gpu_clock__tightest(gpu_clock_read_fn read, void *ctx, unsigned int tries,
			 struct gpu_clock_pair *out);

#endif
