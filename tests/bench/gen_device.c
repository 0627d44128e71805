// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture of a training loop on a device that never was, for tests of what is made of such
 * captures and for measuring it. The same arguments give the same file.
 *
 *   gen_device [-p PROCESSES] [-s STREAMS] ACTIVITIES OUT.kprof
 *
 * A step: ProfilerStep#N around a copy to the device, operators that launch a kernel each (streams
 * in turn), a graph whose kernels overlap on one stream, a kernel that no operator launched, a set,
 * and a synchronization. The device reports a step's work at its end and backwards, as no real one
 * would be so rude. Kernels run longer than their launches take, so that a queue builds up until
 * the host waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/activity.h"
#include "store/store.h"
#include "util/util.h"

#define FIRST_PID 4242
#define START_MONO_NS (1000 * NSEC_PER_SEC)
#define START_REAL_NS (1790000000ull * NSEC_PER_SEC)
#define OPS 60 /* of a step */
#define GRAPH_KERNELS 4
#define FIRST_STREAM 7 /* CUDA's default one, in CUPTI's records */
#define MAX_PROCESSES 16
#define MAX_STREAMS 64

enum description { STEP, LINEAR, ADD, LAUNCH, COPY, SET, GRAPH, SYNC, NR_WHATS };

static const struct {
	const char *name, *category;
} descriptions[NR_WHATS] = {
	[STEP] = {NULL, "user_annotation"},
	[LINEAR] = {"aten::linear", "cpu_op"},
	[ADD] = {"aten::add", "cpu_op"},
	[LAUNCH] = {"cudaLaunchKernel", "cuda_runtime"},
	[COPY] = {"cudaMemcpyAsync", "cuda_runtime"},
	[SET] = {"cudaMemsetAsync", "cuda_runtime"},
	[GRAPH] = {"cudaGraphLaunch", "cuda_runtime"},
	[SYNC] = {"cudaDeviceSynchronize", "cuda_runtime"},
};

static const char *const kernels[] = {
	"_ZN2at6native29vectorized_elementwise_kernelILi4EfEEvi",
	"ampere_sgemm_128x64_tn",
	"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	"_ZN2at6native13reduce_kernelILi512ELi1EEEvv",
};

struct process {
	uint32_t pid;
	uint64_t now_ns, correlation;
	uint64_t free_ns[MAX_STREAMS]; /* when the stream has done what it has */
};

struct gen {
	struct store_writer *w;
	struct process processes[MAX_PROCESSES];
	uint32_t nr_processes, nr_streams;
	uint64_t activities, wanted, begun;
	uint32_t description[NR_WHATS], nr_whats, kernel[ARRAY_SIZE(kernels)];
	uint32_t grid, block, registers, shared, bytes, graph, cbid, kind;
	struct store_record held[256]; /* a step's activities */
	struct store_attr attrs[256][6];
	uint32_t nr_held;
	int err; /* the first */
};

static uint32_t string(struct gen *g, const char *text)
{
	return store_writer__string(g->w, text, strlen(text));
}

static void put(struct gen *g, struct store_record r)
{
	int err = store_writer__put(g->w, &r);

	if (err && !g->err)
		g->err = err;
}

static uint32_t new_what(struct gen *g, const char *name, const char *category)
{
	put(g, (struct store_record){STORE_DESCRIPTION,
				     .description = {.id = ++g->nr_whats,
						     .name = string(g, name),
						     .category = string(g, category)}});
	return g->nr_whats;
}

static void meta(struct gen *g, const char *key, const char *json)
{
	put(g, (struct store_record){STORE_META, .meta = {key, json}});
}

/* ---- tables ---- */

static void describe_process(struct gen *g, uint32_t i)
{
	struct process *p = &g->processes[i];
	char key[64], json[512];

	p->pid = FIRST_PID + i * 10;
	p->now_ns = START_MONO_NS + 1000;
	put(g, (struct store_record){STORE_PROCESS,
				     .process = {.pid = p->pid,
						 .ppid = 1,
						 .comm = string(g, "python3"),
						 .cmdline = string(g, "python3 train.py"),
						 .start_ns = START_MONO_NS}});
	put(g, (struct store_record){STORE_THREAD, .thread = {.index = i,
							      .pid = p->pid,
							      .tid = p->pid,
							      .name = string(g, "python3"),
							      .start_ns = START_MONO_NS}});
	snprintf(key, sizeof(key), "device.%u.0", p->pid);
	snprintf(json, sizeof(json),
		 "{\"id\": 0, \"name\": \"Imagined A100\", \"totalGlobalMem\": 42297524224, "
		 "\"computeMajor\": 8, \"computeMinor\": 0, \"maxThreadsPerBlock\": 1024, "
		 "\"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, "
		 "\"regsPerMultiprocessor\": 65536, \"warpSize\": 32, "
		 "\"sharedMemPerBlock\": 49152, \"sharedMemPerMultiprocessor\": 167936, "
		 "\"numSms\": 108, \"sharedMemPerBlockOptin\": 166912}");
	meta(g, key, json);
	snprintf(key, sizeof(key), "context.%u.1", p->pid);
	meta(g, key, "{\"device\": 0, \"nullStream\": 7}");
}

