/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: libcuda's devices and contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "truth.h"

#define MAX_STACK 16
static _Thread_local struct sim_context *stack[MAX_STACK];
static _Thread_local int depth; /* the current one is stack[depth] */

struct sim_context *sim_context__current(void)
{
	struct sim_context *c = stack[depth];

	return c && !c->dead ? c : NULL;
}

void sim_context__set_current(struct sim_context *c)
{
	stack[depth] = c;
}

struct sim_context *sim_context__valid(struct sim_context *c)
{
	struct sim_context *o = __atomic_load_n(&sim_contexts, __ATOMIC_ACQUIRE);

	while (o && o != c)
		o = o->next;
	return o && !o->dead ? o : NULL;
}

static struct sim_context *new_context(struct sim_device *d)
{
	static uint32_t next_id = 1;
	struct sim_context *c = calloc(1, sizeof(*c));
	const struct sim_hooks *hooks = sim_engine__hooks();

	if (!c)
		return NULL;
	c->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	c->device = d;
	c->legacy = sim_stream__new(c, 0, 0);
	if (!c->legacy) {
		free(c);
		return NULL;
	}
	c->legacy->id = 7; /* as the real one */
	pthread_mutex_lock(&sim_lock);
	c->next = sim_contexts;
	__atomic_store_n(&sim_contexts, c, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&sim_lock);
	truth__say("{\"t\":\"context\",\"id\":%u,\"device\":%d,\"null_stream\":%u}", c->id,
		   d->ordinal, c->legacy->id);
	if (hooks)
		hooks->context(c->id, (uint32_t)d->ordinal, c->legacy->id);
	return c;
}

static struct sim_device *find_device(CUdevice device)
{
	return device >= 0 && device < sim_nr_devices ? &sim_devices[device] : NULL;
}

/* ---- devices ---- */

static int version(const struct sim_api *api, int *value)
{
	struct sim_call call;

	sim_enter(&call, SIM_DRIVER, api->cbid, api->name, NULL); /* allowed before cuInit */
	if (!value)
		return sim_leave(&call, SIM_INVALID_VALUE, NULL);
	*value = sim_table.driver_version;
	return sim_leave(&call, 0, NULL);
}
SIM_API(cuDriverGetVersion, (int *value), version(&api, value))

static int get_count(const struct sim_api *api, int *count)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		*count = sim_nr_devices;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceGetCount, (int *count), get_count(&api, count))

static int get_device(const struct sim_api *api, CUdevice *device, int ordinal)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(ordinal) ? 0 : SIM_INVALID_DEVICE;
	if (!err)
		*device = ordinal;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceGet, (CUdevice * device, int ordinal), get_device(&api, device, ordinal))

static int get_name(const struct sim_api *api, char *name, int bytes, CUdevice device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(device) ? 0 : SIM_INVALID_DEVICE;
	if (!err)
		snprintf(name, (size_t)bytes, "%s", sim_devices[device].name);
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceGetName, (char *name, int bytes, CUdevice device),
	get_name(&api, name, bytes, device))

static int get_uuid(const struct sim_api *api, struct sim_uuid *uuid, CUdevice device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(device) ? 0 : SIM_INVALID_DEVICE;
	if (!err)
		*uuid = sim_table.device(device).uuid;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceGetUuid, (struct sim_uuid * uuid, CUdevice device), get_uuid(&api, uuid, device))
SIM_API(cuDeviceGetUuid_v2, (struct sim_uuid * uuid, CUdevice device), get_uuid(&api, uuid, device))

static int total_memory(const struct sim_api *api, size_t *bytes, CUdevice device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(device) ? 0 : SIM_INVALID_DEVICE;
	if (!err)
		*bytes = sim_devices[device].memory_bytes;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), total_memory(&api, bytes, device))

