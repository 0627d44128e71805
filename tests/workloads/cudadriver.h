/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of cudadriver share: kernels, counted calls, options. It runs on the simulated
 * CUDA of tests/sim.
 */
#ifndef KPROF_TEST_CUDADRIVER_H
#define KPROF_TEST_CUDADRIVER_H

#include <stdbool.h>
#include <stdio.h>

#include "cuda_runtime.h"

/*
 * ---- kernels: host functions with the names that a compiler would give them
 * (cudadriver_kernels.c) ----
 */

void _Z5scalePfm(float *x, uint64_t n); /* scale(float *, unsigned long): x[i] *= 2 */
void _Z4spinm(uint64_t ns);             /* spin(unsigned long): takes so long */
void _Z4tinyv(void);                    /* tiny(): a microsecond */
void _Z3addPKfS0_Pfm(const float *, const float *, float *,
		     uint64_t); /* add(…): c[i] = a[i] + b[i] */
void never_registered(void);    /* the runtime does not know it */

/* For cuModuleLoadData. */
extern const struct sim_image cudadriver_image;

/* ---- calls are counted, for the report ---- */

struct counter {
	const char *name;
	uint64_t calls;
	struct counter *next;
};
void count_call(struct counter *c, const char *name);

/* Calls fn, counts it, and gives its result. */
#define CALL(fn, ...)                     \
	({                                \
		static struct counter c_; \
		count_call(&c_, #fn);     \
		fn(__VA_ARGS__);          \
	})
/* The same where nothing but success will do. */
#define OK(fn, ...) must(CALL(fn, __VA_ARGS__), 0, #fn)
#define FAILS(error, fn, ...) must(CALL(fn, __VA_ARGS__), error, #fn)
void must(int result, int expected, const char *what);

/* ---- the modes ---- */

struct options {
	const char *self;
	uint64_t n, kernel_ns, bytes;
	unsigned streams, threads, children, pace_ms, gap_us;
	bool now, linger;
	const char *records; /* cupti: where they are written */
};

struct result {
	uint64_t sum;
	bool ok;
	FILE *more; /* further JSON members, each with a comma in front */
};

typedef void mode_fn(const struct options *o, struct result *r);
mode_fn mode_loop, mode_context, mode_reset, mode_devices, mode_nosync, mode_graph, mode_copies,
	mode_errors, mode_threads, mode_ptsz, mode_fork, mode_children;
mode_fn mode_idle, mode_alloc, mode_exit, mode_kill, mode_spin, mode_api, mode_driver, mode_cupti,
	mode_events;

uint64_t mix(uint64_t sum, uint64_t x);
uint64_t now_ns(void); /* CLOCK_MONOTONIC */
/* Every hundredth of n: a profiler that places its probes meanwhile gets to see something. */
void rest(const struct options *o, uint64_t i);
bool stopped(void); /* SIGTERM came */
void launch_spin(cudaStream_t stream, uint64_t ns);
void launch_tiny(cudaStream_t stream);
/* n rounds of copies, kernels and waits in one stream; the checksum of what came out. */
uint64_t run_rounds(const struct options *o, cudaStream_t stream, uint64_t seed, bool *ok);

#endif
