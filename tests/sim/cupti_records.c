/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: CUPTI's records: of which kind and how long, and what is in them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti.h"

#define BIT CUPTI_BIT
#define ON CUPTI_ON

/*
 * How long records are, by cuptiGetVersion()'s number; of a version in between, as the one before.
 */
static const struct layout {
	uint32_t version;
	uint16_t kernel, copy, device, context, overhead, event, sync, graph, memory;
} layouts[] = {
	{17, 176, 88, 176, 16, 40, 24, 40, 48, 120},     /* 11.7 */
	{18, 208, 88, 176, 16, 40, 24, 40, 48, 120},     /* 12.1 */
	{22, 208, 88, 184, 24, 56, 24, 40, 56, 120},     /* 12.4 */
	{24, 208, 88, 184, 32, 56, 24, 40, 56, 120},     /* 12.6 */
	{26, 208, 96, 184, 32, 56, 56, 56, 56, 128},     /* 12.8 */
	{130000, 216, 96, 184, 32, 56, 56, 56, 56, 128}, /* 13.0 */
	{130200, 224, 96, 192, 40, 56, 56, 56, 56, 128}, /* 13.2 */
};

static const struct layout *layout(void)
{
	uint32_t version = cupti_version();
	const struct layout *l = &layouts[0];

	for (size_t i = 1; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version <= version)
			l = &layouts[i];
	return l;
}

size_t cupti_record_bytes(uint32_t kind)
{
	const struct layout *l = layout();

	switch (kind) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return l->kernel;
	case CUPTI_KIND_MEMCPY:
		return l->copy;
	case CUPTI_KIND_MEMCPY2:
		return sizeof(struct cupti_record_peer);
	case CUPTI_KIND_MEMSET:
		return sizeof(struct cupti_record_memset);
	case CUPTI_KIND_MEMORY2:
		return l->memory;
	case CUPTI_KIND_DRIVER:
	case CUPTI_KIND_RUNTIME:
		return sizeof(struct cupti_record_api);
	case CUPTI_KIND_DEVICE:
		return l->device;
	case CUPTI_KIND_CONTEXT:
		return l->context;
	case CUPTI_KIND_OVERHEAD:
		return l->overhead;
	case CUPTI_KIND_CUDA_EVENT:
		return l->event;
	case CUPTI_KIND_STREAM:
		return sizeof(struct cupti_record_stream);
	case CUPTI_KIND_SYNCHRONIZATION:
		return l->sync;
	case CUPTI_KIND_EXTERNAL_CORRELATION:
		return sizeof(struct cupti_record_external);
	case CUPTI_KIND_GRAPH_TRACE:
		return l->graph;
	default:
		return 0;
	}
}

/* ---- external correlation ---- */

#define EXTERNAL_KINDS 8
#define EXTERNAL_DEPTH 64
static _Thread_local struct {
	uint64_t ids[EXTERNAL_DEPTH];
	unsigned nr;
} externals[EXTERNAL_KINDS];

SIM_EXPORT int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (kind <= 0 || kind >= EXTERNAL_KINDS || externals[kind].nr == EXTERNAL_DEPTH)
		return CUPTI_ERROR_INVALID_PARAMETER;
	externals[kind].ids[externals[kind].nr++] = id;
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *id)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (kind <= 0 || kind >= EXTERNAL_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!externals[kind].nr)
		return CUPTI_ERROR_QUEUE_EMPTY;
	externals[kind].nr--;
	if (id)
		*id = externals[kind].ids[externals[kind].nr];
	return CUPTI_SUCCESS;
}

static void record_externals(uint32_t correlation)
{
	for (uint32_t kind = 1; kind < EXTERNAL_KINDS; kind++) {
		struct cupti_record_external r = {.kind = CUPTI_KIND_EXTERNAL_CORRELATION,
						  .externalKind = kind,
						  .correlationId = correlation};

		if (!externals[kind].nr)
			continue;
		r.externalId = externals[kind].ids[externals[kind].nr - 1];
		cupti_put(CUPTI_CALLS, &r);
	}
}

/* ---- calls ---- */

static int thread_id_type; /* 0: pthread_self(), 1: the system's */

SIM_EXPORT int cuptiSetThreadIdType(int type)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (type != 0 && type != 1)
		return CUPTI_ERROR_INVALID_PARAMETER;
	thread_id_type = type;
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiGetThreadIdType(int *type)
{
	if (!type)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*type = thread_id_type;
	return CUPTI_SUCCESS;
}

static uint32_t thread_id(void)
{
	return thread_id_type ? (uint32_t)syscall(SYS_gettid) : (uint32_t)pthread_self();
}

