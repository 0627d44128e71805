// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the agent's way of records costs, without a device and without CUPTI.
 *   agent_bench append THREADS    records a second into slots and out by the (unprobed) call; ns a
 *   record
 *   agent_bench parse             CUPTI's records a second into slots, names looked up
 *   agent_bench idle              ns of the call that hands over, when nobody watches
 *   agent_bench serve LIBRARY RATE  a target for kprof attach, with the agent of
 *   tests/bench/agent/module.c in it
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/agent.h"
#include "gpu/base/batch.h"
#include "gpu/cupti/cupti.h"
#include "gpu/base/module.h"
#include "gpu/base/probe.h"

int kprof_agent_start(void);

#define NAMES 200
#define RECORDS 4000000

static char names[NAMES][120];

static void make_names(void)
{
	for (int i = 0; i < NAMES; i++)
		snprintf(
			names[i], sizeof(names[i]),
			"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5"
			"arrayIPcLm3EEEEviT0_T1_%d",
			i);
}

static double seconds(void)
{
	return (double)gpu_now_ns() / 1e9;
}

static void append_one(uint64_t i)
{
	struct kprof_agent_kernel k = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL,
						     batch__name_of(names[i % NAMES]));

	k.a.start_ns = gpu_now_ns();
	k.a.end_ns = k.a.start_ns + 1000;
	k.a.correlation = i;
	k.a.type = KPROF_ACTIVITY_KERNEL;
	k.a.stream = 7;
	batch__append(&k);
}

static void *appends(void *arg)
{
	for (uint64_t i = 0; i < RECORDS; i++)
		append_one(i);
	return NULL;
}

static int append(int threads)
{
	pthread_t t[64];
	double start = seconds(), took;

	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, appends, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	took = seconds() - start;
	printf("{\"threads\": %d, \"records_per_s\": %.0f, \"ns\": %.1f}\n", threads,
	       threads * RECORDS / took, took * 1e9 / RECORDS);
	return 0;
}

static struct cupti_kernel cupti_records[4000];

static int next_record(uint8_t *buffer, size_t bytes, void **record)
{
	struct cupti_kernel *next = *record ? (struct cupti_kernel *)*record + 1 : (void *)buffer;

	if ((uint8_t *)next >= buffer + bytes)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = next;
	return CUPTI_OK;
}

static int parse(void)
{
	static const struct cupti_functions f = {.next_record = next_record};
	const struct cupti_reader reader = {.f = &f};
	const size_t nr = sizeof(cupti_records) / sizeof(cupti_records[0]);
	double start, took;

	for (size_t i = 0; i < nr; i++)
		cupti_records[i] = (struct cupti_kernel){.kind = CUPTI_KIND_CONCURRENT_KERNEL,
							 .start = i + 1,
							 .end = i + 2,
							 .correlation = (uint32_t)i,
							 .name = names[i % NAMES]};
	start = seconds();
	for (size_t i = 0; i < RECORDS / nr; i++)
		cupti_records__read(&reader, (uint8_t *)cupti_records, sizeof(cupti_records));
	took = seconds() - start;
	printf("{\"records_per_s\": %.0f, \"ns\": %.1f}\n", RECORDS / took, took * 1e9 / RECORDS);
	return 0;
}

static int idle(void)
{
	const int times = 200000000;
	double start = seconds();

	for (int i = 0; i < times; i++)
		kprof_agent_batch(names, 8);
	printf("{\"ns\": %.2f}\n", (seconds() - start) * 1e9 / times);
	return 0;
}

static int serve(const char *library, const char *rate)
{
	void *lib = dlopen(library, RTLD_NOW);
	int (*run)(uint64_t);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run = (int (*)(uint64_t))dlsym(lib, "agent_serve");
	return run ? run(strtoull(rate, NULL, 10)) : 1;
}

int main(int argc, char *argv[])
{
	static struct kprof_agent_shm *shm;

	make_names();
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], argv[3]);
	if (argc >= 2 && !strcmp(argv[1], "idle"))
		return idle();
	/* The head of the memory file is asked for by the records' reader. */
	if (argc < 2 || kprof_agent_start() || !(shm = gpu_shm()))
		return 2;
	batch__open(1);
	if (!strcmp(argv[1], "parse"))
		return parse();
	return argc == 3 && !strcmp(argv[1], "append") ? append(atoi(argv[2])) : 2;
}
