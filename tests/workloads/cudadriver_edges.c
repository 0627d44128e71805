/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudadriver: what is not ordinary: errors, processes, ends, gaps, every function once, the driver
 * alone.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_driver.h"
#include "cudadriver.h"

#define NO_DIM ((dim3){0, 1, 1})
#define ONE ((dim3){1, 1, 1})

/* ---- errors ---- */

#define RUNS_NS 300000

/*
 * What is asked while a kernel runs. A thread that gets no CPU for so long asks once more, of
 * another kernel.
 */
static void ask_too_early(cudaEvent_t event)
{
	int of_event, of_stream;
	uint64_t until;

	do {
		until = now_ns() + RUNS_NS;
		launch_spin(NULL, RUNS_NS);
		OK(cudaEventRecord, event, NULL);
		of_event = CALL(cudaEventQuery, event);
		of_stream = CALL(cudaStreamQuery, NULL);
	} while (now_ns() >= until && !(of_event == SIM_NOT_READY && of_stream == SIM_NOT_READY));
	must(of_event, SIM_NOT_READY, "cudaEventQuery");
	must(of_stream, SIM_NOT_READY, "cudaStreamQuery");
}

void mode_errors(const struct options *o, struct result *r)
{
	uint64_t ns = o->kernel_ns;
	cudaEvent_t event;
	void *p;

	OK(cudaEventCreate, &event);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		FAILS(SIM_INVALID_CONFIGURATION, cudaLaunchKernel, (const void *)_Z4spinm, NO_DIM,
		      ONE, (void *[]){&ns}, 0, NULL);
		FAILS(SIM_INVALID_CONFIGURATION, cudaLaunchKernel, (const void *)_Z4spinm, ONE,
		      (dim3){2048, 1, 1}, (void *[]){&ns}, 0, NULL);
		FAILS(SIM_INVALID_CONFIGURATION, cudaGetLastError);
		OK(cudaGetLastError);
		FAILS(SIM_INVALID_DEVICE_FUNCTION, cudaLaunchKernel, (const void *)never_registered,
		      ONE, ONE, NULL, 0, NULL);
		FAILS(SIM_OUT_OF_MEMORY, cudaMalloc, &p, 1ul << 50);
		FAILS(SIM_INVALID_VALUE, cudaFree, (void *)0x1000);
		FAILS(SIM_INVALID_DEVICE, cudaSetDevice, 99);
		FAILS(SIM_INVALID_VALUE, cudaMemcpy, &p, &ns, 8, SIM_HOST_TO_DEVICE);
		FAILS(SIM_INVALID_HANDLE, cudaStreamSynchronize, (cudaStream_t)0xdead);
		FAILS(SIM_INVALID_HANDLE, cudaPeekAtLastError);
		ask_too_early(event);
		OK(cudaEventSynchronize, event);
		FAILS(SIM_INVALID_HANDLE, cudaGetLastError);
		r->sum++;
	}
	OK(cudaEventDestroy, event);
}

/* ---- processes ---- */

static void reap(pid_t pid, struct result *r)
{
	int status = -1;

	r->ok &= waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* CUDA does not work in the child of a process that uses it, and does in the parent. */
void mode_fork(const struct options *o, struct result *r)
{
	r->sum = run_rounds(o, NULL, 0, &r->ok);
	for (unsigned i = 0; i < o->children; i++) {
		pid_t pid = fork();
		void *p;

		if (!pid)
			_exit(cudaMalloc(&p, 16) == SIM_NOT_INITIALIZED ? 0 : 1);
		fprintf(r->more, "%s%d%s", i ? ", " : ", \"children\": [", pid,
			i + 1 == o->children ? "]" : "");
		r->sum = mix(r->sum, run_rounds(o, NULL, i + 1, &r->ok));
		reap(pid, r);
	}
}

/* Children that use CUDA each for themselves, of a parent that does not. */
void mode_children(const struct options *o, struct result *r)
{
	pid_t *pids = calloc(o->children, sizeof(*pids));

	fflush(stdout);
	for (unsigned i = 0; pids && i < o->children; i++) {
		bool ok = true;

		pids[i] = fork();
		if (!pids[i]) {
			run_rounds(o, NULL, i, &ok);
			exit(ok ? 0 : 1);
		}
		fprintf(r->more, "%s%d%s", i ? ", " : ", \"children\": [", pids[i],
			i + 1 == o->children ? "]" : "");
	}
	for (unsigned i = 0; pids && i < o->children; i++)
		reap(pids[i], r);
	free(pids);
}

/* ---- ends ---- */

static void leave_work_behind(const struct options *o)
{
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		launch_spin(NULL, o->kernel_ns);
	}
	/* A third of it is done, so that something is in buffers. */
	usleep((useconds_t)(o->n * o->kernel_ns / 3000));
}