void cupti_record_call(struct sim_call *call)
{
	uint32_t kind = call->domain == SIM_RUNTIME ? CUPTI_KIND_RUNTIME : CUPTI_KIND_DRIVER;
	struct cupti_record_api r = {.kind = kind,
				     .cbid = call->cbid,
				     .correlationId = call->correlation,
				     .returnValue = (uint32_t)call->result};

	if (ON(CUPTI_KIND_EXTERNAL_CORRELATION) && !call->parent)
		record_externals(call->correlation);
	if (!ON(kind) || cupti_leaves_out(kind, call->cbid))
		return;
	r.processId = (uint32_t)getpid();
	r.threadId = thread_id();
	r.start = cupti_time(call->start_ns);
	r.end = cupti_time(call->end_ns);
	call->recorded = cupti_put(CUPTI_CALLS, &r);
}

/* ---- what the device did ---- */

/* Writes the record of it: of its place without times, or into its place. */
static bool put_work(void *record, struct sim_activity *a, bool finished)
{
	if (finished)
		return cupti_fill(a->slot, record, cupti_settings.late_ns);
	a->slot = cupti_reserve(record);
	return a->slot != NULL;
}

static uint64_t device_time(uint64_t mono_ns, bool finished)
{
	return finished ? cupti_device_time(mono_ns) : 0; /* CUPTI_TIMESTAMP_UNKNOWN */
}

static bool kernel(struct sim_activity *a, bool finished)
{
	struct cupti_record_kernel r = {
		.kind = ON(CUPTI_KIND_CONCURRENT_KERNEL) ? CUPTI_KIND_CONCURRENT_KERNEL
							 : CUPTI_KIND_KERNEL,
		.registersPerThread = (uint16_t)a->registers,
		.start = device_time(a->start_ns, finished),
		.end = device_time(a->end_ns, finished),
		.deviceId = a->device,
		.contextId = a->context,
		.streamId = a->stream,
		.gridX = (int32_t)a->grid[0],
		.gridY = (int32_t)a->grid[1],
		.gridZ = (int32_t)a->grid[2],
		.blockX = (int32_t)a->block[0],
		.blockY = (int32_t)a->block[1],
		.blockZ = (int32_t)a->block[2],
		.staticSharedMemory = (int32_t)a->static_shared,
		.dynamicSharedMemory = (int32_t)a->dynamic_shared,
		.localMemoryPerThread = a->local,
		.correlationId = a->correlation,
		.gridId = a->correlation,
		.name = a->name,
		.sharedMemoryExecuted = 167936,
		.graphNodeId = a->node,
		.graphId = a->graph,
		.channelID = a->channel,
		.channelType = a->channel_type,
		.priority = a->priority,
	};

	return put_work(&r, a, finished);
}

static bool copy(struct sim_activity *a, bool finished)
{
	struct cupti_record_memcpy r = {
		.kind = CUPTI_KIND_MEMCPY,
		.copyKind = a->copy_kind,
		.srcKind = a->from,
		.dstKind = a->to,
		.flags = a->async,
		.bytes = a->bytes,
		.start = device_time(a->start_ns, finished),
		.end = device_time(a->end_ns, finished),
		.deviceId = a->device,
		.contextId = a->context,
		.streamId = a->stream,
		.correlationId = a->correlation,
		.graphNodeId = a->node,
		.graphId = a->graph,
		.channelID = a->channel,
		.channelType = a->channel_type,
		.copyCount = 1,
	};

	return put_work(&r, a, finished);
}

static bool peer_copy(struct sim_activity *a, bool finished)
{
	struct cupti_record_peer r = {
		.kind = CUPTI_KIND_MEMCPY2,
		.copyKind = a->copy_kind,
		.srcKind = a->from,
		.dstKind = a->to,
		.flags = a->async,
		.bytes = a->bytes,
		.start = device_time(a->start_ns, finished),
		.end = device_time(a->end_ns, finished),
		.deviceId = a->device,
		.contextId = a->context,
		.streamId = a->stream,
		.srcDeviceId = a->from_device,
		.srcContextId = a->from_context,
		.dstDeviceId = a->to_device,
		.dstContextId = a->to_context,
		.correlationId = a->correlation,
		.graphNodeId = a->node,
		.graphId = a->graph,
		.channelID = a->channel,
		.channelType = a->channel_type,
	};

	return put_work(&r, a, finished);
}

static bool set(struct sim_activity *a, bool finished)
{
	struct cupti_record_memset r = {
		.kind = CUPTI_KIND_MEMSET,
		.value = a->value,
		.bytes = a->bytes,
		.start = device_time(a->start_ns, finished),
		.end = device_time(a->end_ns, finished),
		.deviceId = a->device,
		.contextId = a->context,
		.streamId = a->stream,
		.correlationId = a->correlation,
		.flags = a->async,
		.memoryKind = a->to,
		.graphNodeId = a->node,
		.graphId = a->graph,
		.channelID = a->channel,
		.channelType = a->channel_type,
	};

	return put_work(&r, a, finished);
}

