// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/records.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/records_priv.h"
#include "catalog/runtime.h"
#include "util/util.h"

/* Bounds that an agent which keeps to the protocol does not come near. */
#define MAX_METAS 4096

int agent_records__new(struct store_writer *store, uint32_t pid,
		       const struct agent_records_ops *ops, struct agent_records **out)
{
	struct agent_records *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->store = store;
	r->pid = pid;
	r->ops = *ops;
	*out = r;
	return 0;
}

void agent_records__free(struct agent_records *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->texts.cap; i++)
		free((struct agent_text *)(uintptr_t)r->texts.slots[i].value);
	for (size_t i = 0; i < r->inputs.cap; i++)
		free((struct agent_inputs *)(uintptr_t)r->inputs.slots[i].value);
	map64__free(&r->texts);
	map64__free(&r->inputs);
	map64__free(&r->event_at);
	map64__free(&r->allocated);
	map64__free(&r->externals);
	free(r->external_ids);
	free(r->events);
	free(r);
}

void agent_records__window(struct agent_records *r, uint64_t start_ns, uint64_t end_ns)
{
	r->start_ns = start_ns;
	r->end_ns = end_ns;
}

const struct agent_records_count *agent_records__count(const struct agent_records *r)
{
	return &r->count;
}

/* ---- metadata ---- */

/* Writes a metadata entry. Takes ownership of the value. */
static int put_meta(struct agent_records *r, const char *key, cJSON *value)
{
	char *text = value ? cJSON_PrintUnformatted(value) : NULL;
	struct store_record record = {.type = STORE_META, .meta = {.key = key, .json = text}};
	int err = text ? 0 : -ENOMEM;

	if (!err && r->metas++ < MAX_METAS)
		err = store_writer__put(r->store, &record);
	cJSON_free(text);
	cJSON_Delete(value);
	return err;
}

static const char *runtime_name(uint32_t runtime)
{
	const struct catalog_runtime *rt = catalog_runtime_of_module(runtime);

	return rt ? rt->name : "unknown";
}

void agent_plain_text(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from);
	for (; *to; to++)
		if (*to < ' ' || *to > '~')
			*to = '?';
}

/*
 * The keys are those of deviceProperties in Chrome traces; properties that are not known are left
 * out.
 */
static int on_device(struct agent_records *r, const struct kprof_agent_device *e)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"totalGlobalMem", e->memory_bytes},
		{"memoryBandwidth", e->memory_bandwidth_bytes},
		{"maxThreadsPerBlock", e->max_threads_per_block},
		{"maxThreadsPerMultiprocessor", e->max_threads_per_multiprocessor},
		{"maxBlocksPerMultiprocessor", e->max_blocks_per_multiprocessor},
		{"regsPerBlock", e->registers_per_block},
		{"regsPerMultiprocessor", e->registers_per_multiprocessor},
		{"warpSize", e->warp_size},
		{"sharedMemPerBlock", e->shared_bytes_per_block},
		{"sharedMemPerBlockOptin", e->shared_bytes_per_block_optin},
		{"sharedMemPerMultiprocessor", e->shared_bytes_per_multiprocessor},
		{"numSms", e->multiprocessors},
		{"clockRateKHz", e->clock_khz},
	};
	const struct agent_text *text = agent_records__text(r, e->h.name);
	cJSON *o = cJSON_CreateObject();
	char key[64], name[256];

	snprintf(key, sizeof(key), "device.%u.%u", r->pid, e->device);
	agent_plain_text(name, sizeof(name), text ? text->text : "");
	cJSON_AddNumberToObject(o, "id", e->device);
	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddStringToObject(o, "runtime", runtime_name(e->runtime));
	cJSON_AddNumberToObject(o, "computeMajor", e->compute_major);
	cJSON_AddNumberToObject(o, "computeMinor", e->compute_minor);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].value)
			cJSON_AddNumberToObject(o, numbers[i].key, (double)numbers[i].value);
	return put_meta(r, key, o);
}