/* A device of no maker, with the figures of a middling one of compute capability 8.0. */
static const struct {
	int attribute, value;
} attributes[] = {
	{SIM_ATTR_MAX_THREADS_PER_BLOCK, 1024},
	{SIM_ATTR_MAX_BLOCK_DIM_X, 1024},
	{SIM_ATTR_MAX_BLOCK_DIM_Y, 1024},
	{SIM_ATTR_MAX_BLOCK_DIM_Z, 64},
	{SIM_ATTR_MAX_GRID_DIM_X, 0x7fffffff},
	{SIM_ATTR_MAX_GRID_DIM_Y, 65535},
	{SIM_ATTR_MAX_GRID_DIM_Z, 65535},
	{SIM_ATTR_SHARED_PER_BLOCK, 49152},
	{SIM_ATTR_CONSTANT_MEMORY, 65536},
	{SIM_ATTR_WARP_SIZE, 32},
	{SIM_ATTR_REGISTERS_PER_BLOCK, 65536},
	{SIM_ATTR_CLOCK_RATE, 1410000},
	{SIM_ATTR_GPU_OVERLAP, 1},
	{SIM_ATTR_MULTIPROCESSORS, 108},
	{SIM_ATTR_CAN_MAP_HOST_MEMORY, 1},
	{SIM_ATTR_CONCURRENT_KERNELS, 1},
	{SIM_ATTR_ECC, 1},
	{SIM_ATTR_PCI_DEVICE, 0},
	{SIM_ATTR_PCI_DOMAIN, 0},
	{SIM_ATTR_MEMORY_CLOCK_RATE, 1215000},
	{SIM_ATTR_MEMORY_BUS_WIDTH, 5120},
	{SIM_ATTR_L2_BYTES, 41943040},
	{SIM_ATTR_THREADS_PER_MULTIPROCESSOR, 2048},
	{SIM_ATTR_ASYNC_ENGINES, 3},
	{SIM_ATTR_UNIFIED_ADDRESSING, 1},
	{SIM_ATTR_COMPUTE_MAJOR, 8},
	{SIM_ATTR_COMPUTE_MINOR, 0},
	{SIM_ATTR_STREAM_PRIORITIES, 1},
	{SIM_ATTR_SHARED_PER_MULTIPROCESSOR, 167936},
	{SIM_ATTR_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{SIM_ATTR_MANAGED_MEMORY, 1},
	{SIM_ATTR_COOPERATIVE_LAUNCH, 1},
	{SIM_ATTR_SHARED_PER_BLOCK_OPTIN, 166912},
	{SIM_ATTR_BLOCKS_PER_MULTIPROCESSOR, 32},
	{SIM_ATTR_RESERVED_SHARED_PER_BLOCK, 1024},
	{SIM_ATTR_MEMORY_POOLS, 1},
};

int sim_context__attribute(int *value, int attribute, int ordinal)
{
	if (!value)
		return SIM_INVALID_VALUE;
	if (!find_device(ordinal))
		return SIM_INVALID_DEVICE;
	*value = attribute == SIM_ATTR_PCI_BUS ? ordinal + 1 : 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	return 0;
}

static int get_attribute(const struct sim_api *api, int *value, int attribute, CUdevice device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = sim_context__attribute(value, attribute, device);
	return sim_leave(&call, err, "\"attribute\":%d", attribute);
}
SIM_API(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device),
	get_attribute(&api, value, attribute, device))

static int can_access(const struct sim_api *api, int *can, CUdevice device, CUdevice peer)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(device) && find_device(peer) ? 0 : SIM_INVALID_DEVICE;
	if (!err)
		*can = device != peer;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer),
	can_access(&api, can, device, peer))

static int enable_peer(const struct sim_api *api, CUcontext peer)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = sim_context__valid(peer) ? 0 : SIM_INVALID_CONTEXT;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), enable_peer(&api, peer))

/* ---- primary contexts ---- */

static int retain(const struct sim_api *api, CUcontext *context, CUdevice device)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct sim_device *d = find_device(device);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = d ? 0 : SIM_INVALID_DEVICE;
	if (!err) {
		pthread_mutex_lock(&lock);
		if (!d->primary || d->primary->dead)
			d->primary = new_context(d);
		if (d->primary)
			d->primary_refs++;
		*context = d->primary;
		err = d->primary ? 0 : SIM_OUT_OF_MEMORY;
		pthread_mutex_unlock(&lock);
	}
	return sim_leave(&call, err, "\"device\":%d", device);
}
SIM_API(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
	retain(&api, context, device))

static void kill_context(struct sim_context *c)
{
	const struct sim_hooks *hooks = sim_engine__hooks();

	if (hooks && hooks->context_ends)
		hooks->context_ends(c);
	for (struct sim_stream *s = c->streams; s; s = s->next)
		sim_stream__wait(s);
	sim_stream__wait(c->legacy);
	c->dead = true;
}