static bool sync_record(const struct sim_activity *a)
{
	struct cupti_record_sync r = {
		.kind = CUPTI_KIND_SYNCHRONIZATION,
		.type = a->sync_kind,
		.start = cupti_time(a->start_ns),
		.end = cupti_time(a->end_ns),
		.correlationId = a->correlation,
		.contextId = a->context,
		.streamId = a->stream,
		.cudaEventId =
			a->event ? a->event : UINT32_MAX, /* CUPTI_SYNCHRONIZATION_INVALID_VALUE */
		.cudaEventSyncId = a->event_sync,
	};

	return cupti_put(CUPTI_CALLS, &r);
}

static bool event(struct sim_activity *a, bool finished)
{
	struct cupti_record_event r = {
		.kind = CUPTI_KIND_CUDA_EVENT,
		.correlationId = a->correlation,
		.contextId = a->context,
		.streamId = a->stream,
		.eventId = a->event,
		.deviceId = a->device,
		.deviceTimestamp = cupti_event_times ? device_time(a->end_ns, finished) : 0,
		.cudaEventSyncId = a->event_sync,
	};

	return put_work(&r, a, finished);
}

static bool graph(struct sim_activity *a, bool finished)
{
	struct cupti_record_graph r = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.correlationId = a->correlation,
		.start = device_time(a->start_ns, finished),
		.end = device_time(a->end_ns, finished),
		.deviceId = a->device,
		.graphId = a->graph,
		.contextId = a->context,
		.streamId = a->stream,
		.endDeviceId = a->device,
		.endContextId = a->context,
	};

	return put_work(&r, a, finished);
}

/* Of which kind a record of it would be; 0: of none. */
static uint64_t kinds_of(const struct sim_activity *a)
{
	switch (a->type) {
	case SIM_KERNEL:
		return BIT(CUPTI_KIND_KERNEL) | BIT(CUPTI_KIND_CONCURRENT_KERNEL);
	case SIM_COPY:
		return a->copy_kind == 10 ? BIT(CUPTI_KIND_MEMCPY2) : BIT(CUPTI_KIND_MEMCPY);
	case SIM_SET:
		return BIT(CUPTI_KIND_MEMSET);
	case SIM_SYNC:
		return BIT(CUPTI_KIND_SYNCHRONIZATION);
	case SIM_EVENT_RECORD:
		return BIT(CUPTI_KIND_CUDA_EVENT);
	case SIM_GRAPH:
		return BIT(CUPTI_KIND_GRAPH_TRACE);
	default:
		return 0;
	}
}

static bool record(struct sim_activity *a, bool finished)
{
	switch (a->type) {
	case SIM_KERNEL:
		return kernel(a, finished);
	case SIM_COPY:
		return a->copy_kind == 10 ? peer_copy(a, finished) : copy(a, finished);
	case SIM_SET:
		return set(a, finished);
	case SIM_EVENT_RECORD:
		return event(a, finished);
	default:
		return graph(a, finished);
	}
}

void cupti_record_queued(struct sim_activity *a)
{
	static uint64_t nr;

	if (!(__atomic_load_n(&cupti_enabled, __ATOMIC_RELAXED) & kinds_of(a)))
		return;
	/* Graphs are traced as wholes, or by their nodes. */
	if (a->node && ON(CUPTI_KIND_GRAPH_TRACE))
		return;
	if (cupti_settings.drop &&
	    __atomic_add_fetch(&nr, 1, __ATOMIC_RELAXED) % cupti_settings.drop == 0) {
		cupti_count_dropped();
		a->fate = SIM_FATE_DROPPED;
		return;
	}
	a->fate = record(a, false) ? SIM_FATE_RECORDED : SIM_FATE_DROPPED;
}

enum sim_fate cupti_record_finished(const struct sim_activity *a)
{
	struct sim_activity copy = *a;

	cupti_profile(a);
	if (a->type == SIM_SYNC)
		return !ON(CUPTI_KIND_SYNCHRONIZATION) ? SIM_FATE_OFF
		       : sync_record(a)                ? SIM_FATE_RECORDED
						       : SIM_FATE_DROPPED;
	if (a->fate != SIM_FATE_RECORDED)
		return a->fate;
	return record(&copy, true) ? SIM_FATE_RECORDED : SIM_FATE_INCOMPLETE;
}

/* ---- what there is ---- */

static uint32_t attribute(int which, int ordinal)
{
	int value = 0;

	sim->device_attribute(&value, which, ordinal);
	return (uint32_t)value;
}

