// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers for OpenCL's objects, which are found by handle, without a lock, in maps that only grow.
 * A driver reuses the handle of a dead object for a new one, which then takes over its entry, so
 * that there are no more entries than objects that lived at once.
 */
#include <pthread.h>
#include <stdlib.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/opencl/opencl.h"

#define BUCKETS 256

struct map {
	struct ocl_object *bucket[BUCKETS];
	uint32_t last_number;
};
static struct map queues, contexts, devices;

static struct ocl_object **bucket_of(struct map *map, const void *handle)
{
	uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;

	return &map->bucket[hash >> 56];
}

static struct ocl_object *find(struct map *map, const void *handle)
{
	struct ocl_object *o = __atomic_load_n(bucket_of(map, handle), __ATOMIC_ACQUIRE);

	while (o && o->handle != handle)
		o = o->next;
	return o;
}

static uint32_t next_number(struct map *map)
{
	return __atomic_add_fetch(&map->last_number, 1, __ATOMIC_RELAXED);
}

/*
 * Two threads that see an object first at the same time may both insert it: the later entry is
 * found from then on.
 */
static void insert(struct map *map, struct ocl_object *o, const void *handle)
{
	struct ocl_object **head = bucket_of(map, handle);

	o->handle = handle;
	o->next = __atomic_load_n(head, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(head, &o->next, o, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

static struct ocl_device_object *device_object(ocl_device device)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a device has one clock */
	struct ocl_device_object *d = (struct ocl_device_object *)find(&devices, device);

	if (d)
		return d;
	pthread_mutex_lock(&lock);
	d = (struct ocl_device_object *)find(&devices, device);
	if (!d)
		d = calloc(1, sizeof(*d));
	if (d && !d->o.handle) {
		d->o.number = next_number(&devices) - 1;
		ocl_clock__init(&d->clock, device);
		insert(&devices, &d->o, device);
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static struct ocl_object *context_object(ocl_context context)
{
	struct ocl_object *o = find(&contexts, context);

	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->number = next_number(&contexts);
	insert(&contexts, o, context);
	return o;
}

void ocl_context_object__made(ocl_context context)
{
	struct ocl_object *o = find(&contexts, context);

	if (!o) {
		context_object(context);
		return;
	}
	o->number = next_number(&contexts); /* the handle belonged to a context that was released */
	o->recorded = 0;
}

static bool look_up(struct ocl_queue_object *q, ocl_queue queue)
{
	uint64_t properties = 0;
	ocl_context context = NULL;
	ocl_device device = NULL;

	if (ocl_info(OCL_clGetCommandQueueInfo, queue, OCL_QUEUE_CONTEXT, sizeof(context),
		     &context) ||
	    ocl_info(OCL_clGetCommandQueueInfo, queue, OCL_QUEUE_DEVICE, sizeof(device), &device) ||
	    ocl_info(OCL_clGetCommandQueueInfo, queue, OCL_QUEUE_PROPERTIES, sizeof(properties),
		     &properties))
		return false;
	q->context = context_object(context);
	q->device = device_object(device);
	q->profiled = properties & OCL_QUEUE_PROFILING_ENABLE;
	q->asked = properties;
	q->o.number = next_number(&queues);
	return q->context && q->device;
}

struct ocl_queue_object *ocl_queue_object(ocl_queue queue)
{
	struct ocl_queue_object *q = (struct ocl_queue_object *)find(&queues, queue);

	if (q || !queue)
		return q;
	q = calloc(1, sizeof(*q));
	if (!q || !look_up(q, queue)) {
		free(q);
		return NULL;
	}
	insert(&queues, &q->o, queue);
	return q;
}

struct ocl_queue_object *ocl_queue_object__made(ocl_queue queue)
{
	struct ocl_queue_object *q = (struct ocl_queue_object *)find(&queues, queue);

	if (!q)
		return ocl_queue_object(queue);
	/* No other thread uses the queue yet, since it was made just now. */
	free(q->asked_array);
	q->asked_array = NULL;
	q->nr_asked = 0;
	return look_up(q, queue) ? q : NULL;
}

void ocl_devices__each(void (*fn)(struct ocl_device_object *d))
{
	for (int i = 0; i < BUCKETS; i++) {
		struct ocl_object *o = __atomic_load_n(&devices.bucket[i], __ATOMIC_ACQUIRE);

		for (; o; o = o->next)
			fn((struct ocl_device_object *)o);
	}
}

static uint64_t device_number(ocl_device device, uint32_t what, size_t bytes)
{
	uint64_t value = 0; /* little-endian, so that an answer of 4 bytes is right, too */

	ocl_info(OCL_clGetDeviceInfo, device, what, bytes, &value);
	return value;
}

static void tell_device(struct ocl_device_object *d)
{
	ocl_device device = (ocl_device)(uintptr_t)d->o.handle;
	char name[256] = "";
	struct kprof_agent_device r;

	ocl_info(OCL_clGetDeviceInfo, device, OCL_DEVICE_NAME, sizeof(name) - 1, name);
	r = BATCH_RECORD(struct kprof_agent_device, KPROF_AGENT_DEVICE, batch__name_of(name));
	r.device = d->o.number;
	r.runtime = KPROF_AGENT_OPENCL;
	r.memory_bytes = device_number(device, OCL_DEVICE_GLOBAL_MEM_SIZE, 8);
	r.multiprocessors = (uint32_t)device_number(device, OCL_DEVICE_MAX_COMPUTE_UNITS, 4);
	r.max_threads_per_block =
		(uint32_t)device_number(device, OCL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
	r.shared_bytes_per_block = (uint32_t)device_number(device, OCL_DEVICE_LOCAL_MEM_SIZE, 8);
	batch__append(&r);
}

static bool first_time(struct ocl_object *o)
{
	uint32_t session = __atomic_load_n(&ocl_session, __ATOMIC_RELAXED);

	return __atomic_load_n(&o->recorded, __ATOMIC_RELAXED) != session &&
	       __atomic_exchange_n(&o->recorded, session, __ATOMIC_RELAXED) != session;
}

void ocl_queue_object__tell(struct ocl_queue_object *q)
{
	if (first_time(&q->device->o))
		tell_device(q->device);
	if (first_time(q->context)) {
		struct kprof_agent_context r =
			BATCH_RECORD(struct kprof_agent_context, KPROF_AGENT_CONTEXT, 0);

		r.context = q->context->number;
		r.device = q->device->o.number;
		r.runtime = KPROF_AGENT_OPENCL;
		batch__append(&r);
	}
}
