// SPDX-License-Identifier: BSD-2-Clause
/* Turns CUPTI's records into kprof's. */
#include <string.h>

#include "gpu/base/batch.h"
#include "gpu/cupti/cupti.h"

#define CALLS CUPTI_CALLS
#define EVENTS 4096 /* events whose last records are kept, for calls that wait for them */
#define SKIP UINT32_MAX

/*
 * Written and read by CUPTI's thread and by the agent's, without a lock: all are single words, or
 * entries that may at worst be mixed up so that a wait lacks its event.
 */
static struct {
	uint32_t call[2][CALLS]; /* name ids; 0: not known yet, SKIP: not recorded */
	struct {
		uint32_t context, event, correlation, stream;
		uint64_t sync;
	} event[EVENTS];
} known;

void cupti_records__reset(void)
{
	memset(&known, 0, sizeof(known));
}

static uint64_t mono(const struct cupti_reader *r, uint64_t time)
{
	return time && r->to_mono ? r->to_mono(time) : time;
}

/* Was the record flushed before its work was done? Then one of its times is 0. */
static bool unfinished(uint64_t start, uint64_t end)
{
	if (start && end)
		return false;
	__atomic_fetch_add(&gpu_shm()->device_dropped, 1, __ATOMIC_RELAXED);
	return true;
}

static void read_kernel(const struct cupti_reader *r, const struct cupti_kernel *k, size_t bytes)
{
	struct kprof_agent_kernel out;

	if (unfinished(k->start, k->end))
		return;
	out = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL,
			     batch__name_of(k->name));
	out.a.start_ns = mono(r, k->start);
	out.a.end_ns = mono(r, k->end);
	out.a.queued_ns = mono(r, k->queued);
	out.a.correlation = k->correlation;
	out.a.device = k->device;
	out.a.context = k->context;
	out.a.stream = k->stream;
	out.a.type = KPROF_ACTIVITY_KERNEL;
	for (int i = 0; i < 3; i++) {
		out.grid[i] = (uint32_t)k->grid[i];
		out.block[i] = (uint32_t)k->block[i];
	}
	out.static_shared_bytes = (uint32_t)k->static_shared;
	out.dynamic_shared_bytes = (uint32_t)k->dynamic_shared;
	out.local_bytes_per_thread = k->local_per_thread;
	out.registers = k->registers;
	out.shared_config_bytes = k->shared_executed;
	out.graph = k->graph;
	out.graph_node = k->graph_node;
	if (CUPTI_HAS(k, bytes, channel_type)) {
		out.a.has |= KPROF_AGENT_HAS_CHANNEL;
		out.channel = k->channel;
		out.channel_type = (kprof_u8)k->channel_type;
	}
	if (CUPTI_HAS(k, bytes, priority)) {
		out.a.has |= KPROF_AGENT_HAS_PRIORITY;
		out.priority = (kprof_s16)k->priority;
	}
	batch__append(&out);
}

/* Fields that all copies have: there are two kinds of records, which begin alike. */
static struct kprof_agent_copy copy_of(const struct cupti_reader *r, const struct cupti_memcpy *m)
{
	struct kprof_agent_copy out = BATCH_ACTIVITY(struct kprof_agent_copy, KPROF_AGENT_COPY, 0);

	out.a.start_ns = mono(r, m->start);
	out.a.end_ns = mono(r, m->end);
	out.a.bytes = m->bytes;
	out.a.device = m->device;
	out.a.context = m->context;
	out.a.stream = m->stream;
	out.a.type = KPROF_ACTIVITY_GPU_MEMCPY;
	out.kind = m->copy;
	out.from = m->from;
	out.to = m->to;
	return out;
}

static void set_channel(struct kprof_agent_copy *out, uint32_t channel, uint32_t type)
{
	out->a.has |= KPROF_AGENT_HAS_CHANNEL;
	out->channel = channel;
	out->channel_type = (kprof_u8)type;
}