static int on_context(struct agent_records *r, const struct kprof_agent_context *e)
{
	cJSON *o = cJSON_CreateObject();
	char key[64];

	agent_records__note_context(r, e->context, e->device);
	snprintf(key, sizeof(key), "context.%u.%u", r->pid, e->context);
	cJSON_AddNumberToObject(o, "device", e->device);
	cJSON_AddNumberToObject(o, "nullStream", e->null_stream);
	cJSON_AddStringToObject(o, "runtime", runtime_name(e->runtime));
	return put_meta(r, key, o);
}

int agent_records__finish(struct agent_records *r)
{
	struct agent_clock_fit fit;
	char key[64];
	cJSON *o;

	agent_clock__fit(&r->clock, &fit);
	if (!fit.pairs)
		return 0;
	snprintf(key, sizeof(key), "clock.device.%u", r->pid);
	o = cJSON_CreateObject();
	cJSON_AddNumberToObject(o, "pairs", (double)fit.pairs);
	cJSON_AddNumberToObject(o, "drift_ppm", fit.drift_ppm);
	cJSON_AddNumberToObject(o, "residual_rms_ns", fit.residual_rms_ns);
	cJSON_AddNumberToObject(o, "residual_max_ns", fit.residual_max_ns);
	cJSON_AddNumberToObject(o, "width_min_ns", (double)fit.width_min_ns);
	cJSON_AddNumberToObject(o, "width_max_ns", (double)fit.width_max_ns);
	return put_meta(r, key, o);
}

/* ---- taking batches apart ---- */

union record { /* an aligned copy of a record, since the bytes of a batch need not be aligned */
	struct kprof_agent_head h;
	struct kprof_agent_name name;
	struct kprof_agent_activity activity;
	struct kprof_agent_kernel kernel;
	struct kprof_agent_copy copy;
	struct kprof_agent_sync sync;
	struct kprof_agent_api api;
	struct kprof_agent_device device;
	struct kprof_agent_context context;
	struct kprof_agent_clock_pair clock;
	struct kprof_agent_external external;
	struct kprof_agent_event event;
	struct kprof_agent_alloc alloc;
	struct kprof_agent_spans spans;
	struct kprof_agent_range range;
	struct kprof_agent_inputs inputs;
	uint8_t bytes[KPROF_WIRE_BATCH_BYTES];
};

/* By how much records have grown: an agent that an older kprof has loaded lacks these fields. */
#define ADDED_BYTES 8u
_Static_assert(sizeof(struct kprof_agent_kernel) - offsetof(struct kprof_agent_kernel, channel) <=
		       ADDED_BYTES,
	       "a kernel's later fields");
_Static_assert(sizeof(struct kprof_agent_device) - offsetof(struct kprof_agent_device, clock_khz) <=
		       ADDED_BYTES,
	       "a device's later fields");
_Static_assert(sizeof(struct kprof_agent_event) - offsetof(struct kprof_agent_event, time_ns) <=
		       ADDED_BYTES,
	       "an event's later fields");

/*
 * The least size of a record of this kind, in bytes, which is what the first agents wrote: later
 * ones may add fields at its end. 0: the kind is not known.
 */
static size_t least_size(unsigned int kind)
{
	static const size_t sizes[] = {
		[KPROF_AGENT_NAME] = offsetof(struct kprof_agent_name, text),
		[KPROF_AGENT_ACTIVITY] = sizeof(struct kprof_agent_activity),
		[KPROF_AGENT_KERNEL] = offsetof(struct kprof_agent_kernel, channel),
		[KPROF_AGENT_COPY] = sizeof(struct kprof_agent_copy),
		[KPROF_AGENT_SYNC] = sizeof(struct kprof_agent_sync),
		[KPROF_AGENT_API] = sizeof(struct kprof_agent_api),
		[KPROF_AGENT_DEVICE] = offsetof(struct kprof_agent_device, clock_khz),
		[KPROF_AGENT_CONTEXT] = sizeof(struct kprof_agent_context),
		[KPROF_AGENT_CLOCK] = sizeof(struct kprof_agent_clock_pair),
		[KPROF_AGENT_EXTERNAL] = sizeof(struct kprof_agent_external),
		[KPROF_AGENT_EVENT] = offsetof(struct kprof_agent_event, time_ns),
		[KPROF_AGENT_ALLOC] = sizeof(struct kprof_agent_alloc),
		[KPROF_AGENT_SPANS] = sizeof(struct kprof_agent_spans),
		[KPROF_AGENT_RANGE] = offsetof(struct kprof_agent_range, values),
		[KPROF_AGENT_INPUTS] = sizeof(struct kprof_agent_inputs),
	};

	return kind < ARRAY_SIZE(sizes) ? sizes[kind] : 0;
}

