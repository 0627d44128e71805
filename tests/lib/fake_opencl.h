/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An OpenCL driver of one device that runs nothing, and the layer on it: commands complete when the
 * test says so, at times of a clock that it sets. Includes the module's own files, so that a test
 * sees their insides.
 */
#ifndef KPROF_TESTS_FAKE_OPENCL_H
#define KPROF_TESTS_FAKE_OPENCL_H

#include "fake_agent.h"

#include "gpu/base/clock.c"
#include "gpu/opencl/state.c"
#include "gpu/opencl/opencl.c"
#include "gpu/layer.c"
#include "gpu/opencl/device_clock.c"
#include "gpu/opencl/jobs.c"
#include "gpu/opencl/objects.c"
#include "gpu/opencl/queues.c"
#undef WRAPPER
#include "gpu/opencl/calls.c"

struct fake_queue {
	uint64_t properties;
	uint64_t list[8];
	uint32_t nr_list;
	bool by_list;
};

struct fake_event {
	int refs;
	struct fake_queue *queue;
	uint64_t times[4];
	ocl_event_callback_fn *callback;
	void *data;
	bool complete;
};

static struct {
	/* Its clock: CLOCK_MONOTONIC, or another of the host's, or one of its own. */
	clockid_t clock;
	double ppm;
	uint64_t offset;
	bool has_timer, no_profiling, no_callbacks, held;
	int32_t fails; /* the next enqueue, and calls that wait */
	uint32_t events_alive, enqueued;
	ocl_event *last_wanted; /* where the last enqueue was told to put its event */
	struct fake_event *waiting[64];
	uint32_t nr_waiting;
	struct fake_queue queues[8];
	uint32_t nr_queues;
	int context;
} fake;

static uint64_t fake_device_ns(void)
{
	uint64_t t = gpu_clock_ns(fake.clock);

	return t + (uint64_t)(int64_t)((double)t * fake.ppm * 1e-6) + fake.offset;
}

static int32_t fake_device_info(const void *device, uint32_t description, size_t bytes, void *value,
				size_t *bytes_ret)
{
	uint64_t number = description == OCL_DEVICE_MAX_COMPUTE_UNITS ? 8 : 1024;

	if (description == OCL_DEVICE_NAME)
		snprintf(value, bytes, "fake device");
	else
		memcpy(value, &number, bytes < 8 ? bytes : 8);
	return OCL_SUCCESS;
}

static int32_t fake_kernel_info(const void *kernel, uint32_t description, size_t bytes, void *value,
				size_t *bytes_ret)
{
	snprintf(value, bytes, "%s", (const char *)kernel);
	return OCL_SUCCESS;
}

static ocl_context fake_create_context(const intptr_t *properties, uint32_t nr,
				       const ocl_device *devices,
				       void (*notify)(const char *, const void *, size_t, void *),
				       void *data, int32_t *result)
{
	return (ocl_context)&fake.context;
}

static struct fake_queue *fake_new_queue(uint64_t properties, int32_t *result)
{
	struct fake_queue *q = &fake.queues[fake.nr_queues];

	if (fake.no_profiling && properties & OCL_QUEUE_PROFILING_ENABLE) {
		*result = -35;
		return NULL;
	}
	*result = OCL_SUCCESS;
	memset(q, 0, sizeof(*q));
	q->properties = properties;
	fake.nr_queues++;
	return q;
}

static ocl_queue fake_create_queue(ocl_context context, ocl_device device, uint64_t properties,
				   int32_t *result)
{
	return (ocl_queue)fake_new_queue(properties, result);
}

static ocl_queue fake_create_queue_list(ocl_context context, ocl_device device,
					const uint64_t *list, int32_t *result)
{
	uint64_t properties = 0;
	struct fake_queue *q;
	uint32_t nr = 0;

	for (; list && list[nr]; nr += 2)
		if (list[nr] == OCL_QUEUE_PROPERTIES)
			properties = list[nr + 1];
	q = fake_new_queue(properties, result);
	if (q && list) {
		q->by_list = true;
		q->nr_list = nr + 1;
		memcpy(q->list, list, q->nr_list * sizeof(*list));
	}
	return (ocl_queue)q;
}