static void read_memcpy(const struct cupti_reader *r, const struct cupti_memcpy *m, size_t bytes)
{
	struct kprof_agent_copy out;

	if (unfinished(m->start, m->end))
		return;
	out = copy_of(r, m);
	out.a.correlation = m->correlation;
	out.graph = m->graph;
	out.graph_node = m->graph_node;
	if (CUPTI_HAS(m, bytes, channel_type))
		set_channel(&out, m->channel, m->channel_type);
	batch__append(&out);
}

static void read_memcpy_peer(const struct cupti_reader *r, const struct cupti_memcpy_peer *m,
			     size_t bytes)
{
	struct kprof_agent_copy out;

	_Static_assert(offsetof(struct cupti_memcpy_peer, stream) ==
			       offsetof(struct cupti_memcpy, stream),
		       "both kinds of copies begin alike");
	if (unfinished(m->start, m->end))
		return;
	out = copy_of(r, (const struct cupti_memcpy *)(const void *)m);
	out.a.correlation = m->correlation;
	out.graph = m->graph;
	out.graph_node = m->graph_node;
	out.from_device = m->from_device;
	out.from_context = m->from_context;
	out.to_device = m->to_device;
	out.to_context = m->to_context;
	if (CUPTI_HAS(m, bytes, channel_type))
		set_channel(&out, m->channel, m->channel_type);
	batch__append(&out);
}

static void read_memset(const struct cupti_reader *r, const struct cupti_memset *m, size_t bytes)
{
	struct kprof_agent_copy out;

	if (unfinished(m->start, m->end))
		return;
	out = BATCH_ACTIVITY(struct kprof_agent_copy, KPROF_AGENT_COPY, 0);
	out.a.start_ns = mono(r, m->start);
	out.a.end_ns = mono(r, m->end);
	out.a.correlation = m->correlation;
	out.a.bytes = m->bytes;
	out.a.device = m->device;
	out.a.context = m->context;
	out.a.stream = m->stream;
	out.a.type = KPROF_ACTIVITY_GPU_MEMSET;
	out.to = (kprof_u8)m->memory;
	out.value = m->value;
	out.graph = m->graph;
	out.graph_node = m->graph_node;
	if (CUPTI_HAS(m, bytes, channel_type))
		set_channel(&out, m->channel, m->channel_type);
	batch__append(&out);
}

static void read_memory(const struct cupti_reader *r, const struct cupti_memory *m)
{
	struct kprof_agent_alloc out;

	if (m->operation != CUPTI_MEMORY_ALLOCATION && m->operation != CUPTI_MEMORY_RELEASE)
		return;
	out = BATCH_RECORD(struct kprof_agent_alloc, KPROF_AGENT_ALLOC, 0);
	out.time_ns = mono(r, m->time);
	out.address = m->address;
	out.bytes = m->bytes;
	out.correlation = m->correlation;
	out.device = m->device;
	out.context = m->context;
	out.memory = (kprof_u8)m->memory;
	out.release = m->operation == CUPTI_MEMORY_RELEASE;
	batch__append(&out);
}

static size_t event_slot(uint32_t context, uint32_t event)
{
	return (context * 2654435761u ^ event) % EVENTS;
}

static void read_event(const struct cupti_reader *r, const struct cupti_event *e, size_t bytes)
{
	size_t slot = event_slot(e->context, e->event);
	struct kprof_agent_event out;

	known.event[slot].context = e->context;
	known.event[slot].event = e->event;
	known.event[slot].correlation = e->correlation;
	known.event[slot].stream = e->stream;
	known.event[slot].sync = CUPTI_HAS(e, bytes, event_sync) ? e->event_sync : 0;
	if (!r->events)
		return;
	out = BATCH_RECORD(struct kprof_agent_event, KPROF_AGENT_EVENT, 0);
	out.correlation = e->correlation;
	out.event = e->event;
	out.context = e->context;
	out.stream = e->stream;
	out.device = KPROF_AGENT_DEVICE_OF_CONTEXT;
	if (CUPTI_HAS(e, bytes, event_sync)) {
		out.device = e->device;
		out.time_ns = r->event_times ? mono(r, e->device_time) : 0;
	}
	batch__append(&out);
}