void cupti_record_device(int ordinal)
{
	struct sim_device_info info = sim->device(ordinal);
#define A(name) attribute(SIM_ATTR_##name, ordinal)
	struct cupti_record_device r = {
		.kind = CUPTI_KIND_DEVICE,
		.flags = 1, /* concurrent kernels */
		.globalMemoryBandwidth = 2ull * A(MEMORY_CLOCK_RATE) * A(MEMORY_BUS_WIDTH) / 8,
		.globalMemorySize = info.memory_bytes,
		.constantMemorySize = A(CONSTANT_MEMORY),
		.l2CacheSize = A(L2_BYTES),
		.numThreadsPerWarp = A(WARP_SIZE),
		.coreClockRate = A(CLOCK_RATE),
		.numMemcpyEngines = A(ASYNC_ENGINES),
		.numMultiprocessors = A(MULTIPROCESSORS),
		.maxWarpsPerMultiprocessor = A(THREADS_PER_MULTIPROCESSOR) / A(WARP_SIZE),
		.maxBlocksPerMultiprocessor = A(BLOCKS_PER_MULTIPROCESSOR),
		.maxSharedMemoryPerMultiprocessor = A(SHARED_PER_MULTIPROCESSOR),
		.maxRegistersPerMultiprocessor = A(REGISTERS_PER_MULTIPROCESSOR),
		.maxRegistersPerBlock = A(REGISTERS_PER_BLOCK),
		.maxSharedMemoryPerBlock = A(SHARED_PER_BLOCK),
		.maxThreadsPerBlock = A(MAX_THREADS_PER_BLOCK),
		.maxBlockDimX = A(MAX_BLOCK_DIM_X),
		.maxBlockDimY = A(MAX_BLOCK_DIM_Y),
		.maxBlockDimZ = A(MAX_BLOCK_DIM_Z),
		.maxGridDimX = A(MAX_GRID_DIM_X),
		.maxGridDimY = A(MAX_GRID_DIM_Y),
		.maxGridDimZ = A(MAX_GRID_DIM_Z),
		.computeCapabilityMajor = A(COMPUTE_MAJOR),
		.computeCapabilityMinor = A(COMPUTE_MINOR),
		.id = (uint32_t)ordinal,
		.eccEnabled = A(ECC),
		.name = info.name,
		.isCudaVisible = 1,
	};
#undef A

	memcpy(r.uuid, info.uuid.bytes, 16);
	cupti_put(CUPTI_WORK, &r);
}

void cupti_record_context(uint32_t context, uint32_t device, uint32_t null_stream)
{
	struct cupti_record_context r = {.kind = CUPTI_KIND_CONTEXT,
					 .contextId = context,
					 .deviceId = device,
					 .computeApiKind = 1,
					 .nullStreamId = (uint16_t)null_stream,
					 .numMultiprocessors = 108,
					 .processId = (uint64_t)getpid()};

	if (ON(CUPTI_KIND_CONTEXT))
		cupti_put(CUPTI_WORK, &r);
}

void cupti_record_stream(uint32_t context, uint32_t stream, uint32_t priority, uint32_t flag)
{
	struct cupti_record_stream r = {.kind = CUPTI_KIND_STREAM,
					.contextId = context,
					.streamId = stream,
					.priority = priority,
					.flag = flag,
					.correlationId =
						sim->current() ? sim->current()->correlation : 0};

	if (ON(CUPTI_KIND_STREAM))
		cupti_put(CUPTI_CALLS, &r);
}

void cupti_record_memory(bool release, uint64_t address, uint64_t bytes, uint32_t memory,
			 uint32_t context, uint32_t device)
{
	struct cupti_record_memory r = {.kind = CUPTI_KIND_MEMORY2,
					.memoryOperationType = release ? 2 : 1,
					.memoryKind = memory,
					.address = address,
					.bytes = bytes,
					.timestamp = cupti_time(sim->now_ns()),
					.processId = (uint32_t)getpid(),
					.deviceId = device,
					.contextId = context};

	if (!ON(CUPTI_KIND_MEMORY2))
		return;
	if (sim->current())
		r.correlationId = sim->current()->correlation;
	cupti_put(CUPTI_CALLS, &r);
}

void cupti_record_overhead(uint32_t overhead_kind, uint64_t start_ns, uint64_t end_ns)
{
	struct cupti_record_overhead r = {.kind = CUPTI_KIND_OVERHEAD,
					  .overheadKind = overhead_kind,
					  .objectKind = 2, /* a thread */
					  .start = cupti_time(start_ns),
					  .end = cupti_time(end_ns)};

	if (!ON(CUPTI_KIND_OVERHEAD))
		return;
	r.objectId[0] = (uint32_t)getpid();
	r.objectId[1] = thread_id();
	sim->say("{\"t\":\"overhead\",\"kind\":%u,\"start\":%lu,\"end\":%lu}", overhead_kind,
		 start_ns, end_ns);
	cupti_put(CUPTI_CALLS, &r);
}
