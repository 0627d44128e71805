// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the OpenCL layer costs a call: at rest, and while a session records. On a driver that does
 * nothing (a command completes at once), so that nothing but the layer is measured; handing records
 * over is not in it.
 *
 *   opencl_bench [millions of calls]
 *
 * Prints "name value unit" lines, medians of 9 runs, the driver's own time taken off.
 */
#include "fake_opencl.h"

enum { RUNS = 9 };

static ocl_queue queue;
static struct fake_event event; /* the only one: this driver keeps nothing */

static int32_t launch_nothing(ocl_queue q, ocl_kernel kernel, uint32_t dimensions,
			      const size_t *offset, const size_t *global, const size_t *local,
			      uint32_t nr, const ocl_event *waits, ocl_event *wanted)
{
	if (wanted)
		*wanted = (ocl_event)&event;
	return OCL_SUCCESS;
}

static int32_t nothing(ocl_event e)
{
	return OCL_SUCCESS;
}

static int32_t complete_at_once(ocl_event e, int32_t status, ocl_event_callback_fn *fn, void *data)
{
	event.times[0] = event.times[2] = event.times[3] = gpu_now_ns();
	fn(e, OCL_COMPLETE, data);
	return OCL_SUCCESS;
}

static double once(const ocl_function *table, uint64_t calls)
{
	__typeof__(&launch_nothing) volatile launch =
		(__typeof__(&launch_nothing))table[OCL_clEnqueueNDRangeKernel];
	size_t global = 1024, local = 64;
	uint64_t begin = gpu_now_ns();

	for (uint64_t i = 0; i < calls; i++) {
		launch(queue, (ocl_kernel)(uintptr_t) "saxpy", 1, NULL, &global, &local, 0, NULL,
		       NULL);
		fake_nr = 0;
	}
	return (double)(gpu_now_ns() - begin) / (double)calls;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, const ocl_function *table, uint64_t calls)
{
	double added[RUNS];

	for (int i = 0; i < RUNS; i++)
		added[i] = once(table, calls) - once(fake_table, calls);
	qsort(added, RUNS, sizeof(added[0]), by_size);
	printf("%s %.1f ns\n", name, added[RUNS / 2]);
}

int main(int argc, char **argv)
{
	uint64_t calls = (argc > 1 ? strtoull(argv[1], NULL, 10) : 5) * 1000000;
	struct gpu_report report;
	const ocl_function *table;
	int32_t err;

	fake_table[OCL_clEnqueueNDRangeKernel] = (ocl_function)launch_nothing;
	fake_table[OCL_clRetainEvent] = fake_table[OCL_clReleaseEvent] = (ocl_function)nothing;
	fake_table[OCL_clSetEventCallback] = (ocl_function)complete_at_once;
	table = fake_opencl(CLOCK_MONOTONIC, false);
	if (!table)
		return 1;
	queue = wrap_clCreateCommandQueue(NULL, NULL, 0, &err);
	event.queue = (struct fake_queue *)queue;
	event.complete = true;
	measure("opencl.layer.rest", table, calls);
	gpu_opencl.start(~0ull, 0, &report);
	measure("opencl.layer.recording", table, calls / 10);
	return 0;
}
