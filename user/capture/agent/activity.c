// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the work of devices, and the calls that caused it, as capture records. Names and the keys
 * of attributes are those of the traces that torch.profiler writes.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/agent/records_priv.h"
#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "kprof/activity.h"
#include "util/util.h"

#define KEY_NAME(key, name) [AGENT_KEY_##key] = (name),
static const char *const key_names[] = {AGENT_KEYS(KEY_NAME)};

struct attrs {
	struct store_attr list[16 + AGENT_EXTERNAL_KINDS];
	uint32_t nr;
};

static uint32_t string(struct agent_records *r, const char *text)
{
	return store_writer__string(r->store, text, strlen(text));
}

static void add(struct agent_records *r, struct attrs *a, enum agent_key key,
		enum store_attr_type type, uint64_t value)
{
	if (!r->keys[key])
		r->keys[key] = string(r, key_names[key]);
	a->list[a->nr++] = (struct store_attr){.key = r->keys[key], .type = type, .value = value};
}

static void add_number(struct agent_records *r, struct attrs *a, enum agent_key key, uint64_t value)
{
	add(r, a, key, STORE_ATTR_U64, value);
}

static void add_known(struct agent_records *r, struct attrs *a, enum agent_key key, uint64_t value)
{
	if (value)
		add_number(r, a, key, value);
}

/* Adds three numbers as one attribute, or as JSON where they are larger than CUDA allows. */
static void add_dim3(struct agent_records *r, struct attrs *a, enum agent_key key,
		     const uint32_t dim[3])
{
	char text[64];

	if (dim[1] <= UINT16_MAX && dim[2] <= UINT16_MAX) {
		add(r, a, key, STORE_ATTR_DIM3,
		    dim[0] | (uint64_t)dim[1] << 32 | (uint64_t)dim[2] << 48);
		return;
	}
	snprintf(text, sizeof(text), "[%u,%u,%u]", dim[0], dim[1], dim[2]);
	add(r, a, key, STORE_ATTR_JSON, string(r, text));
}

static void add_graph(struct agent_records *r, struct attrs *a, uint32_t graph, uint64_t node)
{
	if (!graph && !node)
		return;
	add_number(r, a, AGENT_KEY_GRAPH, graph);
	add_number(r, a, AGENT_KEY_GRAPH_NODE, node);
}

static void add_channel(struct agent_records *r, struct attrs *a,
			const struct kprof_agent_activity *e, uint32_t channel, uint32_t type)
{
	if (!(e->has & KPROF_AGENT_HAS_CHANNEL))
		return;
	add_number(r, a, AGENT_KEY_CHANNEL, channel);
	add_number(r, a, AGENT_KEY_CHANNEL_TYPE, type);
}

/* Are the times and the type possible? CUPTI reports a time of 0 where it does not know it. */
static bool sane(struct agent_records *r, uint64_t start_ns, uint64_t end_ns, uint32_t type)
{
	if (start_ns && start_ns <= end_ns && end_ns <= INT64_MAX && type < KPROF_ACTIVITY_NR)
		return true;
	r->count.timeless++;
	return false;
}

static bool outside(struct agent_records *r, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns >= r->start_ns && !(r->end_ns && start_ns > r->end_ns))
		return false;
	r->count.outside++;
	return true;
}

/*
 * The record's fields are set one by one, here and for calls: an initializer would clear the whole
 * union, which took a twentieth of the time that a device's record costs kprof.
 */
int agent_activity__put(struct agent_records *r, const struct kprof_agent_activity *e,
			uint32_t name, const struct store_attr *list, uint32_t nr)
{
	struct store_record record;

	if (!sane(r, e->start_ns, e->end_ns, e->type) || outside(r, e->start_ns, e->end_ns))
		return 0;
	record.type = STORE_ACTIVITY;
	record.activity.pid = r->pid;
	record.activity.type = e->type;
	record.activity.name = name;
	record.activity.device = e->device;
	record.activity.context = e->context;
	record.activity.stream = e->stream;
	record.activity.start_ns = e->start_ns;
	record.activity.end_ns = e->end_ns;
	record.activity.queued_ns = e->queued_ns <= INT64_MAX ? e->queued_ns : 0;
	record.activity.correlation = e->correlation;
	record.attrs = list;
	record.nr_attrs = nr;
	return store_writer__put(r->store, &record);
}

/* What the program had pushed to be found again, of each kind. */
static void add_externals(struct agent_records *r, struct attrs *a, uint64_t correlation)
{
	for (uint32_t kind = 1; kind <= AGENT_EXTERNAL_KINDS && r->nr_externals; kind++) {
		const uint64_t *id = agent_records__external(r, correlation, kind);

		if (id)
			add_number(r, a, (enum agent_key)(AGENT_KEY_EXTERNAL + kind - 1), *id);
	}
}

