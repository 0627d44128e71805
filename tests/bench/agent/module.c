// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent with a runtime that exists only here: while a session records, it appends RATE kernel
 * records a second (0: as fast as can be). Linked with the agent's own objects into a
 * libkprof_agent.so, for kprof to find.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"

#define NAMES 200

__attribute__((visibility("default"))) int agent_serve(uint64_t rate);

static char names[NAMES][32];
static uint64_t rate, appended, started_ns, stopped_ns;
static pthread_t worker;
static bool on, over;

static void append(uint64_t i)
{
	struct kprof_agent_kernel k = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL,
						     batch__name_of(names[i % NAMES]));

	k.a.start_ns = gpu_now_ns();
	k.a.end_ns = k.a.start_ns + 100;
	k.a.correlation = i;
	k.a.type = KPROF_ACTIVITY_KERNEL;
	k.a.stream = 7;
	batch__append(&k);
}

static void *works(void *arg)
{
	started_ns = gpu_now_ns();
	while (__atomic_load_n(&on, __ATOMIC_RELAXED)) {
		if (rate && appended > (gpu_now_ns() - started_ns) / 1000 * rate / 1000000) {
			usleep(100);
			continue;
		}
		for (int i = 0; i < 64; i++)
			append(appended++);
	}
	stopped_ns = gpu_now_ns();
	return NULL;
}

static int probe(struct gpu_report *r)
{
	return 0;
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	__atomic_store_n(&on, true, __ATOMIC_RELAXED);
	return -pthread_create(&worker, NULL, works, NULL);
}

static void stop(void)
{
	__atomic_store_n(&on, false, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
}

static const struct gpu_module module = {
	.runtime = KPROF_AGENT_CUDA,
	.probe = probe,
	.start = start,
	.stop = stop,
};
const struct gpu_module *const gpu_modules[] = {&module, NULL};

int agent_serve(uint64_t wanted_rate)
{
	struct kprof_agent_shm *shm;
	int err = gpu_start();

	if (err)
		return 1;
	rate = wanted_rate;
	for (int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "kernel %d", i);
	shm = gpu_shm();
	printf("READY %d\n", getpid());
	fflush(stdout);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&shm->state, __ATOMIC_ACQUIRE) == KPROF_AGENT_RECORDING)
		usleep(10000);
	printf("{\"appended\": %llu, \"records\": %llu, \"dropped\": %llu, \"records_per_s\": %.0f}\n",
	       (unsigned long long)appended, (unsigned long long)shm->records,
	       (unsigned long long)shm->agent_dropped,
	       (double)appended * 1e9 / (double)(stopped_ns - started_ns));
	return 0;
}
