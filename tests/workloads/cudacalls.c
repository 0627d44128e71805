// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target that calls CUDA's runtime and driver, on the simulated ones of tests/sim, and says what
 * it has called: a line of JSON with the calls in order, their arguments and errors as they must be
 * told. Of more than 100 rounds only the last one's. The first calls ("settled") are made with
 * pauses. The protocol is that of protocol.py.
 *
 *   cudacalls MODE [--rounds N] [--linger]
 *     runtime     the runtime's calls         per-thread  those of them that have a twin for
 *                 per-thread streams
 *     driver      the driver's calls          errors      calls that fail
 *     launches    launches, nothing else      queries     the cheapest call, nothing else
 *     other       a call of two copies of the runtime: the second is opened from $CUDACALLS_OTHER
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda_driver.h"
#include "sim/cuda_runtime.h"
#include "workloads/settle.h"

#define NR(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_TOLD_ROUNDS 100
#define BYTES 4096

/* ---- kernels, as compilers leave them in a program ---- */

/* Host stubs; each must be a place of its own. What it is told as stands beside it. */
#define STUB(id, symbol)                                         \
	__attribute__((noinline)) void id(void) __asm__(symbol); \
	void id(void)                                            \
	{                                                        \
		__asm__ volatile("" ::"i"(__COUNTER__));         \
		fputs("", stdout);                               \
	}
STUB(stub_plain, "fill_kernel")                     /* fill_kernel */
STUB(stub_mangled, "_Z5scalePfi")                   /* scale(float*, int) */
STUB(stub_clang, "_ZN2nn20__device_stub__shiftEPf") /* nn::shift(float*) */
STUB(stub_slow, "slow_kernel")                      /* busy for longer than it takes to ask */
STUB(stub_nvcc, "_ZL23__device_stub__Z4foldPfPf")   /* fold(float*) */
static const struct {
	void (*host)(void);
	const char *name, *told;
} kernels[] = {
	{stub_plain, "fill_kernel", "fill_kernel"},
	{stub_mangled, "_Z5scalePfi", "scale(float*, int)"},
	{stub_clang, "_ZN2nn5shiftEPf", "nn::shift(float*)"},
	{stub_nvcc, "_Z4foldPf", "fold(float*)"},
	{stub_slow, "slow_kernel", "slow_kernel"},
};
#define NR_QUICK (NR(kernels) - 1)
#define SLOW_NS 50000000

static struct sim_kernel_desc descriptions[NR(kernels)];
static struct sim_image image = {SIM_IMAGE_MAGIC, NR(kernels), descriptions};