static int put(struct agent_records *r, const struct kprof_agent_activity *e, uint32_t name,
	       struct attrs *a)
{
	add_externals(r, a, e->correlation);
	return agent_activity__put(r, e, name, a->list, a->nr);
}

int agent_activity__plain(struct agent_records *r, const struct kprof_agent_activity *e)
{
	struct attrs a = {.nr = 0};

	add_known(r, &a, AGENT_KEY_BYTES, e->bytes);
	return put(r, e, agent_records__name(r, e->h.name), &a);
}

int agent_activity__kernel(struct agent_records *r, const struct kprof_agent_kernel *e)
{
	const struct catalog_runtime *rt;
	struct attrs a = {.nr = 0};

	agent_records__note_context(r, e->a.context, e->a.device);
	add_dim3(r, &a, AGENT_KEY_GRID, e->grid);
	if (e->block[0]) /* 0: the driver chooses the size */
		add_dim3(r, &a, AGENT_KEY_BLOCK, e->block);
	rt = catalog_runtime_of_module(e->a.runtime);
	if (rt && rt->launch_details) {
		add_number(r, &a, AGENT_KEY_REGISTERS, e->registers);
		add_number(r, &a, AGENT_KEY_SHARED,
			   (uint64_t)e->static_shared_bytes + e->dynamic_shared_bytes);
	}
	add_known(r, &a, AGENT_KEY_SHARED_CONFIG, e->shared_config_bytes);
	add_known(r, &a, AGENT_KEY_LOCAL, e->local_bytes_per_thread);
	add_graph(r, &a, e->graph, e->graph_node);
	if (e->a.has & KPROF_AGENT_HAS_PRIORITY || e->priority)
		add(r, &a, AGENT_KEY_PRIORITY, STORE_ATTR_I64, (uint64_t)(int64_t)e->priority);
	add_channel(r, &a, &e->a, e->channel, e->channel_type);
	return put(r, &e->a, agent_records__name(r, e->a.h.name), &a);
}

/* ---- copies and sets ---- */

static const char *const copy_kinds[AGENT_COPY_KINDS] = {
	"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
};
static const char *const memories[AGENT_MEMORIES] = {
	"Unknown", "Pageable", "Pinned",        "Device",
	"Array",   "Managed",  "Device Static", "Managed Static",
};

static uint32_t copy_name(struct agent_records *r, const struct kprof_agent_copy *e)
{
	bool set = e->a.type == KPROF_ACTIVITY_GPU_MEMSET;
	unsigned int kind = e->kind < AGENT_COPY_KINDS ? e->kind : 0;
	unsigned int from = !set && e->from < AGENT_MEMORIES ? e->from : 0;
	unsigned int to = e->to < AGENT_MEMORIES ? e->to : 0;
	uint32_t *known = &r->copies[set ? AGENT_COPY_KINDS : kind][from][to];
	char name[64];

	if (*known)
		return *known;
	if (set)
		snprintf(name, sizeof(name), "Memset (%s)", memories[to]);
	else
		snprintf(name, sizeof(name), "Memcpy %s (%s -> %s)", copy_kinds[kind],
			 memories[from], memories[to]);
	*known = string(r, name);
	return *known;
}

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

int agent_activity__copy(struct agent_records *r, const struct kprof_agent_copy *e)
{
	struct attrs a = {.nr = 0};

	agent_records__note_context(r, e->a.context, e->a.device);
	add_number(r, &a, AGENT_KEY_BYTES, e->a.bytes);
	if (e->a.end_ns > e->a.start_ns) /* bytes per ns are GB/s */
		add(r, &a, AGENT_KEY_BANDWIDTH, STORE_ATTR_DOUBLE,
		    double_bits((double)e->a.bytes / (double)(e->a.end_ns - e->a.start_ns)));
	if (e->kind == KPROF_AGENT_COPY_PTOP) {
		add_number(r, &a, AGENT_KEY_FROM_DEVICE, e->from_device);
		add_number(r, &a, AGENT_KEY_IN_DEVICE, e->a.device); /* which does the copy */
		add_number(r, &a, AGENT_KEY_TO_DEVICE, e->to_device);
		add_number(r, &a, AGENT_KEY_FROM_CONTEXT, e->from_context);
		add_number(r, &a, AGENT_KEY_IN_CONTEXT, e->a.context);
		add_number(r, &a, AGENT_KEY_TO_CONTEXT, e->to_context);
	}
	if (e->a.type == KPROF_ACTIVITY_GPU_MEMSET)
		add_number(r, &a, AGENT_KEY_VALUE, e->value);
	add_graph(r, &a, e->graph, e->graph_node);
	add_channel(r, &a, &e->a, e->channel, e->channel_type);
	return put(r, &e->a, copy_name(r, e), &a);
}

