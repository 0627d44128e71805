// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenCL: the agent as a layer between the program and its driver. The OpenCL loader (ocl-icd, Khronos') opens what
 * OPENCL_LAYERS names at the program's first call, and asks it for a dispatch table to put before the driver's. A
 * process that has made that call without the layer can't get it any more.
 */
#include <errno.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "batch.h"
#include "module.h"
#include "opencl.h"
#include "util.h"

#define EXPORTED __attribute__((visibility("default")))
#define LAYER_NAME "kprof"

#define CLOCK_EVERY_NS 1000000000ull
#define STOP_WAIT_NS 1000000000ull /* for what still runs when a session ends */
#define EXIT_WAIT_NS 300000000ull
#define LOOK_AGAIN_NS 500000

ocl_function ocl_next[OCL_ENTRIES];
uint64_t ocl_types;
uint32_t ocl_session;

/* The door of runtimes that load the agent themselves (agent.c). */
int InitializeInjection(void);

static ocl_function layer[OCL_ENTRIES];
static bool loaded;
static uint64_t clocks_read_ns;

/* ---- the layer -------------------------------------------------------------------------------------- */

EXPORTED int32_t clGetLayerInfo(uint32_t what, size_t bytes, void *value, size_t *bytes_ret)
{
	uint32_t version = OCL_LAYER_API_VERSION_100;
	const void *answer = &version;
	size_t have = sizeof(version);

	if (what == OCL_LAYER_NAME) {
		answer = LAYER_NAME;
		have = sizeof(LAYER_NAME);
	} else if (what != OCL_LAYER_API_VERSION) {
		return OCL_INVALID_VALUE;
	}
	if (value && bytes < have)
		return OCL_INVALID_VALUE;
	if (value)
		memcpy(value, answer, have);
	if (bytes_ret)
		*bytes_ret = have;
	return OCL_SUCCESS;
}

static void wrap(const struct ocl_wrapper *w)
{
	for (; w->function; w++)
		if (ocl_next[w->entry])
			layer[w->entry] = w->function;
}

static void copy_table(ocl_function to[OCL_ENTRIES], const ocl_function *from, uint32_t nr)
{
	memcpy(to, from, (nr < OCL_ENTRIES ? nr : OCL_ENTRIES) * sizeof(*from));
}

EXPORTED int32_t clInitLayer(uint32_t entries, const ocl_function *target, uint32_t *entries_ret,
			     const ocl_function **dispatch)
{
	static ocl_function passing[OCL_ENTRIES];

	if (!target || !entries_ret || !dispatch)
		return OCL_INVALID_VALUE;
	*entries_ret = OCL_ENTRIES;
	if (loaded) { /* named twice in OPENCL_LAYERS: once is enough */
		copy_table(passing, target, entries);
		*dispatch = passing;
		return OCL_SUCCESS;
	}
	/* Without its memory file nothing can be recorded: the loader goes on without the layer. */
	if (gpu_start())
		return OCL_OUT_OF_HOST_MEMORY;
	copy_table(ocl_next, target, entries);
	copy_table(layer, target, entries);
	wrap(ocl_queue_wrappers);
	wrap(ocl_call_wrappers);
	ocl_clock__read_hosts();
	__atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
	*dispatch = layer;
	InitializeInjection(); /* where kprof wants it, waits until it records */
	return OCL_SUCCESS;
}

/* ---- the module ------------------------------------------------------------------------------------- */

/* Asked every 100 ms: dlopen(RTLD_NOLOAD) would look for the file in every folder each time. */
static int is_loader(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	(void)ctx;
	return slash && !strncmp(slash + 1, "libOpenCL.so", strlen("libOpenCL.so"));
}

static int probe(struct gpu_report *r)
{
	if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
		return 0;
	if (!dl_iterate_phdr(is_loader, NULL))
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME, "OpenCL is not loaded", NULL,
				  NULL, NULL);
	/* Perhaps its first call is still to come. */
	return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME,
			  "OpenCL takes layers only at a program's start (kprof run)", NULL, NULL,
			  NULL);
}

/* The driver's threads are not in a forked child; what it still calls passes through. */
static void forked(void)
{
	__atomic_store_n(&ocl_types, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ocl_session, 0, __ATOMIC_RELAXED);
}

static void read_clock(struct ocl_device_object *d)
{
	ocl_clock__read_device(&d->clock, (ocl_device)(uintptr_t)d->o.handle);
	if (ocl_clock__known(&d->clock) && ocl_clock__converts(&d->clock))
		gpu_shm()->clock = KPROF_AGENT_CLOCK_CONVERTED;
}

static void read_clocks(void)
{
	clocks_read_ns = gpu_now_ns();
	ocl_clock__read_hosts();
	ocl_devices__each(read_clock);
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	(void)options;
	(void)r;
	__atomic_store_n(&ocl_session, gpu_shm()->recording, __ATOMIC_RELAXED);
	__atomic_store_n(&ocl_types, types | 1ull << KPROF_ACTIVITY_OPENCL_RUNTIME,
			 __ATOMIC_RELAXED);
	read_clocks();
	return 0;
}

static void flush(void)
{
	if (gpu_now_ns() - clocks_read_ns >= CLOCK_EVERY_NS)
		read_clocks();
}

/* Commands that were queued while we recorded get a moment to complete. */
static void wait_for_jobs(uint64_t most_ns)
{
	const struct timespec pause = {0, LOOK_AGAIN_NS};
	uint64_t until = gpu_now_ns() + most_ns;

	while (ocl_jobs__pending() && gpu_now_ns() < until)
		nanosleep(&pause, NULL);
}

static void stop(void)
{
	__atomic_store_n(&ocl_types, 0, __ATOMIC_RELAXED);
	wait_for_jobs(STOP_WAIT_NS);
	read_clocks();
	__atomic_store_n(&ocl_session, 0, __ATOMIC_RELAXED);
}

static void at_exit(void)
{
	wait_for_jobs(EXIT_WAIT_NS);
}

const struct gpu_module gpu_opencl = {
	.name = "opencl",
	.runtime = KPROF_AGENT_OPENCL,
	.probe = probe,
	.start = start,
	.flush = flush,
	.stop = stop,
	.at_exit = at_exit,
	.forked = forked,
};