static int32_t fake_queue_info(const void *queue, uint32_t description, size_t bytes, void *value,
			       size_t *bytes_ret)
{
	const struct fake_queue *q = queue;
	const void *context = &fake.context, *device = &fake, *from = NULL;
	size_t have = 8;

	if (description == OCL_QUEUE_CONTEXT)
		from = &context;
	else if (description == OCL_QUEUE_DEVICE)
		from = &device;
	else if (description == OCL_QUEUE_PROPERTIES)
		from = &q->properties;
	else if (description == OCL_QUEUE_PROPERTIES_ARRAY) {
		from = q->list;
		have = q->nr_list * sizeof(q->list[0]);
	} else {
		return OCL_INVALID_VALUE;
	}
	if (value && bytes < have)
		return OCL_INVALID_VALUE;
	if (value)
		memcpy(value, from, have);
	if (bytes_ret)
		*bytes_ret = have;
	return OCL_SUCCESS;
}

static int32_t fake_set_property(ocl_queue queue, uint64_t properties, uint32_t enable,
				 uint64_t *old)
{
	struct fake_queue *q = (struct fake_queue *)queue;

	if (old)
		*old = q->properties;
	q->properties = enable ? q->properties | properties : q->properties & ~properties;
	return OCL_SUCCESS;
}

static int32_t fake_retain(ocl_event event)
{
	((struct fake_event *)event)->refs++;
	return OCL_SUCCESS;
}

static int32_t fake_release(ocl_event event)
{
	struct fake_event *e = (struct fake_event *)event;

	if (--e->refs == 0) {
		fake.events_alive--;
		free(e);
	}
	return OCL_SUCCESS;
}

static void fake_complete_one(struct fake_event *e, int32_t status)
{
	e->times[2] = fake_device_ns();
	e->times[3] = e->times[2] + 5000;
	e->complete = true;
	if (e->callback)
		e->callback((ocl_event)e, status, e->data);
	fake_release((ocl_event)e); /* the driver's own reference */
}

/* What was held completes, in order; with an error: status < 0. */
static inline void fake_complete(int32_t status)
{
	for (uint32_t i = 0; i < fake.nr_waiting; i++)
		fake_complete_one(fake.waiting[i], status);
	fake.nr_waiting = 0;
}

static int32_t fake_set_callback(ocl_event event, int32_t status, ocl_event_callback_fn *fn,
				 void *data)
{
	struct fake_event *e = (struct fake_event *)event;

	if (fake.no_callbacks)
		return OCL_OUT_OF_HOST_MEMORY;
	if (e->complete) {
		fn(event, OCL_COMPLETE, data);
		return OCL_SUCCESS;
	}
	e->callback = fn;
	e->data = data;
	return OCL_SUCCESS;
}

static int32_t fake_event_info(const void *event, uint32_t description, size_t bytes, void *value,
			       size_t *bytes_ret)
{
	if (description != OCL_EVENT_COMMAND_QUEUE)
		return OCL_INVALID_VALUE;
	memcpy(value, &((const struct fake_event *)event)->queue, sizeof(void *));
	return OCL_SUCCESS;
}

static int32_t fake_profiling_info(const void *event, uint32_t description, size_t bytes,
				   void *value, size_t *bytes_ret)
{
	const struct fake_event *e = event;

	if (!e->complete || !(e->queue->properties & OCL_QUEUE_PROFILING_ENABLE))
		return OCL_PROFILING_INFO_NOT_AVAILABLE;
	memcpy(value, &e->times[description - OCL_PROFILING_COMMAND_QUEUED], sizeof(e->times[0]));
	return OCL_SUCCESS;
}

static int32_t fake_enqueue(ocl_queue queue, ocl_event *wanted)
{
	int32_t fails = fake.fails;
	struct fake_event *e;

	fake.last_wanted = wanted;
	fake.fails = 0;
	if (fails)
		return fails;
	fake.enqueued++;
	e = calloc(1, sizeof(*e));
	fake.events_alive++;
	e->refs = 1;
	e->queue = (struct fake_queue *)queue;
	e->times[0] = e->times[1] = fake_device_ns();
	if (wanted) {
		e->refs++;
		*wanted = (ocl_event)e;
	}
	fake.waiting[fake.nr_waiting++] = e;
	if (!fake.held)
		fake_complete(OCL_COMPLETE);
	return OCL_SUCCESS;
}

static int32_t fake_launch(ocl_queue queue, ocl_kernel kernel, uint32_t dimensions,
			   const size_t *offset, const size_t *global, const size_t *local,
			   uint32_t nr, const ocl_event *waits, ocl_event *event)
{
	return fake_enqueue(queue, event);
}