/* ---- synchronization ---- */

/* The device that a record names, or the one of its context; unless more is known, the first. */
static uint32_t device_of(const struct agent_records *r, uint32_t device, uint32_t context)
{
	if (device != KPROF_AGENT_DEVICE_OF_CONTEXT)
		return device;
	return context < AGENT_CONTEXTS && r->device_of[context] ? r->device_of[context] - 1 : 0;
}

static const char *sync_name(uint32_t kind)
{
	static const char *const names[] = {
		[0] = "Unknown Sync",
		[KPROF_AGENT_SYNC_EVENT] = "Event Sync",
		[KPROF_AGENT_SYNC_STREAM_WAIT_EVENT] = "Stream Wait Event",
		[KPROF_AGENT_SYNC_STREAM] = "Stream Sync",
		[KPROF_AGENT_SYNC_CONTEXT] = "Context Sync",
	};

	return names[kind < ARRAY_SIZE(names) ? kind : 0];
}

/*
 * The call that recorded the awaited event: the one that the agent reports, else the last one
 * before the wait.
 */
static void waited_for(struct agent_records *r, const struct kprof_agent_sync *e,
		       uint64_t *correlation, uint32_t *stream)
{
	const struct agent_event *event;

	*correlation = e->event_correlation;
	*stream = e->event_stream;
	if (*correlation)
		return;
	event = agent_records__event(r, e->a.context, e->event);
	if (!event)
		return;
	if (!e->a.correlation || event->correlation < e->a.correlation) {
		*correlation = event->correlation;
		*stream = event->stream;
	} else if (event->before < e->a.correlation) {
		*correlation = event->before;
		*stream = event->before_stream;
	}
}

int agent_activity__sync(struct agent_records *r, const struct kprof_agent_sync *e)
{
	struct attrs a = {.nr = 0};
	uint64_t correlation;
	uint32_t name = string(r, sync_name(e->kind)), stream;
	struct kprof_agent_activity of = e->a;

	of.device = device_of(r, of.device, of.context);
	add(r, &a, AGENT_KEY_SYNC_KIND, STORE_ATTR_STRING, name);
	if (e->kind == KPROF_AGENT_SYNC_EVENT || e->kind == KPROF_AGENT_SYNC_STREAM_WAIT_EVENT) {
		waited_for(r, e, &correlation, &stream);
		if (correlation) {
			add_number(r, &a, AGENT_KEY_WAIT_STREAM, stream);
			add_number(r, &a, AGENT_KEY_WAIT_CORRELATION, correlation);
		}
		add_number(r, &a, AGENT_KEY_WAIT_EVENT, e->event);
	}
	return put(r, &of, name, &a);
}

/* The moment at which a device came to an event. What is not known of it has no place in time. */
int agent_activity__event(struct agent_records *r, const struct kprof_agent_event *e)
{
	const struct kprof_agent_activity of = {
		.start_ns = e->time_ns,
		.end_ns = e->time_ns,
		.correlation = e->correlation,
		.device = device_of(r, e->device, e->context),
		.context = e->context,
		.stream = e->stream,
		.type = KPROF_ACTIVITY_CUDA_EVENT,
	};
	struct attrs a = {.nr = 0};

	if (!e->time_ns)
		return 0;
	add_number(r, &a, AGENT_KEY_EVENT, e->event);
	return put(r, &of, string(r, "cudaEvent"), &a);
}

/* ---- calls ---- */

/* As the probes write it, in capture/event/calls.c; a number of a runtime without a table. */
static void add_result(struct agent_records *r, struct attrs *a, const struct kprof_agent_api *e)
{
	const struct catalog_result *result = catalog_result_of(e->type);
	char text[CATALOG_RESULT_BYTES];

	if (!result)
		add(r, a, AGENT_KEY_ERROR, STORE_ATTR_I64, (uint64_t)(int64_t)e->result);
	else if (catalog_result_text(result, e->result, text))
		add(r, a, AGENT_KEY_ERROR, STORE_ATTR_STRING, string(r, text));
	else
		add(r, a, AGENT_KEY_RESULT, STORE_ATTR_STRING, string(r, text));
}