static void tables(struct gen *g)
{
	meta(g, "host", "\"bench\"");
	meta(g, "version", "\"0\"");
	meta(g, "cupti_version", "26");
	put(g, (struct store_record){STORE_CLOCK, .clock = {START_MONO_NS, START_REAL_NS}});
	put(g, (struct store_record){STORE_SOURCE, .source = {.name = string(g, "operators")}});
	for (uint32_t i = 0; i < g->nr_processes; i++)
		describe_process(g, i);
	for (int i = 0; i < NR_WHATS; i++)
		if (descriptions[i].name)
			g->description[i] =
				new_what(g, descriptions[i].name, descriptions[i].category);
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		g->kernel[i] = string(g, kernels[i]);
	g->grid = string(g, "grid");
	g->block = string(g, "block");
	g->registers = string(g, "registers per thread");
	g->shared = string(g, "shared memory");
	g->bytes = string(g, "bytes");
	g->graph = string(g, "graph id");
	g->cbid = string(g, "cbid");
	g->kind = string(g, "cuda_sync_kind");
}

/* ---- the host ---- */

static void begin(struct gen *g, uint32_t process, uint32_t description, uint64_t after_ns)
{
	g->processes[process].now_ns += after_ns;
	g->begun++;
	put(g, (struct store_record){
		       STORE_BEGIN, .begin = {g->processes[process].now_ns, process, description}});
}

static void end(struct gen *g, uint32_t process, uint64_t after_ns)
{
	g->processes[process].now_ns += after_ns;
	put(g, (struct store_record){STORE_END, .end = {g->processes[process].now_ns, process, 0}});
}

/* A call's span, with the device's own record of it inside. Returns when the record began. */
static uint64_t call(struct gen *g, uint32_t process, enum description description,
		     uint64_t takes_ns)
{
	struct process *p = &g->processes[process];
	struct store_attr cbid = {g->cbid, STORE_ATTR_U64, 200 + description};
	uint64_t start_ns;

	begin(g, process, g->description[description], 300);
	start_ns = p->now_ns + 50;
	p->correlation++;
	put(g, (struct store_record){
		       STORE_API,
		       .api = {.thread = process,
			       .type = KPROF_ACTIVITY_CUDA_RUNTIME,
			       .name = string(g, descriptions[description].name),
			       .start_ns = start_ns,
			       .end_ns = p->now_ns + takes_ns - 50,
			       .correlation = p->correlation},
		       .attrs = &cbid,
		       .nr_attrs = 1,
	       });
	end(g, process, takes_ns);
	return start_ns;
}

/* ---- the device ---- */

static struct store_record *hold(struct gen *g, uint32_t process, enum kprof_activity type,
				 uint32_t name, uint32_t stream, uint64_t start_ns, uint64_t end_ns)
{
	struct store_record *r = &g->held[g->nr_held];

	*r = (struct store_record){
		STORE_ACTIVITY,
		.activity = {.pid = g->processes[process].pid,
			     .type = type,
			     .name = name,
			     .context = 1,
			     .stream = FIRST_STREAM + stream,
			     .start_ns = start_ns,
			     .end_ns = end_ns,
			     .correlation = g->processes[process].correlation},
		.attrs = g->attrs[g->nr_held],
	};
	g->nr_held++;
	return r;
}

static void attr(struct gen *g, struct store_record *r, uint32_t key, enum store_attr_type type,
		 uint64_t value)
{
	g->attrs[r - g->held][r->nr_attrs++] = (struct store_attr){key, type, value};
}

static void kernel(struct gen *g, uint32_t process, uint32_t which, uint32_t stream,
		   uint64_t start_ns, uint64_t end_ns)
{
	struct store_record *r =
		hold(g, process, KPROF_ACTIVITY_KERNEL, g->kernel[which % ARRAY_SIZE(kernels)],
		     stream, start_ns, end_ns);

	attr(g, r, g->grid, STORE_ATTR_DIM3, 864 | 1ull << 32 | 1ull << 48);
	attr(g, r, g->block, STORE_ATTR_DIM3, 256 | 1ull << 32 | 1ull << 48);
	attr(g, r, g->registers, STORE_ATTR_U64, 47);
	attr(g, r, g->shared, STORE_ATTR_U64, 0);
}

/* Runs work on a stream: after what the stream has to do already. Returns its start. */
static uint64_t run(struct gen *g, uint32_t process, uint32_t stream, uint64_t from_ns,
		    uint64_t takes_ns)
{
	uint64_t *free_ns = &g->processes[process].free_ns[stream];
	uint64_t start_ns = *free_ns > from_ns + 4000 ? *free_ns + 200 : from_ns + 4000;

	*free_ns = start_ns + takes_ns;
	return start_ns;
}

