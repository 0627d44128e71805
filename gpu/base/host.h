/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory file, and the state of the process that the agent lets its modules know. */
#ifndef KPROF_GPU_HOST_H
#define KPROF_GPU_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/agent.h"

/* Makes and maps the memory file, and closes its descriptor. Returns 0 or a negative errno. */
int shm__make(struct kprof_agent_shm **out);
/* In a forked child: unmaps the child's mapping; the parent's file is not changed. */
void shm__unmap(struct kprof_agent_shm *shm);

/* Set the values that gpu_shm() and gpu_in_injection() return. */
void host__set_shm(struct kprof_agent_shm *shm);
void host__set_in_injection(bool yes);
/* The agent's thread calls this once. */
void host__is_agents_thread(void);
/*
 * Adds the CPU time of the calling thread since it had used so much (ns) to .cpu_ns. Returns how
 * much it has used.
 */
uint64_t host__add_cpu(struct kprof_agent_shm *shm, uint64_t since_ns);

#endif
