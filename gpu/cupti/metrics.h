/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hardware metrics of a session, which the memory file's head asks for and is told about. But for
 * metrics__context_ends(), everything is called by the agent's thread.
 */
#ifndef KPROF_GPU_CUPTI_METRICS_H
#define KPROF_GPU_CUPTI_METRICS_H

#include "gpu/cupti/cupti.h"

/* A session begins. Does nothing yet, so that it may be called while CUDA initializes. */
void metrics__start(const struct cuda_process *p, const struct cupti_functions *f,
		    void *subscriber);
/* To be called every 100 ms. Can take as long as CUPTI needs to start: 250 ms on an H100. */
void metrics__tick(void);
/* Measures no more; what was measured has been appended when it returns. */
void metrics__stop(void);
/* A thread of the program is about to destroy this context. Returns when it is used no more. */
void metrics__context_ends(void *context);
void metrics__forget(void); /* in a forked child */

#endif