/* The last of it is not waited for, and nothing of exit() happens. */
void mode_exit(const struct options *o, struct result *r)
{
	leave_work_behind(o);
	printf("{\"mode\": \"exit\", \"pid\": %d, \"ok\": true, \"calls\": {\"cudaLaunchKernel\": %lu}}\n",
	       getpid(), o->n);
	fflush(stdout);
	_exit(0);
}

void mode_kill(const struct options *o, struct result *r)
{
	leave_work_behind(o);
	printf("{\"mode\": \"kill\", \"pid\": %d, \"ok\": true, \"calls\": {\"cudaLaunchKernel\": %lu}}\n",
	       getpid(), o->n);
	fflush(stdout);
	raise(SIGKILL);
}

/* ---- why the device was idle ---- */

static void calculate(uint64_t us)
{
	uint64_t end = now_ns() + us * 1000;

	while (now_ns() < end)
		;
}

static void phase(struct result *r, const char *name, uint64_t start, const char *before)
{
	fprintf(r->more, "%s{\"name\": \"%s\", \"start\": %lu, \"end\": %lu}", before, name, start,
		now_ns());
}

/* Gaps whose cause is known, in three phases. */
void mode_idle(const struct options *o, struct result *r)
{
	uint64_t start;

	launch_tiny(NULL); /* what comes first takes longer */
	OK(cudaDeviceSynchronize);

	start = now_ns(); /* the host calculates between two kernels */
	for (uint64_t i = 0; i < o->n; i++) {
		launch_spin(NULL, o->kernel_ns);
		calculate(o->gap_us + o->kernel_ns / 1000);
	}
	OK(cudaDeviceSynchronize);
	phase(r, "host", start, ", \"phases\": [");

	start = now_ns(); /* the host waits for each kernel before it queues the next */
	for (uint64_t i = 0; i < o->n; i++) {
		launch_spin(NULL, o->kernel_ns);
		OK(cudaDeviceSynchronize);
	}
	phase(r, "sync", start, ", ");

	start = now_ns(); /* kernels are shorter than launching them takes */
	for (uint64_t i = 0; i < 10 * o->n; i++)
		launch_tiny(NULL);
	OK(cudaDeviceSynchronize);
	phase(r, "launch", start, ", ");
	fputc(']', r->more);
	r->sum = o->n;
}

/* ---- memory ---- */

void mode_alloc(const struct options *o, struct result *r)
{
	void *device, *managed, *host, *pool, *registered = aligned_alloc(4096, 8192);
	size_t before, after, total;
	cudaStream_t stream;

	OK(cudaStreamCreate, &stream);
	OK(cudaMemGetInfo, &before, &total);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		OK(cudaMalloc, &device, o->bytes + i);
		OK(cudaMallocAsync, &pool, o->bytes, stream);
		OK(cudaMallocManaged, &managed, o->bytes, 1);
		OK(cudaHostAlloc, &host, o->bytes, 0);
		OK(cudaHostRegister, registered, 8192, 0);
		OK(cudaFreeAsync, pool, stream);
		OK(cudaHostUnregister, registered);
		OK(cudaFreeHost, host);
		OK(cudaFree, managed);
		OK(cudaFree, device);
	}
	OK(cudaFree, NULL);
	OK(cudaMemGetInfo, &after, &total);
	r->ok = before == after;
	r->sum = o->n;
	free(registered);
}

/* ---- every way to launch, and what else there is ---- */

