/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory file, and what the agent's thread lets modules know of the process that they are in.
 */
#ifndef KPROF_GPU_HOST_H
#define KPROF_GPU_HOST_H

#include <stdbool.h>

#include "kprof/agent.h"

/* Makes and maps the memory file; the descriptor is closed again. 0 or a negative errno. */
int shm__make(struct kprof_agent_shm **out);
/* In a forked child: its copy of the mapping goes; the parent's memory is not touched. */
void shm__unmap(struct kprof_agent_shm *shm);

/* What modules learn by gpu_shm() and gpu_in_injection(). */
void host__set_shm(struct kprof_agent_shm *shm);
void host__set_in_injection(bool yes);

#endif
