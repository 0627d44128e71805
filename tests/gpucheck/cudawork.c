// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the CUDA programs of scripts/gpu-check do, on machines without a compiler: the driver by
 * dlopen, kernels as PTX, which the driver compiles. Every launch and copy is counted.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cudawork.h"

#define ITEMS_MAX (1 << 20)
#define BLOCK 256
#define IN_ROUND 3

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
			  /* Keeps the largest step of the clock that it saw in *step. */
			  ".visible .entry gpucheck_spin(.param .u64 ns, .param .u64 step)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .b64 %d<8>;\n"
			  "	ld.param.u64 %d0, [ns];\n"
			  "	ld.param.u64 %d4, [step];\n"
			  "	cvta.to.global.u64 %d7, %d4;\n"
			  "	mov.u64 %d5, 0;\n"
			  "	mov.u64 %d1, %globaltimer;\n"
			  "	mov.u64 %d3, %d1;\n"
			  "again:\n"
			  "	mov.u64 %d2, %globaltimer;\n"
			  "	sub.u64 %d6, %d2, %d3;\n"
			  "	mov.u64 %d3, %d2;\n"
			  "	max.u64 %d5, %d5, %d6;\n"
			  "	sub.u64 %d6, %d2, %d1;\n"
			  "	setp.lt.u64 %p, %d6, %d0;\n"
			  "	@%p bra again;\n"
			  "	st.global.u64 [%d7], %d5;\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry gpucheck_empty()\n"
			  "{\n"
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
	X(cuDevicePrimaryCtxReset_v2, (int))                                               \
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
	fprintf(stderr, "gpucheck: %s: CUDA error %d\n", what, result);
	exit(1);
}
#define OK(function, ...) ok(function(__VA_ARGS__), #function)

void cuda__open(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);

	if (!cuda) {
		fprintf(stderr, "gpucheck: %s\n", dlerror());
		exit(3);
	}
#define LOOK_UP(name, parameters)                                           \
	*(void **)&name = dlsym(cuda, #name);                               \
	if (!name) {                                                        \
		fprintf(stderr, "gpucheck: the driver has no " #name "\n"); \
		exit(3);                                                    \
	}
	FUNCTIONS(LOOK_UP)
}

struct work_counts work_done;

static handle add, spin, empty, context, stream, other, graph_exec;
static address data, copy, step;
static unsigned int items = ITEMS_MAX;
static float *host;

static void count(uint64_t *counter, uint64_t nr)
{
	__atomic_fetch_add(counter, nr, __ATOMIC_RELAXED);
}

static void launch_add(handle on)
{
	void *arguments[] = {&data, &items};

	OK(cuLaunchKernel, add, items / BLOCK, 1, 1, BLOCK, 1, 1, 0, on, arguments, NULL);
}

static void launch_spin(unsigned long long ns)
{
	void *arguments[] = {&ns, &step};

	OK(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, other, arguments, NULL);
	count(&work_done.spins, 1);
}

static size_t bytes(void)
{
	return items * sizeof(float);
}

static void make_graph(void)
{
	handle graph;

	OK(cuStreamBeginCapture_v2, stream, 1); /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
	for (int i = 0; i < WORK_IN_GRAPH; i++)
		launch_add(stream);
	OK(cuMemcpyDtoDAsync_v2, copy, data, bytes(), stream);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphInstantiateWithFlags, &graph_exec, graph, 0);
}

static void load_kernels(int device)
{
	const void *image = ptx;
	char name[128] = "";
	handle module;

	OK(cuDeviceGetName, name, sizeof(name), device);
	if (!strncmp(name, "Simulated GPU", 13)) {
		image = work_simulated_image();
		items = ITEMS_MAX / 64;
	}
	OK(cuModuleLoadData, &module, image);
	OK(cuModuleGetFunction, &add, module, "gpucheck_add");
	OK(cuModuleGetFunction, &spin, module, "gpucheck_spin");
	OK(cuModuleGetFunction, &empty, module, "gpucheck_empty");
}

void cuda__set_up(void)
{
	int device;

	host = calloc(ITEMS_MAX, sizeof(*host));
	OK(cuInit, 0);
	OK(cuDeviceGet, &device, 0);
	OK(cuDevicePrimaryCtxRetain, &context, device);
	OK(cuCtxSetCurrent, context);
	load_kernels(device);
	OK(cuMemAlloc_v2, &data, bytes());
	OK(cuMemAlloc_v2, &copy, bytes());
	OK(cuMemAlloc_v2, &step, sizeof(uint64_t));
	OK(cuStreamCreate, &stream, 1); /* CU_STREAM_NON_BLOCKING */
	OK(cuStreamCreate, &other, 1);
	make_graph();
}

bool cuda__round(void)
{
	float want = IN_ROUND + WORK_IN_GRAPH;

	for (unsigned int i = 0; i < items; i++)
		host[i] = 0;
	OK(cuMemsetD32Async, data, 0, items, stream);
	OK(cuMemcpyHtoDAsync_v2, data, host, bytes(), stream);
	for (int i = 0; i < IN_ROUND; i++)
		launch_add(stream);
	launch_spin(WORK_SPIN_NS);
	OK(cuGraphLaunch, graph_exec, stream);
	OK(cuMemcpyDtoHAsync_v2, host, copy, bytes(), stream);
	OK(cuStreamSynchronize, stream);
	OK(cuCtxSynchronize);
	count(&work_done.sets, 1);
	count(&work_done.to_device, 1);
	count(&work_done.adds, IN_ROUND + WORK_IN_GRAPH);
	count(&work_done.on_device, 1);
	count(&work_done.graphs, 1);
	count(&work_done.to_host, 1);
	return host[0] == want && host[items / 2] == want && host[items - 1] == want;
}

uint64_t cuda__timer_step_ns(void)
{
	static uint64_t ns;

	OK(cuMemcpyDtoHAsync_v2, &ns, step, sizeof(ns), stream);
	OK(cuStreamSynchronize, stream);
	count(&work_done.to_host, 1);
	return ns;
}

void cuda__spin(uint64_t ns)
{
	launch_spin(ns);
}

void cuda__wait(void)
{
	OK(cuCtxSynchronize);
}

void cuda__reset(void)
{
	int device;

	OK(cuDeviceGet, &device, 0);
	OK(cuDevicePrimaryCtxReset_v2, device);
}

void cuda__launch_empty(uint64_t nr, bool in_own_stream)
{
	handle on = stream;

	if (in_own_stream) {
		OK(cuCtxSetCurrent, context);
		OK(cuStreamCreate, &on, 1);
	}
	for (uint64_t i = 0; i < nr; i++)
		OK(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, on, NULL, NULL);
	count(&work_done.empties, nr);
}

void work_forget(void)
{
	memset(&work_done, 0, sizeof(work_done));
}

uint64_t work_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void work_print(FILE *out)
{
	const struct work_counts *c = &work_done;

	fprintf(out,
		"\"kernels\": {\"gpucheck_add\": %" PRIu64 ", \"gpucheck_spin\": %" PRIu64
		", \"gpucheck_empty\": %" PRIu64 "}, \"copies\": {\"HtoD\": %" PRIu64
		", \"DtoH\": %" PRIu64 ", \"DtoD\": %" PRIu64 "}, \"sets\": %" PRIu64
		", \"graphs\": %" PRIu64 ", \"in_graph\": %d, \"spin_ns\": %llu",
		c->adds, c->spins, c->empties, c->to_device, c->to_host, c->on_device, c->sets,
		c->graphs, WORK_IN_GRAPH, WORK_SPIN_NS);
}
