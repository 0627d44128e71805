/* SPDX-License-Identifier: BSD-2-Clause */
/* The work of the CUDA programs of scripts/gpu-check. An error of CUDA's ends the program. */
#ifndef GPUCHECK_CUDAWORK_H
#define GPUCHECK_CUDAWORK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WORK_SPIN_NS 50000ull
#define WORK_IN_GRAPH 4 /* kernels; and a copy on the device */

/* What was done since work_forget(). */
struct work_counts {
	uint64_t adds, spins, empties, to_device, to_host, on_device, sets, graphs;
};
extern struct work_counts work_done;
void work_forget(void);
/* As members of a JSON object, without braces. */
void work_print(FILE *out);
uint64_t work_now_ns(void);

void cuda__open(void);   /* loads the driver's library */
void cuda__set_up(void); /* initializes it, and makes a graph */
/*
 * Copies, a set, kernels on two streams, a graph of kernels and a copy, and waits for them. False:
 * the numbers are not what plain arithmetic gives.
 */
bool cuda__round(void);
/* The largest step of the device's clock that a spinning kernel saw. */
uint64_t cuda__timer_step_ns(void);
void cuda__spin(uint64_t ns); /* launches, and does not wait */
void cuda__wait(void);
void cuda__reset(void); /* destroys the context: nothing else can follow */
/* Launches kernels that do nothing; in a stream of the calling thread's own, or in the first. */
void cuda__launch_empty(uint64_t nr, bool in_own_stream);

/* The same kernels for the tests' simulated driver, which compiles nothing. */
const void *work_simulated_image(void);

#endif