static void bump(void *arg)
{
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

void mode_api(const struct options *o, struct result *r)
{
	uint64_t ns = o->kernel_ns, host_functions = 0;
	char properties[2048];
	int version, device, count, value, least, greatest;
	cudaStream_t stream;
	void *args[] = {&ns};
	struct sim_launch_config config = {
		.grid = {3, 2, 1}, .block = {16, 4, 2}, .dynamic_shared = 512};

	OK(cudaRuntimeGetVersion, &version);
	OK(cudaDriverGetVersion, &version);
	OK(cudaGetDeviceCount, &count);
	OK(cudaSetDevice, count - 1);
	OK(cudaSetDevice, 0);
	OK(cudaGetDevice, &device);
	OK(cudaGetDeviceProperties, properties, device);
	OK(cudaDeviceGetAttribute, &value, SIM_ATTR_MULTIPROCESSORS, device);
	OK(cudaDeviceGetStreamPriorityRange, &least, &greatest);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &value, (const void *)_Z4spinm, 128, 0);
	OK(cudaFuncSetAttribute, (const void *)_Z4spinm, 8, 65536);
	OK(cudaStreamCreateWithPriority, &stream, SIM_STREAM_NON_BLOCKING, greatest);
	config.stream = stream;
	OK(cudaProfilerStart);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		OK(cudaLaunchKernel, (const void *)_Z4spinm, ONE, ONE, args, 0, stream);
		OK(cudaLaunchKernelExC, &config, (const void *)_Z4spinm, args);
		OK(cudaLaunchKernelExC_ptsz, &config, (const void *)_Z4spinm, args);
		OK(cudaLaunchCooperativeKernel, (const void *)_Z4spinm, ONE, ONE, args, 0, stream);
		OK(cudaLaunchHostFunc, stream, bump, &host_functions);
		__cudaPushCallConfiguration(ONE, (dim3){32, 1, 1}, 0, stream);
		_Z4spinm(ns); /* kernel<<<…>>>(ns) */
	}
	OK(cudaStreamSynchronize, stream);
	OK(cudaProfilerStop);
	OK(cudaStreamDestroy, stream);
	r->ok = host_functions == o->n && !strncmp(properties, "Simulated", 9);
	r->sum = host_functions;
	OK(cudaDeviceReset);
}

/* ---- the driver, without a runtime ---- */

#define DRIVER(fn) __typeof__(&fn) p_##fn = (__typeof__(&fn))dlsym(lib, #fn)
#define DOK(fn, ...)                               \
	({                                         \
		static struct counter c_;          \
		count_call(&c_, #fn);              \
		must(p_##fn(__VA_ARGS__), 0, #fn); \
	})

static void by_driver(const struct options *o, struct result *r, bool in_own_context)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	uint64_t ns = o->kernel_ns, n = 64;
	float host[64] = {0};
	CUdeviceptr dev;
	CUcontext context;
	CUmodule module;
	CUfunction spin, scale;
	CUstream stream;

	must(lib ? 0 : 1, 0, "libcuda.so.1");
	DRIVER(cuInit);
	DRIVER(cuDevicePrimaryCtxRetain);
	DRIVER(cuCtxCreate_v2);
	DRIVER(cuCtxSetCurrent);
	DRIVER(cuModuleLoadData);
	DRIVER(cuModuleGetFunction);
	DRIVER(cuStreamCreate);
	DRIVER(cuMemAlloc_v2);
	DRIVER(cuMemcpyHtoDAsync_v2);
	DRIVER(cuLaunchKernel);
	DRIVER(cuLaunchKernelEx);
	DRIVER(cuMemcpyDtoHAsync_v2);
	DRIVER(cuStreamSynchronize);
	DRIVER(cuCtxSynchronize);

	DOK(cuInit, 0);
	if (in_own_context)
		DOK(cuCtxCreate_v2, &context, 0, 0);
	else
		DOK(cuDevicePrimaryCtxRetain, &context, 0);
	DOK(cuCtxSetCurrent, context);
	DOK(cuModuleLoadData, &module, &cudadriver_image);
	DOK(cuModuleGetFunction, &spin, module, "_Z4spinm");
	DOK(cuModuleGetFunction, &scale, module, "_Z5scalePfm");
	DOK(cuStreamCreate, &stream, 1);
	DOK(cuMemAlloc_v2, &dev, sizeof(host));
	for (uint64_t i = 0; i < o->n; i++) {
		struct sim_driver_launch_config config = {
			.grid = {1, 1, 1}, .block = {64, 1, 1}, .stream = stream};

		rest(o, i);
		host[0] = (float)i;
		DOK(cuMemcpyHtoDAsync_v2, dev, host, sizeof(host), stream);
		DOK(cuLaunchKernel, spin, 2, 1, 1, 32, 1, 1, 0, stream, (void *[]){&ns}, NULL);
		DOK(cuLaunchKernelEx, &config, scale, (void *[]){&dev, &n}, NULL);
		DOK(cuMemcpyDtoHAsync_v2, host, dev, sizeof(host), stream);
		DOK(cuStreamSynchronize, stream);
		r->ok &= host[0] == 2 * (float)i;
		r->sum = mix(r->sum, (uint64_t)host[0]);
	}
	DOK(cuCtxSynchronize);
}

void mode_driver(const struct options *o, struct result *r)
{
	by_driver(o, r, false);
}

void mode_context(const struct options *o, struct result *r)
{
	by_driver(o, r, true);
}