static int on_event(struct agent_records *r, const struct kprof_agent_event *e)
{
	int err = agent_records__on_event(r, e);

	return err ? err : agent_activity__event(r, e);
}

static int on_record(struct agent_records *r, const union record *e)
{
	switch (e->h.kind) {
	case KPROF_AGENT_NAME:
		r->count.names++;
		return agent_records__on_name(r, &e->name);
	case KPROF_AGENT_ACTIVITY:
		return agent_activity__plain(r, &e->activity);
	case KPROF_AGENT_KERNEL:
		return agent_activity__kernel(r, &e->kernel);
	case KPROF_AGENT_COPY:
		return agent_activity__copy(r, &e->copy);
	case KPROF_AGENT_SYNC:
		return agent_activity__sync(r, &e->sync);
	case KPROF_AGENT_API:
		return agent_activity__api(r, &e->api);
	case KPROF_AGENT_DEVICE:
		return on_device(r, &e->device);
	case KPROF_AGENT_CONTEXT:
		return on_context(r, &e->context);
	case KPROF_AGENT_CLOCK:
		agent_clock__add(&r->clock, &e->clock);
		break;
	case KPROF_AGENT_ALLOC:
		return agent_activity__alloc(r, &e->alloc);
	case KPROF_AGENT_RANGE:
		return agent_activity__range(r, &e->range);
	case KPROF_AGENT_SPANS:
		return agent_records__on_spans(r, &e->spans);
	case KPROF_AGENT_INPUTS:
		r->count.received--;
		return agent_records__on_inputs(r, &e->inputs);
	case KPROF_AGENT_EVENT:
		return on_event(r, &e->event);
	case KPROF_AGENT_EXTERNAL:
		return agent_records__on_external(r, &e->external);
	}
	return 0;
}

/*
 * Copies the record at the front of the bytes that are left. Returns its size; 0: this cannot be a
 * record.
 */
static size_t take(const uint8_t *at, size_t left, union record *out)
{
	struct kprof_agent_head h;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, at, sizeof(h));
	if (h.size < sizeof(h) || h.size % 8 || h.size > left || h.size > sizeof(*out) ||
	    h.size < least_size(h.kind))
		return 0;
	memcpy(out, at, h.size);
	if (h.size + ADDED_BYTES <= sizeof(*out))
		memset(out->bytes + h.size, 0, ADDED_BYTES);
	return h.size;
}

/* A record that says what the ids in later ones mean; others are left alone. */
static int on_text(struct agent_records *r, const union record *e)
{
	if (e->h.kind == KPROF_AGENT_NAME)
		return agent_records__on_name(r, &e->name);
	return e->h.kind == KPROF_AGENT_INPUTS ? agent_records__on_inputs(r, &e->inputs) : 0;
}

static int each(struct agent_records *r, const void *data, size_t bytes, bool only_names)
{
	const uint8_t *at = data;
	union record e;
	int err = 0;

	while (bytes && !err) {
		size_t size = take(at, bytes, &e);

		if (!size) {
			r->count.malformed += !only_names;
			break;
		}
		at += size;
		bytes -= size;
		if (only_names) {
			err = on_text(r, &e);
			continue;
		}
		r->count.received++;
		if (!least_size(e.h.kind))
			r->count.unknown++;
		else
			err = on_record(r, &e);
	}
	return err;
}

int agent_records__batch(struct agent_records *r, const void *data, size_t bytes)
{
	return each(r, data, bytes, false);
}

int agent_records__names(struct agent_records *r, const void *data, size_t bytes)
{
	return each(r, data, bytes, true);
}
