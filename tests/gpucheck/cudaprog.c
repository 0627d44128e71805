// SPDX-License-Identifier: BSD-2-Clause
/*
 * A CUDA program for machines without a compiler: the driver by dlopen, kernels as PTX, which the
 * driver compiles.
 *
 *   cudaprog [--n N] [--now] [--linger]
 *
 * Each of N rounds: copies, a set, kernels on two streams, a graph of kernels and a copy. Speaks
 * the protocol of tests/workloads/protocol.py; its line of JSON says what it launched, and whether
 * the sums came out right.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ITEMS (1 << 20)
#define BYTES (ITEMS * sizeof(float))
#define BLOCK 256
#define SPIN_NS 50000ull
#define IN_GRAPH 4 /* kernels */
#define IN_ROUND 3
#define WARM_UP 3

static const char ptx[] = ".version 6.4\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry gpucheck_add(.param .u64 data, .param .u32 nr)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .f32 %f<2>;\n"
			  "	.reg .b64 %d<4>;\n"
			  "	ld.param.u64 %d0, [data];\n"
			  "	ld.param.u32 %r0, [nr];\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.s32 %r4, %r1, %r2, %r3;\n"
			  "	setp.ge.u32 %p, %r4, %r0;\n"
			  "	@%p bra done;\n"
			  "	cvta.to.global.u64 %d1, %d0;\n"
			  "	mul.wide.u32 %d2, %r4, 4;\n"
			  "	add.s64 %d3, %d1, %d2;\n"
			  "	ld.global.f32 %f0, [%d3];\n"
			  "	add.f32 %f1, %f0, 0f3F800000;\n" /* 1.0 */
			  "	st.global.f32 [%d3], %f1;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry gpucheck_spin(.param .u64 ns)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .b64 %d<4>;\n"
			  "	ld.param.u64 %d0, [ns];\n"
			  "	mov.u64 %d1, %globaltimer;\n"
			  "again:\n"
			  "	mov.u64 %d2, %globaltimer;\n"
			  "	sub.u64 %d3, %d2, %d1;\n"
			  "	setp.lt.u64 %p, %d3, %d0;\n"
			  "	@%p bra again;\n"
			  "	ret;\n"
			  "}\n";

typedef void *handle;
typedef unsigned long long address;

/* What it uses of the driver; signatures after cuda.h. */
#define FUNCTIONS(X)                                                                       \
	X(cuInit, (unsigned int))                                                          \
	X(cuDeviceGet, (int *, int))                                                       \
	X(cuDeviceGetName, (char *, int, int))                                             \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                                       \
	X(cuCtxSetCurrent, (handle))                                                       \
	X(cuCtxSynchronize, (void))                                                        \
	X(cuModuleLoadData, (handle *, const void *))                                      \
	X(cuModuleGetFunction, (handle *, handle, const char *))                           \
	X(cuMemAlloc_v2, (address *, size_t))                                              \
	X(cuStreamCreate, (handle *, unsigned int))                                        \
	X(cuStreamSynchronize, (handle))                                                   \
	X(cuStreamBeginCapture_v2, (handle, int))                                          \
	X(cuStreamEndCapture, (handle, handle *))                                          \
	X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))             \
	X(cuGraphLaunch, (handle, handle))                                                 \
	X(cuMemcpyHtoDAsync_v2, (address, const void *, size_t, handle))                   \
	X(cuMemcpyDtoHAsync_v2, (void *, address, size_t, handle))                         \
	X(cuMemcpyDtoDAsync_v2, (address, address, size_t, handle))                        \
	X(cuMemsetD32Async, (address, unsigned int, size_t, handle))                       \
	X(cuLaunchKernel, (handle, unsigned int, unsigned int, unsigned int, unsigned int, \
			   unsigned int, unsigned int, unsigned int, handle, void **, void **))

#define DECLARE(name, parameters) static int(*name) parameters;
FUNCTIONS(DECLARE)

static void ok(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "cudaprog: %s: CUDA error %d\n", what, result);
	exit(1);
}
#define OK(function, ...) ok(function(__VA_ARGS__), #function)

static void open_driver(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);

	if (!cuda) {
		fprintf(stderr, "cudaprog: %s\n", dlerror());
		exit(3);
	}
