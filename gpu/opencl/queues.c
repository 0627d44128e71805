// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queues. The commands of a queue have times only if the queue was created for that. Since it may
 * be created long before a session records, every queue is created with CL_QUEUE_PROFILING_ENABLE
 * while the layer is loaded. The program does not see this: queries of the queue's properties, and
 * of the times of events, are answered as it asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/opencl/opencl.h"

#define MAX_PROPERTIES 32 /* members of a list; real lists have less than half as many */

/* ---- contexts: a new one never gets the number of a released one ---- */

static ocl_context wrap_clCreateContext(const intptr_t *properties, uint32_t nr_devices,
					const ocl_device *devices,
					void (*notify)(const char *, const void *, size_t, void *),
					void *data, int32_t *result)
{
	ocl_context context =
		OCL_NEXT(clCreateContext)(properties, nr_devices, devices, notify, data, result);

	if (context)
		ocl_context_object__made(context);
	return context;
}

static ocl_context wrap_clCreateContextFromType(const intptr_t *properties, uint64_t type,
						void (*notify)(const char *, const void *, size_t,
							       void *),
						void *data, int32_t *result)
{
	ocl_context context =
		OCL_NEXT(clCreateContextFromType)(properties, type, notify, data, result);

	if (context)
		ocl_context_object__made(context);
	return context;
}

/* ---- queues ---- */

static void made(ocl_queue queue, uint64_t asked, const uint64_t *list)
{
	struct ocl_queue_object *q = ocl_queue_object__made(queue);
	uint32_t nr = 0;

	if (!q)
		return;
	q->asked = asked;
	if (!list)
		return;
	while (list[nr] && nr < MAX_PROPERTIES)
		nr += 2;
	q->asked_array = calloc(nr + 1, sizeof(*list));
	if (!q->asked_array)
		return;
	memcpy(q->asked_array, list, nr * sizeof(*list));
	q->nr_asked = nr + 1;
}

static ocl_queue wrap_clCreateCommandQueue(ocl_context context, ocl_device device,
					   uint64_t properties, int32_t *result)
{
	ocl_queue queue = OCL_NEXT(clCreateCommandQueue)(
		context, device, properties | OCL_QUEUE_PROFILING_ENABLE, result);

	/* If the driver refused, try without the change: an error must not come from the layer. */
	if (!queue && !(properties & OCL_QUEUE_PROFILING_ENABLE))
		queue = OCL_NEXT(clCreateCommandQueue)(context, device, properties, result);
	if (queue)
		made(queue, properties, NULL);
	return queue;
}

/*
 * Copies the list with profiling added; *asked are the properties that the program asked for.
 * false: the list must not be changed.
 */
static bool with_profiling(const uint64_t *list, uint64_t out[MAX_PROPERTIES + 3], uint64_t *asked)
{
	uint32_t nr = 0;
	bool there = false;

	*asked = 0;
	for (; list && list[nr]; nr += 2) {
		if (nr >= MAX_PROPERTIES)
			return false;
		out[nr] = list[nr];
		out[nr + 1] = list[nr + 1];
		if (list[nr] != OCL_QUEUE_PROPERTIES)
			continue;
		*asked = list[nr + 1];
		out[nr + 1] |= OCL_QUEUE_PROFILING_ENABLE;
		there = true;
	}
	if (!there) {
		out[nr++] = OCL_QUEUE_PROPERTIES;
		out[nr++] = OCL_QUEUE_PROFILING_ENABLE;
	}
	out[nr] = 0;
	/* commands of a queue on the device come from kernels */
	return !(*asked & OCL_QUEUE_ON_DEVICE);
}

static ocl_queue wrap_clCreateCommandQueueWithProperties(ocl_context context, ocl_device device,
							 const uint64_t *properties,
							 int32_t *result)
{
	uint64_t list[MAX_PROPERTIES + 3], asked;
	ocl_queue queue = NULL;

	if (with_profiling(properties, list, &asked))
		queue = OCL_NEXT(clCreateCommandQueueWithProperties)(context, device, list, result);
	if (!queue)
		queue = OCL_NEXT(clCreateCommandQueueWithProperties)(context, device, properties,
								     result);
	if (queue)
		made(queue, asked, properties);
	return queue;
}