static int32_t fake_read(ocl_queue queue, ocl_mem buffer, uint32_t blocking, size_t offset,
			 size_t bytes, void *to, uint32_t nr, const ocl_event *waits,
			 ocl_event *event)
{
	return fake_enqueue(queue, event);
}

static int32_t fake_fill(ocl_queue queue, ocl_mem buffer, const void *pattern, size_t pattern_bytes,
			 size_t offset, size_t bytes, uint32_t nr, const ocl_event *waits,
			 ocl_event *event)
{
	return fake_enqueue(queue, event);
}

static void *fake_map(ocl_queue queue, ocl_mem buffer, uint32_t blocking, uint64_t flags,
		      size_t offset, size_t bytes, uint32_t nr, const ocl_event *waits,
		      ocl_event *event, int32_t *result)
{
	*result = fake_enqueue(queue, event);
	return *result ? NULL : &fake;
}

static int32_t fake_finish(ocl_queue queue)
{
	int32_t fails = fake.fails;

	fake.fails = 0;
	return fails;
}

static int32_t fake_timer(ocl_device device, uint64_t *device_ns, uint64_t *host_ns)
{
	if (!fake.has_timer)
		return -59; /* CL_INVALID_OPERATION */
	*device_ns = fake_device_ns();
	*host_ns = 1;
	return OCL_SUCCESS;
}

static ocl_function fake_table[OCL_ENTRIES] = {
	[OCL_clGetDeviceInfo] = (ocl_function)fake_device_info,
	[OCL_clCreateContext] = (ocl_function)fake_create_context,
	[OCL_clCreateCommandQueue] = (ocl_function)fake_create_queue,
	[OCL_clCreateCommandQueueWithProperties] = (ocl_function)fake_create_queue_list,
	[OCL_clGetCommandQueueInfo] = (ocl_function)fake_queue_info,
	[OCL_clSetCommandQueueProperty] = (ocl_function)fake_set_property,
	[OCL_clGetKernelInfo] = (ocl_function)fake_kernel_info,
	[OCL_clGetEventInfo] = (ocl_function)fake_event_info,
	[OCL_clRetainEvent] = (ocl_function)fake_retain,
	[OCL_clReleaseEvent] = (ocl_function)fake_release,
	[OCL_clGetEventProfilingInfo] = (ocl_function)fake_profiling_info,
	[OCL_clSetEventCallback] = (ocl_function)fake_set_callback,
	[OCL_clEnqueueNDRangeKernel] = (ocl_function)fake_launch,
	[OCL_clEnqueueReadBuffer] = (ocl_function)fake_read,
	[OCL_clEnqueueFillBuffer] = (ocl_function)fake_fill,
	[OCL_clEnqueueMapBuffer] = (ocl_function)fake_map,
	[OCL_clFinish] = (ocl_function)fake_finish,
	[OCL_clGetDeviceAndHostTimer] = (ocl_function)fake_timer,
};

static void fake_forget(struct map *map)
{
	for (int i = 0; i < BUCKETS; i++) {
		while (map->bucket[i]) {
			struct ocl_object *o = map->bucket[i];

			map->bucket[i] = o->next;
			if (map == &queues)
				free(((struct ocl_queue_object *)o)->asked_array);
			free(o);
		}
	}
	map->last_number = 0;
}

/* A process that has just loaded OpenCL, with the layer; its device runs on this clock. */
static inline const ocl_function *fake_opencl(clockid_t clock, bool has_timer)
{
	const ocl_function *table = NULL;
	uint32_t nr = 0;

	memset(&fake, 0, sizeof(fake));
	fake.clock = clock;
	fake.has_timer = has_timer;
	/* What the module knows of the one before lives on in a process; here it is another. */
	fake_forget(&queues);
	fake_forget(&contexts);
	fake_forget(&devices);
	memset(host_maps, 0, sizeof(host_maps));
	memset(host_used, 0, sizeof(host_used));
	memset(&fake_shm, 0, sizeof(fake_shm));
	pending = 0;
	ocl_types = 0;
	ocl_session = 0;
	ocl_loaded = false;
	return clInitLayer(OCL_ENTRIES, fake_table, &nr, &table) == OCL_SUCCESS && nr == OCL_ENTRIES
		       ? table
		       : NULL;
}

#endif