static void read_sync(const struct cupti_reader *r, const struct cupti_sync *s, size_t bytes)
{
	uint64_t sync = CUPTI_HAS(s, bytes, event_sync) ? s->event_sync : 0;
	size_t slot = event_slot(s->context, s->event);
	struct kprof_agent_sync out;

	if (!r->sync || unfinished(s->start, s->end))
		return;
	out = BATCH_ACTIVITY(struct kprof_agent_sync, KPROF_AGENT_SYNC, 0);
	out.a.start_ns = mono(r, s->start);
	out.a.end_ns = mono(r, s->end);
	out.a.correlation = s->correlation;
	out.a.context = s->context;
	out.a.stream = s->stream;
	out.a.type = KPROF_ACTIVITY_CUDA_SYNC;
	out.a.device = KPROF_AGENT_DEVICE_OF_CONTEXT; /* CUPTI does not say */
	out.kind = s->type;
	if (s->type == KPROF_AGENT_SYNC_EVENT || s->type == KPROF_AGENT_SYNC_STREAM_WAIT_EVENT) {
		out.event = s->event;
		if (known.event[slot].context == s->context &&
		    known.event[slot].event == s->event &&
		    (!sync || !known.event[slot].sync || known.event[slot].sync == sync)) {
			out.event_correlation = known.event[slot].correlation;
			out.event_stream = known.event[slot].stream;
		}
	}
	batch__append(&out);
}

/*
 * Is this a call that never causes work on a device, and that frameworks make several times for
 * each operator?
 */