#define LOOK_UP(name, parameters)                                           \
	*(void **)&name = dlsym(cuda, #name);                               \
	if (!name) {                                                        \
		fprintf(stderr, "cudaprog: the driver has no " #name "\n"); \
		exit(3);                                                    \
	}
	FUNCTIONS(LOOK_UP)
}

static handle add, spin, stream, other, graph_exec;
static address data, copy;
static uint64_t adds, spins, to_device, to_host, on_device, sets, graphs;

static void launch_add(handle on)
{
	unsigned int nr = ITEMS;
	void *arguments[] = {&data, &nr};

	OK(cuLaunchKernel, add, ITEMS / BLOCK, 1, 1, BLOCK, 1, 1, 0, on, arguments, NULL);
}

static void make_graph(void)
{
	handle graph;

	OK(cuStreamBeginCapture_v2, stream, 1); /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
	for (int i = 0; i < IN_GRAPH; i++)
		launch_add(stream);
	OK(cuMemcpyDtoDAsync_v2, copy, data, BYTES, stream);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphInstantiateWithFlags, &graph_exec, graph, 0);
}

static void set_up(void)
{
	handle context, module;
	int device;

	OK(cuInit, 0);
	OK(cuDeviceGet, &device, 0);
	OK(cuDevicePrimaryCtxRetain, &context, device);
	OK(cuCtxSetCurrent, context);
	OK(cuModuleLoadData, &module, ptx);
	OK(cuModuleGetFunction, &add, module, "gpucheck_add");
	OK(cuModuleGetFunction, &spin, module, "gpucheck_spin");
	OK(cuMemAlloc_v2, &data, BYTES);
	OK(cuMemAlloc_v2, &copy, BYTES);
	OK(cuStreamCreate, &stream, 1); /* CU_STREAM_NON_BLOCKING */
	OK(cuStreamCreate, &other, 1);
	make_graph();
}

/* true: every number is what plain arithmetic gives. */
static bool one_round(float *host)
{
	unsigned long long ns = SPIN_NS;
	void *arguments[] = {&ns};
	float want = IN_ROUND + IN_GRAPH;

	for (int i = 0; i < ITEMS; i++)
		host[i] = 0;
	OK(cuMemsetD32Async, data, 0, ITEMS, stream);
	OK(cuMemcpyHtoDAsync_v2, data, host, BYTES, stream);
	for (int i = 0; i < IN_ROUND; i++)
		launch_add(stream);
	OK(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, other, arguments, NULL);
	OK(cuGraphLaunch, graph_exec, stream);
	OK(cuMemcpyDtoHAsync_v2, host, copy, BYTES, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuCtxSynchronize);
	sets++;
	to_device++;
	adds += IN_ROUND + IN_GRAPH;
	spins++;
	on_device++;
	graphs++;
	to_host++;
	return host[0] == want && host[ITEMS / 2] == want && host[ITEMS - 1] == want;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	bool now = false, linger = false, right = true;
	uint64_t n = 50, begin;
	float *host = calloc(ITEMS, sizeof(*host));
	char line[16];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--n") && i + 1 < argc)
			n = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--now"))
			now = true;
		else if (!strcmp(argv[i], "--linger"))
			linger = true;
		else
			return 2;
	}
	open_driver();
	set_up();
	/* By run, these are recorded, too: they are counted then. */
	for (int i = 0; i < WARM_UP; i++)
		right = one_round(host) && right;
	if (!now)
		adds = spins = to_device = to_host = on_device = sets = graphs = 0;
	printf("READY %d\n", getpid());
	fflush(stdout);
	if (!now && !fgets(line, sizeof(line), stdin))
		return 9;
	begin = now_ns();
	for (uint64_t i = 0; i < n; i++)
		right = one_round(host) && right;
	printf("{\"workload\": \"cudaprog\", \"pid\": %d, \"right\": %s, \"loop_ns\": %" PRIu64
	       ", \"kernels\": {\"gpucheck_add\": %" PRIu64 ", \"gpucheck_spin\": %" PRIu64
	       "}, \"copies\": {\"HtoD\": %" PRIu64 ", \"DtoH\": %" PRIu64 ", \"DtoD\": %" PRIu64
	       "}, \"sets\": %" PRIu64 ", \"graphs\": %" PRIu64 ", \"spin_ns\": %llu}\n",
	       getpid(), right ? "true" : "false", now_ns() - begin, adds, spins, to_device,
	       to_host, on_device, sets, graphs, SPIN_NS);
	fflush(stdout);
	if (linger)
		fgets(line, sizeof(line), stdin);
	return right ? 0 : 1;
}
