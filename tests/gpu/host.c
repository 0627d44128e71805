// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process with the agent in it, that plays kprof's part as well: loads libraries, asks the agent
 * to record, and says what came of it. Nothing of the agent is linked: it comes as it comes to a
 * target.
 *   host AGENT [LIBRARY…]         prints "STATE REASON DETAIL"
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kprof/agent.h"
#include "tests/gpu/find_shm.h"

static void *load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return handle;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct kprof_agent_shm *shm;
	int (*start)(void);
	void *agent;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++)
		load(argv[i]);
	agent = load(argv[1]);
	start = (int (*)(void))dlsym(agent, KPROF_AGENT_START_SYMBOL);
	if (!start || start()) {
		fprintf(stderr, "the agent does not start\n");
		return 1;
	}
	shm = find_shm();
	if (!shm || shm->magic != KPROF_AGENT_MAGIC)
		return 1;
	shm->heartbeat_ns = now_ns();
	shm->types = ~UINT64_C(0);
	shm->session = 1;
	__atomic_store_n(&shm->command, KPROF_AGENT_RECORD, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shm->command, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (!__atomic_load_n(&shm->reason, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&shm->state, __ATOMIC_ACQUIRE) != KPROF_AGENT_RECORDING) {
		shm->heartbeat_ns = now_ns();
		usleep(1000);
	}
	usleep(1000);
	printf("%u %u %s (CUPTI %u, driver %u, runtime %u)\n", shm->state, shm->reason, shm->detail,
	       shm->cupti_version, shm->driver_version, shm->runtime_version);
	return 0;
}
