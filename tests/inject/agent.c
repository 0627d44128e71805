// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stands in for the agent: counts how often it was loaded and started, and does what a real one
 * does at its start.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int kprof_agent_start(void);
/* The workloads find these by dlsym(). */
extern volatile int kprof_test_loads, kprof_test_starts, kprof_test_threads;
volatile int kprof_test_loads, kprof_test_starts, kprof_test_threads;

#ifdef AGENT_MISSES
void there_is_no_such_function(void);
#endif

__attribute__((constructor)) static void loaded(void)
{
	kprof_test_loads++;
#ifdef AGENT_MISSES
	there_is_no_such_function();
#endif
}

static void *nothing(void *arg)
{
	__atomic_fetch_add(&kprof_test_threads, 1, __ATOMIC_RELAXED);
	free(arg);
	return NULL;
}

int kprof_agent_start(void)
{
	pthread_t thread;
	void *memory = malloc(100);
	int fd;

	/* Dirties what a caller may: the interrupted code must not notice. */
	__asm__ volatile(
		"pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm7, %%xmm7; pcmpeqd %%xmm15, %%xmm15; fld1" ::
			: "xmm0", "xmm7", "xmm15", "st");
	errno = EDOM;
#ifdef AGENT_FAILS
	free(memory);
	return -ENOSPC;
#endif
	fd = memfd_create("kprof-test-agent", MFD_CLOEXEC);
	if (fd < 0 || !memory)
		return -ENOMEM;
	close(fd);
	if (pthread_create(&thread, NULL, nothing, memory))
		return -EAGAIN;
	pthread_detach(thread);
	kprof_test_starts++;
	return 0;
}
