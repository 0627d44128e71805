// SPDX-License-Identifier: BSD-2-Clause
/*
 * State that the agent's files share about the process they are in. Set by agent.c and control.c.
 */
#include "gpu/base/host.h"
#include "gpu/base/module.h"

static struct kprof_agent_shm *memory;
static bool in_injection;

struct kprof_agent_shm *gpu_shm(void)
{
	return memory;
}

void host__set_shm(struct kprof_agent_shm *shm)
{
	memory = shm;
}

bool gpu_in_injection(void)
{
	return in_injection;
}

void host__set_in_injection(bool yes)
{
	in_injection = yes;
}