static void register_kernels(void)
{
	static struct sim_fatbin fatbin = {SIM_FATBIN_MAGIC, 1, &image, NULL};
	void **handle;

	for (size_t i = 0; i < NR(kernels); i++) {
		descriptions[i].name = kernels[i].name;
		descriptions[i].fixed_ns = i < NR_QUICK ? 1000 : SLOW_NS;
	}
	handle = __cudaRegisterFatBinary(&fatbin);
	for (size_t i = 0; i < NR(kernels); i++)
		__cudaRegisterFunction(handle, (const char *)kernels[i].host, NULL, kernels[i].name,
				       -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

/* ---- what was called ---- */

static FILE *telling; /* NULL: this round is not told */
static unsigned long told, settled;

/* A call, its arguments as JSON members, and the error that it must be told with; NULL: none. */
__attribute__((format(printf, 3, 4))) static void say(const char *name, const char *error,
						      const char *args, ...)
{
	va_list ap;

	if (!telling)
		return;
	fprintf(telling, "%s{\"name\":\"%s\",\"args\":{", told ? "," : "", name);
	va_start(ap, args);
	vfprintf(telling, args, ap);
	va_end(ap);
	if (error)
		fprintf(telling, "},\"error\":\"%s\"}", error);
	else
		fprintf(telling, "}}");
	told++;
}

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	exit(3);
}

/* Calls, and stops unless it gives 0: a compiler that ignored the result might keep it from us. */
#define DO(call) must((call), #call)

#define STREAM "\"stream handle\":\"%#lx\""
#define HEX(p) ((unsigned long)(p))

/* ---- the rounds ---- */

static cudaStream_t stream;
static cudaEvent_t event;
static void *device, *host;

static void prepare(void)
{
	register_kernels();
	DO(cudaStreamCreate(&stream));
	DO(cudaEventCreate(&event));
	DO(cudaMalloc(&device, BYTES));
	host = malloc(BYTES);
	if (!host)
		abort();
	memset(host, 0, BYTES);
}

static void launch_round(void)
{
	struct sim_launch_config config = {
		.grid = {9, 8, 7}, .block = {6, 5, 4}, .dynamic_shared = 96, .stream = stream};
	int value = 0, *args[] = {&value, &value};

	for (size_t i = 0; i < NR_QUICK; i++) {
		DO(cudaLaunchKernel((const void *)kernels[i].host, (dim3){1000000, 2, 3},
				    (dim3){32, 4, (unsigned)i + 1}, (void **)args, 128 * i,
				    stream));
		say("cudaLaunchKernel", NULL,
		    "\"kernel\":\"%s\",\"grid\":[1000000,2,3],\"block\":[32,4,%zu],"
		    "\"shared memory\":%zu," STREAM,
		    kernels[i].told, i + 1, 128 * i, HEX(stream));
	}
	DO(cudaLaunchKernelExC(&config, (const void *)stub_mangled, (void **)args));
	say("cudaLaunchKernelExC", NULL,
	    "\"kernel\":\"scale(float*, int)\",\"grid\":[9,8,7],\"block\":[6,5,4],"
	    "\"shared memory\":96," STREAM,
	    HEX(stream));
	DO(cudaLaunchCooperativeKernel((const void *)stub_plain, (dim3){2, 1, 1}, (dim3){64, 1, 1},
				       (void **)args, 0, NULL));
	say("cudaLaunchCooperativeKernel", NULL,
	    "\"kernel\":\"fill_kernel\",\"grid\":[2,1,1],\"block\":[64,1,1],\"shared memory\":0,"
	    "\"stream handle\":\"0x0\"");
}

static void copy_round(void)
{
	DO(cudaMemcpy(device, host, 1024, 1));
	say("cudaMemcpy", NULL, "\"bytes\":1024,\"kind\":\"HtoD\"");
	DO(cudaMemcpyAsync(host, device, 2048, 2, stream));
	say("cudaMemcpyAsync", NULL, "\"bytes\":2048,\"kind\":\"DtoH\"," STREAM, HEX(stream));
	DO(cudaMemset(device, 1, 77));
	say("cudaMemset", NULL, "\"bytes\":77");
	DO(cudaMemsetAsync(device, 2, 78, stream));
	say("cudaMemsetAsync", NULL, "\"bytes\":78," STREAM, HEX(stream));
}

static void wait_round(void)
{
	DO(cudaEventRecord(event, stream));
	say("cudaEventRecord", NULL, "\"event handle\":\"%#lx\"," STREAM, HEX(event), HEX(stream));
	DO(cudaStreamWaitEvent(stream, event, 0));
	say("cudaStreamWaitEvent", NULL, "\"event handle\":\"%#lx\"," STREAM, HEX(event),
	    HEX(stream));
	DO(cudaEventSynchronize(event));
	say("cudaEventSynchronize", NULL, "\"event handle\":\"%#lx\"", HEX(event));
	DO(cudaStreamSynchronize(stream));
	say("cudaStreamSynchronize", NULL, STREAM, HEX(stream));
	DO(cudaStreamQuery(stream));
	say("cudaStreamQuery", NULL, STREAM, HEX(stream));
	DO(cudaDeviceSynchronize());
	say("cudaDeviceSynchronize", NULL, " ");
}

static void graph_round(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int value = 0, *args[] = {&value};

	DO(cudaStreamBeginCapture(stream, 0));
	say("cudaStreamBeginCapture", NULL, STREAM, HEX(stream));
	DO(cudaLaunchKernel((const void *)stub_plain, (dim3){1, 1, 1}, (dim3){1, 1, 1},
			    (void **)args, 0, stream));
	say("cudaLaunchKernel", NULL, "\"kernel\":\"fill_kernel\"," STREAM, HEX(stream));
	DO(cudaStreamEndCapture(stream, &graph));
	say("cudaStreamEndCapture", NULL, STREAM, HEX(stream));
	DO(cudaGraphInstantiate(&exec, graph, 0));
	say("cudaGraphInstantiate", NULL, "\"graph handle\":\"%#lx\"", HEX(graph));
	DO(cudaGraphLaunch(exec, stream));
	say("cudaGraphLaunch", NULL, "\"graph exec handle\":\"%#lx\"," STREAM, HEX(exec),
	    HEX(stream));
	DO(cudaStreamSynchronize(stream));
	say("cudaStreamSynchronize", NULL, STREAM, HEX(stream));
	DO(cudaGraphExecDestroy(exec));
	say("cudaGraphExecDestroy", NULL, "\"graph exec handle\":\"%#lx\"", HEX(exec));
	DO(cudaGraphDestroy(graph));
	say("cudaGraphDestroy", NULL, "\"graph handle\":\"%#lx\"", HEX(graph));
}

static void memory_round(void)
{
	void *p, *q, *r;

	DO(cudaMalloc(&p, 123456));
	say("cudaMalloc", NULL, "\"bytes\":123456");
	DO(cudaMallocAsync(&q, 65536, stream));
	say("cudaMallocAsync", NULL, "\"bytes\":65536," STREAM, HEX(stream));
	DO(cudaHostAlloc(&r, 8192, 0));
	say("cudaHostAlloc", NULL, "\"bytes\":8192");
	DO(cudaFree(p));
	say("cudaFree", NULL, "\"address\":\"%#lx\"", HEX(p));
	DO(cudaFreeAsync(q, stream));
	say("cudaFreeAsync", NULL, "\"address\":\"%#lx\"," STREAM, HEX(q), HEX(stream));
	DO(cudaFreeHost(r));
	say("cudaFreeHost", NULL, "\"address\":\"%#lx\"", HEX(r));
}

static void runtime_round(void)
{
	launch_round();
	copy_round();
	wait_round();
	graph_round();
	memory_round();
}

/* What programs call that are compiled with a default stream per thread. */
static void per_thread_round(void)
{
	int value = 0, *args[] = {&value, &value};

	DO(cudaLaunchKernel_ptsz((const void *)stub_mangled, (dim3){5, 6, 7}, (dim3){8, 9, 10},
				 (void **)args, 3, NULL));
	say("cudaLaunchKernel", NULL,
	    "\"kernel\":\"scale(float*, int)\",\"grid\":[5,6,7],\"block\":[8,9,10],"
	    "\"shared memory\":3,\"stream handle\":\"0x0\"");
	DO(cudaMemcpyAsync_ptsz(device, host, 99, 1, NULL));
	say("cudaMemcpyAsync", NULL, "\"bytes\":99,\"kind\":\"HtoD\"");
	DO(cudaMemcpy_ptds(host, device, 98, 2));
	say("cudaMemcpy", NULL, "\"bytes\":98,\"kind\":\"DtoH\"");
	DO(cudaMemsetAsync_ptsz(device, 0, 97, NULL));
	say("cudaMemsetAsync", NULL, "\"bytes\":97");
	DO(cudaEventRecord_ptsz(event, NULL));
	say("cudaEventRecord", NULL, "\"event handle\":\"%#lx\"", HEX(event));
	DO(cudaStreamSynchronize_ptsz(NULL));
	say("cudaStreamSynchronize", NULL, "\"stream handle\":\"0x0\"");
}

static CUfunction driver_function(void)
{
	static CUfunction function;
	CUmodule module;

	if (function)
		return function;
	DO(cuModuleLoadData(&module, &image));
	DO(cuModuleGetFunction(&function, module, "fill_kernel"));
	return function;
}

static void driver_round(void)
{
	CUstream s = (CUstream)stream;
	int value = 0, *args[] = {&value};
	CUdeviceptr p;

	DO(cuLaunchKernel(driver_function(), 11, 12, 13, 14, 15, 2, 512, s, (void **)args, NULL));
	say("cuLaunchKernel", NULL,
	    "\"grid\":[11,12,13],\"block\":[14,15,2],\"shared memory\":512," STREAM, HEX(s));
	DO(cuMemAlloc_v2(&p, 1 << 20));
	say("cuMemAlloc", NULL, "\"bytes\":1048576");
	DO(cuMemcpyHtoDAsync_v2(p, host, 300, s));
	say("cuMemcpyHtoDAsync", NULL, "\"bytes\":300," STREAM, HEX(s));
	DO(cuMemcpyDtoH_v2(host, p, 301));
	say("cuMemcpyDtoH", NULL, "\"bytes\":301");
	DO(cuMemsetD8Async(p, 0, 302, s));
	say("cuMemsetD8Async", NULL, "\"elements\":302," STREAM, HEX(s));
	DO(cuEventRecord((CUevent)event, s));
	say("cuEventRecord", NULL, "\"event handle\":\"%#lx\"," STREAM, HEX(event), HEX(s));
	DO(cuStreamSynchronize(s));
	say("cuStreamSynchronize", NULL, STREAM, HEX(s));
	DO(cuCtxSynchronize());
	say("cuCtxSynchronize", NULL, " ");
	DO(cuMemFree_v2(p));
	say("cuMemFree", NULL, "\"address\":\"%#lx\"", HEX(p));
}

static int failures;
/* What HIP launches, and some of CUDA's compilers: a variable in a kernel's place. */
const int variable_kernel = 1;

__attribute__((noinline)) static void count_failure(void)
{
	failures++;
	__asm__ volatile("" ::: "memory");
}

/*
 * With a branch, as programs check: a result that only goes into a sum is gone before there is a
 * place to see it.
 */
static void fails(int result)
{
	if (result)
		count_failure();
}

static void errors_round(void)
{
	int value = 0, *args[] = {&value};
	void *p;

	fails(cudaMemcpy(device, host, BYTES, 99));
	say("cudaMemcpy", "cudaErrorInvalidMemcpyDirection (21)", "\"bytes\":4096,\"kind\":99");
	fails(cudaMalloc(&p, (size_t)1 << 60));
	say("cudaMalloc", "cudaErrorMemoryAllocation (2)", "\"bytes\":1152921504606846976");
	fails(cudaLaunchKernel((const void *)stub_plain, (dim3){0, 1, 1}, (dim3){1, 1, 1},
			       (void **)args, 0, stream));
	say("cudaLaunchKernel", "cudaErrorInvalidConfiguration (9)", "\"grid\":[0,1,1]");
	fails(cudaLaunchKernel(&variable_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void **)args, 0,
			       stream));
	say("cudaLaunchKernel", "cudaErrorInvalidDeviceFunction (98)",
	    "\"kernel\":\"variable_kernel\"");
	fails(cudaLaunchKernel((const void *)16, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void **)args, 0,
			       stream));
	say("cudaLaunchKernel", "cudaErrorInvalidDeviceFunction (98)", "\"kernel\":\"0x10\"");
	DO(cudaLaunchKernel((const void *)stub_slow, (dim3){1, 1, 1}, (dim3){1, 1, 1},
			    (void **)args, 0, stream));
	say("cudaLaunchKernel", NULL, "\"kernel\":\"slow_kernel\"");
	fails(cudaStreamQuery(stream));
	say("cudaStreamQuery", NULL, "\"result\":\"cudaErrorNotReady (600)\"");
	DO(cudaDeviceSynchronize());
	say("cudaDeviceSynchronize", NULL, " ");
	fails(cuMemAlloc_v2((CUdeviceptr *)&p, (size_t)1 << 60));
	say("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY (2)", "\"bytes\":1152921504606846976");
}

