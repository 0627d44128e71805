// SPDX-License-Identifier: BSD-2-Clause
/*
 * kprof's half of the batch path: from an agent's bytes to chunks of the capture, in one process,
 * without ring and target.
 *
 *   batch_bench [millions of launches] [file]
 *
 * "kernel": the kernels of a training loop, as many as fit into each batch: steps of 400 launches
 * of 60 kernels on three streams, the same each step but for times. "launch": each with the record
 * of the call that launched it, in batches of their own, as CUPTI hands them over. Written to
 * /dev/null unless a file is named. Prints "name value unit" lines, medians of 5 interleaved runs:
 * millions of records per second of wall-clock time, ns of processor time (all threads) each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/agent/records.h"
#include "kprof.h"
#include "kprof/activity.h"
#include "kprof/agent.h"
#include "util/util.h"

enum { RUNS = 5, KERNELS = 60, LAUNCHES = 400 };
enum shape { KERNEL, LAUNCH, SHAPES };
static const char *const shape_names[] = {"kernel", "launch"};

struct batch {
	uint32_t used;
	uint8_t data[KPROF_WIRE_BATCH_BYTES];
};

struct batches {
	struct batch *list;
	size_t nr, cap;
};

static struct launch {
	struct kprof_agent_kernel kernel;
	uint32_t duration_ns, pause_ns, call_ns;
} step[LAUNCHES];

static uint64_t random_state = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 33) % n;
}

static void make_step(void)
{
	struct kprof_agent_kernel kernels[KERNELS];

	for (uint32_t i = 0; i < KERNELS; i++)
		kernels[i] = (struct kprof_agent_kernel){
			.a = {.h = {KPROF_AGENT_KERNEL, sizeof(kernels[i]), 1 + i},
			      .type = KPROF_ACTIVITY_KERNEL,
			      .context = 1},
			.grid = {1 + below(20000), 1, 1},
			.block = {32 * (2 + below(31)), 1, 1},
			.static_shared_bytes = below(48) * 1024,
			.registers = (uint16_t)(16 + below(200)),
			.shared_config_bytes = 102400,
		};
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		step[i].kernel = kernels[below(KERNELS)];
		step[i].kernel.a.stream = below(10) ? 7 : 7 + below(3);
		step[i].duration_ns = 1500 + below(100000);
		step[i].pause_ns = 800 + below(3000);
		step[i].call_ns = 3000 + below(3000);
	}
}

/* A batch ends where the next record would not fit, as the agent's do. */
static void append(struct batches *b, const void *record)
{
	const struct kprof_agent_head *h = record;
	struct batch *last = b->nr ? &b->list[b->nr - 1] : NULL;

	if (!last || last->used + h->size > sizeof(last->data)) {
		if (vec_grow((void **)&b->list, &b->cap, b->nr, sizeof(*b->list)))
			exit(1);
		last = &b->list[b->nr++];
		last->used = 0;
	}
	memcpy(last->data + last->used, record, h->size);
	last->used += h->size;
}

static void append_names(struct batches *b)
{
	union {
		struct kprof_agent_name name;
		uint8_t bytes[128];
	} e;

	for (uint32_t i = 0; i < KERNELS + 1; i++) {
		memset(&e, 0, sizeof(e));
		e.name.h = (struct kprof_agent_head){KPROF_AGENT_NAME, sizeof(e), 1 + i};
		e.name.bytes = (uint32_t)snprintf(
			(char *)e.bytes + offsetof(struct kprof_agent_name, text), 100,
			"_ZN2at6native27vectorized_kernel_number_%u", i);
		append(b, &e);
	}
}

/* Times vary by a sixteenth from step to step. */
static uint32_t jitter(uint32_t ns)
{
	return ns + below(ns / 16 + 1);
}