static void copy(struct gen *g, uint32_t process, enum description description, uint32_t stream)
{
	uint64_t call_ns = call(g, process, description, 2500);
	uint64_t start_ns = run(g, process, stream, call_ns, 8000);
	struct store_record *r =
		hold(g, process,
		     description == SET ? KPROF_ACTIVITY_GPU_MEMSET : KPROF_ACTIVITY_GPU_MEMCPY,
		     string(g, description == SET ? "Memset (Device)"
						  : "Memcpy HtoD (Pinned -> Device)"),
		     stream, start_ns, start_ns + 8000);

	attr(g, r, g->bytes, STORE_ATTR_U64, 92928);
}

static void launch(struct gen *g, uint32_t process, uint32_t which)
{
	uint32_t stream = which % g->nr_streams;
	uint64_t takes_ns = 6000 + which % 7 * 500;
	uint64_t start_ns = run(g, process, stream, call(g, process, LAUNCH, 3000), takes_ns);

	kernel(g, process, which, stream, start_ns, start_ns + takes_ns);
}

/* Two by two beside each other, all reported on the stream that the graph was launched into. */
static void graph(struct gen *g, uint32_t process)
{
	uint64_t start_ns = run(g, process, 0, call(g, process, GRAPH, 5000), 14000);

	for (uint32_t i = 0; i < GRAPH_KERNELS; i++) {
		uint64_t at_ns = start_ns + i / 2 * 7000 + i % 2 * 500;

		kernel(g, process, i, 0, at_ns, at_ns + 6000);
		attr(g, &g->held[g->nr_held - 1], g->graph, STORE_ATTR_U64, 3);
	}
}

static void synchronize(struct gen *g, uint32_t process)
{
	struct process *p = &g->processes[process];
	uint64_t done_ns = p->now_ns, start_ns = p->now_ns + 300;
	struct store_record *r;
	uint32_t kind = string(g, "Context Sync");

	for (uint32_t i = 0; i < g->nr_streams; i++)
		if (p->free_ns[i] > done_ns)
			done_ns = p->free_ns[i];
	call(g, process, SYNC, done_ns - p->now_ns + 1000);
	r = hold(g, process, KPROF_ACTIVITY_CUDA_SYNC, kind, UINT32_MAX - FIRST_STREAM,
		 start_ns + 200, done_ns + 500);
	attr(g, r, g->kind, STORE_ATTR_STRING, kind);
}

static void step(struct gen *g, uint32_t process, uint64_t number)
{
	char name[64];

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)number);
	begin(g, process, new_what(g, name, "user_annotation"), 1000);
	copy(g, process, COPY, 0);
	for (uint32_t i = 0; i < OPS; i++) {
		begin(g, process, g->description[i % 3 ? ADD : LINEAR], 700);
		launch(g, process, i);
		end(g, process, 400);
	}
	graph(g, process);
	copy(g, process, SET, 0);
	synchronize(g, process);
	end(g, process, 500);
	begin(g, process, g->description[ADD],
	      20000); /* time in which the device has nothing to do */
	end(g, process, 9000);
	launch(g, process, 1);
	g->activities += g->nr_held;
	while (g->nr_held)
		put(g, g->held[--g->nr_held]);
}

static int generate(struct gen *g)
{
	tables(g);
	for (uint64_t i = 2; !g->err && g->activities < g->wanted; i++)
		for (uint32_t p = 0; p < g->nr_processes; p++)
			step(g, p, i);
	put(g, (struct store_record){STORE_SOURCE, .source = {.name = string(g, "operators"),
							      .fired = g->begun,
							      .captured = g->begun,
							      .begins = g->begun,
							      .ends_exact = g->begun}});
	return g->err;
}

static uint64_t last_ns(const struct gen *g)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < g->nr_processes; i++) {
		const struct process *p = &g->processes[i];

		last = p->now_ns > last ? p->now_ns : last;
		for (uint32_t s = 0; s < g->nr_streams; s++)
			last = p->free_ns[s] > last ? p->free_ns[s] : last;
	}
	return last + 1000;
}

int main(int argc, char **argv)
{
	static struct gen g = {.nr_processes = 1, .nr_streams = 2};
	int err, opt;

	while ((opt = getopt(argc, argv, "p:s:")) != -1) {
		if (opt == 'p')
			g.nr_processes = (uint32_t)atoi(optarg);
		else if (opt == 's')
			g.nr_streams = (uint32_t)atoi(optarg);
		else
			return 2;
	}
	if (argc - optind != 2 || !(g.wanted = strtoull(argv[optind], NULL, 0)) ||
	    !g.nr_processes || g.nr_processes > MAX_PROCESSES || !g.nr_streams ||
	    g.nr_streams > MAX_STREAMS) {
		fprintf(stderr,
			"usage: gen_device [-p PROCESSES] [-s STREAMS] ACTIVITIES OUT.kprof\n");
		return 2;
	}
	err = store_writer__open(argv[optind + 1], &(struct outfile_opts){0}, &g.w);
	if (!err) {
		err = generate(&g);
		if (err)
			store_writer__discard(g.w);
		else
			err = store_writer__finish(g.w, last_ns(&g));
	}
	if (err)
		fprintf(stderr, "gen_device: %s (%s)\n", kprof_error_cause(), strerror(-err));
	return err ? 1 : 0;
}
