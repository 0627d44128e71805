// SPDX-License-Identifier: BSD-2-Clause
/*
 * State that the agent's files share about the process they are in. Set by agent.c and control.c.
 */
#include "gpu/base/host.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"

static struct kprof_agent_shm *memory;
static bool in_injection;
static uint32_t agents_tid;

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

void host__is_agents_thread(void)
{
	__atomic_store_n(&agents_tid, gpu_tid(), __ATOMIC_RELAXED);
}

uint64_t host__add_cpu(struct kprof_agent_shm *shm, uint64_t since_ns)
{
	uint64_t now_ns = gpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	__atomic_fetch_add(&shm->cpu_ns, now_ns - since_ns, __ATOMIC_RELAXED);
	return now_ns;
}

uint64_t gpu_cpu_begin(void)
{
	/* all that the agent's own thread does is counted already */
	if (gpu_tid() == __atomic_load_n(&agents_tid, __ATOMIC_RELAXED))
		return 0;
	return gpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void gpu_cpu_end(uint64_t begin_ns)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (begin_ns && shm)
		host__add_cpu(shm, begin_ns);
}