static void make_batches(struct batches *kernels, struct batches *calls, size_t launches)
{
	uint64_t gpu_ns = 1000000000000, host_ns = gpu_ns - 1000000;

	append_names(kernels);
	for (size_t i = 0; i < launches; i++) {
		const struct launch *l = &step[i % LAUNCHES];
		struct kprof_agent_kernel k = l->kernel;
		struct kprof_agent_api call = {
			.h = {KPROF_AGENT_API, sizeof(call), KERNELS + 1},
			.start_ns = host_ns,
			.end_ns = host_ns + jitter(l->call_ns),
			.correlation = 1 + 3 * i,
			.tid = 1,
			.cbid = 211,
			.type = KPROF_ACTIVITY_CUDA_RUNTIME,
		};

		k.a.start_ns = gpu_ns + jitter(l->pause_ns);
		k.a.end_ns = gpu_ns = k.a.start_ns + jitter(l->duration_ns);
		k.a.correlation = call.correlation;
		host_ns = call.end_ns + jitter(l->pause_ns);
		append(kernels, &k);
		append(calls, &call);
	}
}

static int thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index)
{
	*index = 0;
	return 0;
}

struct took {
	double wall_s, cpu_s;
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int feed(struct agent_records *r, const struct batches *kernels, const struct batches *calls)
{
	int err = 0;

	for (size_t i = 0; i < kernels->nr && !err; i++) {
		size_t from = i * calls->nr / kernels->nr, to = (i + 1) * calls->nr / kernels->nr;

		for (; from < to && !err; from++)
			err = agent_records__batch(r, calls->list[from].data,
						   calls->list[from].used);
		if (!err)
			err = agent_records__batch(r, kernels->list[i].data, kernels->list[i].used);
	}
	return err;
}

static int once(const char *path, const struct batches *kernels, const struct batches *calls,
		struct took *took)
{
	const struct agent_records_ops ops = {.thread = thread};
	const struct store_record th = {.type = STORE_THREAD};
	struct agent_records *records = NULL;
	struct store_writer *store;
	int err = store_writer__open(path, NULL, &store);

	if (err)
		return err;
	took->wall_s = seconds(CLOCK_MONOTONIC);
	took->cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
	err = store_writer__put(store, &th);
	if (!err)
		err = agent_records__new(store, 1, &ops, &records);
	if (!err)
		err = feed(records, kernels, calls);
	if (!err)
		err = store_writer__flush(store);
	took->wall_s = seconds(CLOCK_MONOTONIC) - took->wall_s;
	took->cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - took->cpu_s;
	agent_records__free(records);
	if (!err)
		return store_writer__finish(store, 1);
	store_writer__discard(store);
	return err;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double millions = argc > 1 ? strtod(argv[1], NULL) : 1, wall[SHAPES][RUNS],
	       cpu[SHAPES][RUNS];
	struct batches kernels = {0}, calls = {0}, none = {0};
	const char *path = argc > 2 ? argv[2] : "/dev/null";
	size_t launches = (size_t)(millions * 1e6);
	int err = 0;

	if (!(millions > 0 && millions <= 20)) {
		fprintf(stderr, "usage: batch_bench [millions of launches, up to 20] [file]\n");
		return 2;
	}
	make_step();
	make_batches(&kernels, &calls, launches);
	for (int i = 0; i < RUNS && !err; i++)
		for (int shape = 0; shape < SHAPES && !err; shape++) {
			double records = (double)launches * (shape == LAUNCH ? 2 : 1);
			struct took took = {0};

			err = once(path, &kernels, shape == LAUNCH ? &calls : &none, &took);
			wall[shape][i] = records / took.wall_s / 1e6;
			cpu[shape][i] = took.cpu_s * 1e9 / records;
		}
	if (err)
		fprintf(stderr, "batch_bench: %s\n", kprof_error_cause());
	for (int shape = 0; shape < SHAPES && !err; shape++) {
		qsort(wall[shape], RUNS, sizeof(wall[0][0]), by_value);
		qsort(cpu[shape], RUNS, sizeof(cpu[0][0]), by_value);
		printf("batch_%s %.2f Mrecords/s\n", shape_names[shape], wall[shape][RUNS / 2]);
		printf("batch_%s_cpu %.1f ns\n", shape_names[shape], cpu[shape][RUNS / 2]);
	}
	free(kernels.list);
	free(calls.list);
	return err ? 1 : 0;
}