static bool of_no_interest(const char *name)
{
	static const char *const prefixes[] = {
		"cudaGetDevice",         "cudaSetDevice",
		"cudaGetLastError",      "cudaPeekAtLastError",
		"cudaDeviceGetAttr",     "cudaFuncGetAttr",
		"cudaFuncSetAttr",       "cudaOccupancy",
		"cudaStreamIsCapturing", "cudaPointerGetAttr",
		"cudaStreamGetCaptureI", "cudaThreadExchangeStreamCapture",
		"cuGetProcAddress",      "cuCtxGet",
		"cuCtxSetCurrent",       "cuCtxPushCurrent",
		"cuCtxPopCurrent",       "cuDeviceGet",
		"cuPointerGetAttr",      "cuStreamIsCapturing",
		"cuStreamGetCtx",        "cuFuncGet",
		"cuOccupancy",           "cuStreamGetCaptureInfo",
		"cuKernelGet",           "cuDevicePrimaryCtxGetState",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

bool cupti_records__unwanted(const struct cupti_functions *f, bool runtime, uint32_t cbid)
{
	const char *name = NULL;

	if (f->callback_name(runtime ? CUPTI_RUNTIME_API : CUPTI_DRIVER_API, cbid, &name) ||
	    !name || !of_no_interest(name))
		return false;
	__atomic_store_n(&known.call[runtime][cbid], SKIP, __ATOMIC_RELAXED);
	return true;
}

static uint32_t call_name(const struct cupti_reader *r, bool runtime, uint32_t cbid)
{
	const char *name = NULL;
	uint32_t id = 0;

	if (cbid < CALLS)
		id = __atomic_load_n(&known.call[runtime][cbid], __ATOMIC_RELAXED);
	if (id)
		return id;
	if (r->f->callback_name(runtime ? CUPTI_RUNTIME_API : CUPTI_DRIVER_API, cbid, &name) ||
	    !name)
		return 0;
	id = of_no_interest(name) ? SKIP : batch__name_of(name);
	if (cbid < CALLS)
		__atomic_store_n(&known.call[runtime][cbid], id, __ATOMIC_RELAXED);
	return id;
}

static void read_call(const struct cupti_reader *r, const struct cupti_call *c)
{
	bool runtime = c->kind == CUPTI_KIND_RUNTIME;
	struct kprof_agent_api out;
	uint32_t name;

	if (!r->calls[runtime] || c->thread == r->own_tid)
		return;
	name = call_name(r, runtime, c->cbid);
	if (name == SKIP)
		return;
	out = BATCH_RECORD(struct kprof_agent_api, KPROF_AGENT_API, name);
	out.start_ns = mono(r, c->start);
	out.end_ns = mono(r, c->end);
	out.correlation = c->correlation;
	out.tid = c->thread;
	out.cbid = c->cbid;
	out.type = runtime ? KPROF_ACTIVITY_CUDA_RUNTIME : KPROF_ACTIVITY_CUDA_DRIVER;
	out.result = (kprof_s32)c->result;
	batch__append(&out);
}

static const char *overhead_name(uint32_t kind)
{
	static const struct {
		uint32_t kind;
		const char *name;
	} names[] = {
		{CUPTI_OVERHEAD_DRIVER_COMPILER, "Driver Compiler"},
		{CUPTI_OVERHEAD_BUFFER_FLUSH, "Buffer Flush"},
		{CUPTI_OVERHEAD_INSTRUMENTATION, "Instrumentation"},
		{CUPTI_OVERHEAD_RESOURCE, "Resource"},
		{CUPTI_OVERHEAD_MODULE_LOADING, "Runtime Triggered Module Loading"},
		{CUPTI_OVERHEAD_LAZY_LOADING, "Lazy Function Loading"},
		{CUPTI_OVERHEAD_COMMAND_BUFFER, "Command Buffer Full"},
		{CUPTI_OVERHEAD_BUFFER_REQUEST, "Activity Buffer Request"},
		{CUPTI_OVERHEAD_UVM_INIT, "UVM Activity Init"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].kind == kind)
			return names[i].name;
	return "Unknown";
}

static void read_overhead(const struct cupti_reader *r, const struct cupti_overhead *o,
			  size_t bytes)
{
	struct kprof_agent_activity out;

	if (unfinished(o->start, o->end))
		return;
	out = BATCH_RECORD(struct kprof_agent_activity, KPROF_AGENT_ACTIVITY,
			   batch__name_of(overhead_name(o->overhead)));
	out.start_ns = mono(r, o->start);
	out.end_ns = mono(r, o->end);
	out.type = KPROF_ACTIVITY_OVERHEAD;
	if (CUPTI_HAS(o, bytes, correlation))
		out.correlation = o->correlation;
	switch (o->object) {
	case CUPTI_OBJECT_STREAM:
		out.stream = o->id[2];
		/* fall through */
	case CUPTI_OBJECT_CONTEXT:
		out.context = o->id[1];
		/* fall through */
	case CUPTI_OBJECT_DEVICE:
		out.device = o->id[0];
		break;
	default: /* a process or a thread */
		break;
	}
	batch__append(&out);
}

static void read_context(const struct cupti_context *c)
{
	struct kprof_agent_context out =
		BATCH_RECORD(struct kprof_agent_context, KPROF_AGENT_CONTEXT, 0);

	out.context = c->context;
	out.device = c->device;
	out.null_stream = c->null_stream;
	out.runtime = KPROF_AGENT_CUDA;
	batch__append(&out);
}

static void read_external(const struct cupti_external *e)
{
	struct kprof_agent_external out =
		BATCH_RECORD(struct kprof_agent_external, KPROF_AGENT_EXTERNAL, 0);

	out.correlation = e->correlation;
	out.external = e->external;
	out.kind = e->external_kind;
	batch__append(&out);
}

/* How long a record must be for the fields that are read of it; 0: the kind is not known. */
static const uint8_t least_bytes[] = {
	[CUPTI_KIND_KERNEL] = CUPTI_KERNEL_BYTES,
	[CUPTI_KIND_CONCURRENT_KERNEL] = CUPTI_KERNEL_BYTES,
	[CUPTI_KIND_MEMCPY] = CUPTI_MEMCPY_BYTES,
	[CUPTI_KIND_MEMCPY2] = CUPTI_MEMCPY_PEER_BYTES,
	[CUPTI_KIND_MEMSET] = CUPTI_MEMSET_BYTES,
	[CUPTI_KIND_MEMORY2] = CUPTI_MEMORY_BYTES,
	[CUPTI_KIND_SYNCHRONIZATION] = CUPTI_SYNC_BYTES,
	[CUPTI_KIND_CUDA_EVENT] = CUPTI_EVENT_BYTES,
	[CUPTI_KIND_DRIVER] = CUPTI_CALL_BYTES,
	[CUPTI_KIND_RUNTIME] = CUPTI_CALL_BYTES,
	[CUPTI_KIND_OVERHEAD] = CUPTI_OVERHEAD_BYTES,
	[CUPTI_KIND_DEVICE] = CUPTI_DEVICE_BYTES,
	[CUPTI_KIND_CONTEXT] = CUPTI_CONTEXT_BYTES,
	[CUPTI_KIND_EXTERNAL_CORRELATION] = CUPTI_EXTERNAL_BYTES,
};

static void read_record(const struct cupti_reader *r, const void *record, size_t bytes)
{
	uint32_t kind = *(const uint32_t *)record;

	if (kind >= sizeof(least_bytes) || !least_bytes[kind] || bytes < least_bytes[kind]) {
		__atomic_fetch_add(&gpu_shm()->unknown_records, 1, __ATOMIC_RELAXED);
		return;
	}
	switch (kind) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return read_kernel(r, record, bytes);
	case CUPTI_KIND_MEMCPY:
		return read_memcpy(r, record, bytes);
	case CUPTI_KIND_MEMCPY2:
		return read_memcpy_peer(r, record, bytes);
	case CUPTI_KIND_MEMSET:
		return read_memset(r, record, bytes);
	case CUPTI_KIND_MEMORY2:
		return read_memory(r, record);
	case CUPTI_KIND_SYNCHRONIZATION:
		return read_sync(r, record, bytes);
	case CUPTI_KIND_CUDA_EVENT:
		return read_event(r, record, bytes);
	case CUPTI_KIND_DRIVER:
	case CUPTI_KIND_RUNTIME:
		return read_call(r, record);
	case CUPTI_KIND_OVERHEAD:
		return read_overhead(r, record, bytes);
	case CUPTI_KIND_DEVICE:
		return cuda__device(r->process, record);
	case CUPTI_KIND_CONTEXT:
		return read_context(record);
	case CUPTI_KIND_EXTERNAL_CORRELATION:
		return read_external(record);
	}
}

/* False: there is no other. One that CUPTI cannot find hides all that follow, which is counted. */
static bool next_record(const struct cupti_reader *r, uint8_t *buffer, size_t bytes, void **record)
{
	int result = r->f->next_record(buffer, bytes, record);

	if (result != CUPTI_OK && result != CUPTI_MAX_LIMIT_REACHED)
		__atomic_fetch_add(&gpu_shm()->device_dropped, 1, __ATOMIC_RELAXED);
	return result == CUPTI_OK;
}

/* The size of a record follows from where the next one begins. */
void cupti_records__read(const struct cupti_reader *r, uint8_t *buffer, size_t bytes)
{
	void *record = NULL, *next = NULL;

	if (!bytes || !gpu_shm() || !next_record(r, buffer, bytes, &record))
		return;
	for (; record; record = next) {
		next = record;
		if (!next_record(r, buffer, bytes, &next))
			next = NULL;
		read_record(
			r, record,
			(size_t)((next ? (uint8_t *)next : buffer + bytes) - (uint8_t *)record));
	}
}