static void launches_round(void)
{
	int value = 0, *args[] = {&value};

	DO(cudaLaunchKernel((const void *)stub_plain, (dim3){1, 1, 1}, (dim3){1, 1, 1},
			    (void **)args, 0, stream));
	say("cudaLaunchKernel", NULL, "\"kernel\":\"fill_kernel\"");
}

static void queries_round(void)
{
	DO(cudaEventQuery(event));
	say("cudaEventQuery", NULL, "\"event handle\":\"%#lx\"", HEX(event));
}

/* Another copy of the runtime, with kernels of its own. */
static void other_round(void)
{
	static cudaError_t (*memset_other)(void *, int, size_t);

	if (!memset_other) {
		const char *path = getenv("CUDACALLS_OTHER");
		void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

		memset_other =
			library ? (cudaError_t(*)(void *, int, size_t))dlsym(library, "cudaMemset")
				: NULL;
		if (!memset_other || memset_other == cudaMemset) {
			fprintf(stderr, "no other copy: %s\n", dlerror());
			exit(3);
		}
	}
	DO(cudaMemset(device, 0, 10));
	say("cudaMemset", NULL, "\"bytes\":10");
	DO(memset_other(device, 0, 11));
	say("cudaMemset", NULL, "\"bytes\":11");
}