int agent_activity__api(struct agent_records *r, const struct kprof_agent_api *e)
{
	struct attrs a = {.nr = 0};
	struct store_record record;
	int err;

	if (!sane(r, e->start_ns, e->end_ns, e->type) || outside(r, e->start_ns, e->end_ns))
		return 0;
	err = r->ops.thread(r->ops.ctx, e->tid, e->start_ns, &record.api.thread);
	if (err == -ESRCH) {
		r->count.threadless++;
		return 0;
	}
	if (err)
		return err;
	record.type = STORE_API;
	record.api.type = e->type;
	record.api.start_ns = e->start_ns;
	record.api.end_ns = e->end_ns;
	record.api.correlation = e->correlation;
	record.api.name = agent_records__call_name(r, e->h.name);
	add_known(r, &a, AGENT_KEY_CBID, e->cbid);
	if (e->result)
		add_result(r, &a, e);
	record.attrs = a.list;
	record.nr_attrs = a.nr;
	return store_writer__put(r->store, &record);
}

/* ---- memory ---- */

/* Memory in use on a device; NULL: there are more devices than a machine can have. */
static struct agent_used *used_of(struct agent_records *r, uint32_t device)
{
	for (uint32_t i = 0; i < r->nr_used; i++)
		if (r->used[i].device == device)
			return &r->used[i];
	if (r->nr_used == AGENT_DEVICES)
		return NULL;
	r->used[r->nr_used] = (struct agent_used){.device = device};
	return &r->used[r->nr_used++];
}

/*
 * Bytes that a release gives back, where its record does not say so. Not known of memory that was
 * allocated before the recording.
 */
static uint64_t size_of(struct agent_records *r, const struct kprof_agent_alloc *e)
{
	uint64_t *kept = e->address < UINT64_MAX ? map64__at(&r->allocated, e->address) : NULL;
	uint64_t bytes = e->bytes;

	if (!kept)
		return bytes;
	if (!e->release) {
		if (!*kept && r->nr_allocated == AGENT_ALLOCATIONS)
			return bytes;
		r->nr_allocated += !*kept;
		*kept = bytes;
		return bytes;
	}
	if (!bytes)
		bytes = *kept;
	r->nr_allocated -= *kept != 0;
	*kept = 0;
	return bytes;
}

int agent_activity__alloc(struct agent_records *r, const struct kprof_agent_alloc *e)
{
	static const char name[] = "memory allocated since the start";
	struct agent_used *used;
	uint64_t bytes;

	if (e->memory != KPROF_AGENT_MEMORY_DEVICE)
		return 0;
	bytes = size_of(r, e);
	used = used_of(r, e->device);
	if (!used || bytes > INT64_MAX / 2 || e->time_ns > INT64_MAX) {
		r->count.timeless++;
		return 0;
	}
	/*
	 * Memory whose allocation was not seen was in use before the recording: the sum may become
	 * negative.
	 */
	used->bytes = (int64_t)((uint64_t)used->bytes + (e->release ? -bytes : bytes));
	if (e->time_ns < r->start_ns || (r->end_ns && e->time_ns > r->end_ns))
		return 0;
	if (!r->used_name)
		r->used_name = store_writer__string(r->store, name, sizeof(name) - 1);
	return store_writer__put(r->store, &(struct store_record){
						   .type = STORE_COUNTER,
						   .counter = {.time_ns = e->time_ns,
							       .pid = r->pid,
							       .device = e->device,
							       .name = r->used_name,
							       .value = used->bytes},
					   });
}

/* ---- ranges of metrics ---- */

/* The string id of a name that was asked for, which is interned once. 0: there are fewer. */
static uint32_t metric_key(struct agent_records *r, uint32_t i)
{
	const char *name = r->ops.metrics;

	for (uint32_t before = i; before && name; before--) {
		name = strchr(name, ',');
		name = name ? name + 1 : NULL;
	}
	if (name && !r->metrics[i])
		r->metrics[i] = store_writer__string(r->store, name, strcspn(name, ","));
	return r->metrics[i];
}

/* What is no number was not measured, and is left out. */
int agent_activity__range(struct agent_records *r, const struct kprof_agent_range *e)
{
	const size_t head = offsetof(struct kprof_agent_range, values);
	const size_t room = (e->a.h.size - head) / sizeof(e->values[0]);
	struct store_attr list[KPROF_AGENT_METRICS];
	struct kprof_agent_activity a = e->a;
	uint32_t nr = 0, key;
	double value;

	if (!r->ops.metrics) {
		r->count.unknown++;
		return 0;
	}
	for (uint32_t i = 0; i < e->nr && i < room && i < KPROF_AGENT_METRICS; i++) {
		memcpy(&value, &e->values[i], sizeof(value));
		key = isfinite(value) ? metric_key(r, i) : 0;
		if (key)
			list[nr++] = (struct store_attr){
				.key = key, .type = STORE_ATTR_DOUBLE, .value = e->values[i]};
	}
	a.type = KPROF_ACTIVITY_CUDA_PROFILER_RANGE;
	a.correlation = 0;
	return agent_activity__put(r, &a, agent_records__name(r, a.h.name), list, nr);
}