static int release(const struct sim_api *api, CUdevice device, bool all)
{
	struct sim_device *d = find_device(device);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = d ? 0 : SIM_INVALID_DEVICE;
	if (!err && !d->primary_refs && !all)
		err = SIM_INVALID_CONTEXT;
	if (!err && d->primary && (all || !--d->primary_refs)) {
		kill_context(d->primary);
		d->primary = NULL;
		d->primary_refs = 0;
	}
	return sim_leave(&call, err, "\"device\":%d", device);
}
SIM_API(cuDevicePrimaryCtxRelease, (CUdevice device), release(&api, device, false))
SIM_API(cuDevicePrimaryCtxRelease_v2, (CUdevice device), release(&api, device, false))
SIM_API(cuDevicePrimaryCtxReset, (CUdevice device), release(&api, device, true))
SIM_API(cuDevicePrimaryCtxReset_v2, (CUdevice device), release(&api, device, true))

static int get_state(const struct sim_api *api, CUdevice device, unsigned *flags, int *active)
{
	struct sim_device *d = find_device(device);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = d ? 0 : SIM_INVALID_DEVICE;
	if (!err) {
		*flags = 0;
		*active = d->primary != NULL;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active),
	get_state(&api, device, flags, active))

static int set_flags(const struct sim_api *api, CUdevice device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = find_device(device) ? 0 : SIM_INVALID_DEVICE;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags),
	set_flags(&api, device))

/* ---- contexts ---- */

static int push(struct sim_context *c)
{
	if (depth + 1 == MAX_STACK)
		return SIM_OUT_OF_MEMORY;
	stack[++depth] = c;
	return 0;
}

static int create(const struct sim_api *api, CUcontext *context, CUdevice device)
{
	struct sim_device *d = find_device(device);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = d ? 0 : SIM_INVALID_DEVICE;
	if (!err) {
		*context = new_context(d);
		err = *context ? push(*context) : SIM_OUT_OF_MEMORY;
	}
	return sim_leave(&call, err, "\"device\":%d", device);
}
SIM_API(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
	create(&api, context, device))

enum context_op { CTX_DESTROY, CTX_PUSH, CTX_SET };
static int with_context(const struct sim_api *api, CUcontext context, enum context_op op)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && (context || op != CTX_SET))
		err = sim_context__valid(context) ? 0 : SIM_INVALID_CONTEXT;
	if (!err) {
		if (op == CTX_PUSH)
			err = push(context);
		else if (op == CTX_SET)
			sim_context__set_current(context);
		else
			kill_context(context);
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxDestroy_v2, (CUcontext context), with_context(&api, context, CTX_DESTROY))
SIM_API(cuCtxPushCurrent_v2, (CUcontext context), with_context(&api, context, CTX_PUSH))
SIM_API(cuCtxSetCurrent, (CUcontext context), with_context(&api, context, CTX_SET))

static int get_current(const struct sim_api *api, CUcontext *context, bool pop)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && context)
		*context = sim_context__current();
	if (!err && pop && depth)
		stack[depth--] = NULL;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxGetCurrent, (CUcontext * context), get_current(&api, context, false))
SIM_API(cuCtxPopCurrent_v2, (CUcontext * context), get_current(&api, context, true))

static int context_device(const struct sim_api *api, CUdevice *device)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_context *c = sim_context__current();

	if (!err)
		err = c ? 0 : SIM_INVALID_CONTEXT;
	if (!err)
		*device = c->device->ordinal;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxGetDevice, (CUdevice * device), context_device(&api, device))

static int context_id(const struct sim_api *api, CUcontext context, unsigned long long *id)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_context *c = context ? sim_context__valid(context) : sim_context__current();

	if (!err)
		err = c ? 0 : SIM_INVALID_CONTEXT;
	if (!err)
		*id = c->id;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxGetId, (CUcontext context, unsigned long long *id), context_id(&api, context, id))

static int api_version(const struct sim_api *api, unsigned *value)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		*value = 3020;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxGetApiVersion, (CUcontext context, unsigned int *value), api_version(&api, value))

static int priorities(const struct sim_api *api, int *least, int *greatest)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		if (least)
			*least = 0;
		if (greatest)
			*greatest = -5;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest), priorities(&api, least, greatest))

static int profiler(const struct sim_api *api)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	return sim_leave(&call, err, NULL);
}
SIM_API(cuProfilerStart, (void), profiler(&api))
SIM_API(cuProfilerStop, (void), profiler(&api))