static int32_t wrap_clSetCommandQueueProperty(ocl_queue queue, uint64_t properties, uint32_t enable,
					      uint64_t *old)
{
	struct ocl_queue_object *q = ocl_queue_object(queue);
	int32_t err = OCL_NEXT(clSetCommandQueueProperty)(queue, properties, enable, old);

	if (err || !q)
		return err;
	if (old)
		*old = q->asked;
	q->asked = enable ? q->asked | properties : q->asked & ~properties;
	if (properties & OCL_QUEUE_PROFILING_ENABLE && !enable)
		OCL_NEXT(clSetCommandQueueProperty)(queue, OCL_QUEUE_PROFILING_ENABLE, 1, NULL);
	return 0;
}

static int32_t answer(const void *from, size_t have, size_t bytes, void *value, size_t *bytes_ret)
{
	if (value && bytes < have)
		return OCL_INVALID_VALUE;
	if (value && have)
		memcpy(value, from, have);
	if (bytes_ret)
		*bytes_ret = have;
	return OCL_SUCCESS;
}

static int32_t wrap_clGetCommandQueueInfo(ocl_queue queue, uint32_t what, size_t bytes, void *value,
					  size_t *bytes_ret)
{
	int32_t err = OCL_NEXT(clGetCommandQueueInfo)(queue, what, bytes, value, bytes_ret);
	struct ocl_queue_object *q;

	/* The list with one more property may not fit into the program's buffer. */
	if (what == OCL_QUEUE_PROPERTIES && err == OCL_SUCCESS && value) {
		q = ocl_queue_object(queue);
		if (q && !(q->asked & OCL_QUEUE_PROFILING_ENABLE))
			*(uint64_t *)value &= ~(uint64_t)OCL_QUEUE_PROFILING_ENABLE;
	} else if (what == OCL_QUEUE_PROPERTIES_ARRAY &&
		   (err == OCL_SUCCESS || err == OCL_INVALID_VALUE)) {
		size_t have;

		/* Answer only queries that the driver knows. */
		if (err && OCL_NEXT(clGetCommandQueueInfo)(queue, what, 0, NULL, &have))
			return err;
		q = ocl_queue_object(queue);
		if (q)
			return answer(q->asked_array, q->nr_asked * sizeof(uint64_t), bytes, value,
				      bytes_ret);
	}
	return err;
}

/* A program that did not ask for profiling gets the error that it would get without the layer. */
static int32_t wrap_clGetEventProfilingInfo(ocl_event event, uint32_t what, size_t bytes,
					    void *value, size_t *bytes_ret)
{
	ocl_queue queue = NULL;
	struct ocl_queue_object *q = NULL;

	if (ocl_info(OCL_clGetEventInfo, event, OCL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue) ==
		    OCL_SUCCESS &&
	    queue)
		q = ocl_queue_object(queue);
	if (q && !(q->asked & OCL_QUEUE_PROFILING_ENABLE))
		return OCL_PROFILING_INFO_NOT_AVAILABLE;
	return OCL_NEXT(clGetEventProfilingInfo)(event, what, bytes, value, bytes_ret);
}

#define WRAPPER(name)                                 \
	{                                             \
		OCL_##name, (ocl_function)wrap_##name \
	}
const struct ocl_wrapper ocl_queue_wrappers[] = {
	WRAPPER(clCreateContext),           WRAPPER(clCreateContextFromType),
	WRAPPER(clCreateCommandQueue),      WRAPPER(clCreateCommandQueueWithProperties),
	WRAPPER(clSetCommandQueueProperty), WRAPPER(clGetCommandQueueInfo),
	WRAPPER(clGetEventProfilingInfo),   {0, NULL},
};
