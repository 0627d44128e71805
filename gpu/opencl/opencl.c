// SPDX-License-Identifier: BSD-2-Clause
/* The agent's module for OpenCL: sessions, and regular readings of clocks. */
#include <errno.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/opencl/opencl.h"
#include "gpu/base/util.h"

#define CLOCK_EVERY_NS 1000000000ull
#define STOP_WAIT_NS 1000000000ull /* for commands that still run when a session ends */
#define EXIT_WAIT_NS 300000000ull
#define LOOK_AGAIN_NS 500000

static uint64_t clocks_read_ns;

/*
 * Is this library the OpenCL loader? Called every 100 ms, where dlopen(RTLD_NOLOAD) would search
 * all folders for the file each time.
 */
static int is_loader(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	(void)ctx;
	return slash && !strncmp(slash + 1, "libOpenCL.so", strlen("libOpenCL.so"));
}

static int probe(struct gpu_report *r)
{
	if (__atomic_load_n(&ocl_loaded, __ATOMIC_ACQUIRE))
		return 0;
	if (!dl_iterate_phdr(is_loader, NULL))
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME, "OpenCL is not loaded", NULL);
	/* The program may not have made its first call of OpenCL yet. */
	return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME,
			  "OpenCL takes layers only at a program's start (kprof run)", NULL);
}

/* A forked child lacks the driver's threads. Calls that it still makes are passed to the driver. */
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

static int flush(struct gpu_report *r)
{
	if (gpu_now_ns() - clocks_read_ns >= CLOCK_EVERY_NS)
		read_clocks();
	return 0;
}

/* Waits a while for commands that were queued while the session recorded. */
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
	.runtime = KPROF_AGENT_OPENCL,
	.probe = probe,
	.start = start,
	.flush = flush,
	.stop = stop,
	.at_exit = at_exit,
	.forked = forked,
};