static const struct {
	const char *name;
	void (*round)(void);
} modes[] = {
	{"runtime", runtime_round}, {"per-thread", per_thread_round}, {"driver", driver_round},
	{"errors", errors_round},   {"launches", launches_round},     {"queries", queries_round},
	{"other", other_round},
};

static bool wait_line(void)
{
	char line[64];

	return fgets(line, sizeof(line), stdin);
}

static void (*mode_of(const char *name))(void)
{
	for (size_t i = 0; i < NR(modes); i++)
		if (!strcmp(modes[i].name, name))
			return modes[i].round;
	fprintf(stderr, "no such mode: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	void (*round)(void) = mode_of(argc > 1 ? argv[1] : "runtime");
	unsigned long rounds = 20;
	bool linger = false;
	char *said = NULL;
	size_t bytes = 0;
	int settling;
	FILE *lines;

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--linger"))
			linger = true;
		else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			rounds = strtoul(argv[++i], NULL, 0);
	}
	prepare();
	round();
	DO(cudaDeviceSynchronize());
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (!wait_line())
		return 9; /* nobody is there any more */
	failures = 0;
	lines = open_memstream(&said, &bytes);
	telling = lines;
	settling = settle(round);
	settled = told;
	telling = NULL;
	for (unsigned long i = 0; i < rounds; i++) {
		if (rounds <= MAX_TOLD_ROUNDS || i == rounds - 1)
			telling = lines;
		round();
	}
	fclose(lines);
	printf("{\"pid\":%d,\"rounds\":%lu,\"failures\":%d,\"settling\":%d,\"settled\":%lu,\"calls\":[%s]}\n",
	       (int)getpid(), rounds, failures, settling, settled, said);
	free(said);
	fflush(stdout);
	if (linger)
		wait_line();
	return 0;
}
