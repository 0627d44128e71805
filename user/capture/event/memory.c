// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* Kineto's numbers of the CPU: c10::DeviceType, and that there is only one. */
#define DEVICE_TYPE_CPU 0
#define DEVICE_ID_CPU (-1)
#define MAX_NUMBER INT64_MAX /* of what a trace or a report can say */

/* What one process has allocated since the recording began. */
struct heap {
	struct map64 sizes; /* address → bytes */
	size_t nr;          /* addresses with a size */
	/* The sum of at most MEMORY_MOST_KEPT sizes of 63 bits: never wraps around. */
	unsigned __int128 live;
};

struct memory {
	struct recorder *recorder;
	struct targets *targets;
	uint32_t slot;
	uint32_t device_type, device_id, addr, bytes, allocated, reserved; /* string ids */
	size_t nr_kept;                                                    /* in all heaps */
	uint64_t allocations, frees, allocated_bytes, peak_bytes;
	uint64_t earlier;     /* frees of what was not seen being allocated */
	uint64_t unseen;      /* frees that were not seen: the address was allocated again */
	uint64_t not_kept;    /* allocations for which there was no room */
	uint64_t senseless;   /* sizes and addresses that no allocation has */
	uint64_t ended_bytes; /* never freed by processes that have ended */
};

int memory__new(struct recorder *recorder, struct targets *targets, struct memory **out)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->recorder = recorder;
	m->targets = targets;
	m->slot = targets__slot(targets);
	*out = m;
	return 0;
}

void memory__free(struct memory *m)
{
	struct target *t, *next;

	if (!m)
		return;
	TARGETS_EACH (m->targets, t, next)
		memory__forget(m, t);
	free(m);
}

static uint64_t most(unsigned __int128 sum)
{
	return sum > MAX_NUMBER ? MAX_NUMBER : (uint64_t)sum;
}

static void add(uint64_t *sum, uint64_t by)
{
	*sum = most((unsigned __int128)*sum + by);
}

void memory__forget(struct memory *m, struct target *t)
{
	struct heap *heap = t->slot[m->slot];

	if (!heap)
		return;
	add(&m->ended_bytes, most(heap->live));
	m->nr_kept -= heap->nr;
	map64__free(&heap->sizes);
	free(heap);
	t->slot[m->slot] = NULL;
}

/* bytes: as they count, those of a free are negative. */
static int record(struct memory *m, const struct thread *th, uint64_t time_ns, uint32_t description,
		  uint64_t addr, int64_t bytes, const struct heap *heap)
{
	const struct store_attr attrs[] = {
		{m->device_type, STORE_ATTR_I64, DEVICE_TYPE_CPU},
		{m->device_id, STORE_ATTR_I64, (uint64_t)DEVICE_ID_CPU},
		{m->addr, STORE_ATTR_U64, addr},
		{m->bytes, STORE_ATTR_I64, (uint64_t)bytes},
		{m->allocated, STORE_ATTR_U64, most(heap->live)},
		{m->reserved, STORE_ATTR_U64, 0}, /* Kineto: 0 on the CPU */
	};
	struct store_record r = {
		.type = STORE_INSTANT,
		.instant = {.time_ns = time_ns, .thread = th->index, .description = description},
		.attrs = attrs,
		.nr_attrs = ARRAY_SIZE(attrs),
	};

	return recorder__event(m->recorder, &r);
}

static void name_attrs(struct memory *m)
{
	if (m->device_type)
		return;
	m->device_type = recorder__string(m->recorder, "Device Type");
	m->device_id = recorder__string(m->recorder, "Device Id");
	m->addr = recorder__string(m->recorder, "Addr");
	m->bytes = recorder__string(m->recorder, "Bytes");
	m->allocated = recorder__string(m->recorder, "Total Allocated");
	m->reserved = recorder__string(m->recorder, "Total Reserved");
}

static void take_out(struct memory *m, struct heap *heap, uint64_t *size)
{
	heap->live -= *size;
	heap->nr--;
	m->nr_kept--;
	*size = 0;
}

static int allocated(struct memory *m, struct heap *heap, const struct thread *th, uint64_t time_ns,
		     uint32_t description, uint64_t addr, uint64_t bytes)
{
	uint64_t *size;

	if (m->nr_kept >= MEMORY_MOST_KEPT && !map64__get(&heap->sizes, addr)) {
		m->not_kept++;
		return 0;
	}
	size = map64__at(&heap->sizes, addr);
	if (!size)
		return -ENOMEM;
	if (*size) {
		m->unseen++;
		take_out(m, heap, size);
	}
	*size = bytes;
	heap->live += bytes;
	heap->nr++;
	m->nr_kept++;
	m->allocations++;
	add(&m->allocated_bytes, bytes);
	if (most(heap->live) > m->peak_bytes)
		m->peak_bytes = most(heap->live);
	return record(m, th, time_ns, description, addr, (int64_t)bytes, heap);
}

static int freed(struct memory *m, struct heap *heap, const struct thread *th, uint64_t time_ns,
		 uint32_t description, uint64_t addr)
{
	uint64_t bytes = map64__get(&heap->sizes, addr);

	if (!bytes) {
		m->earlier++;
		return 0;
	}
	m->frees++;
	take_out(m, heap, map64__at(&heap->sizes, addr)); /* not NULL: it is there */
	return record(m, th, time_ns, description, addr, -(int64_t)bytes, heap);
}

int memory__event(struct memory *m, struct thread *th, const struct probe *p, uint32_t description,
		  const struct kprof_wire_begin_args *e)
{
	bool frees = p->row->memory == CATALOG_MEMORY_FREED;
	uint64_t time_ns = e->b.h.time_ns, addr = e->args[0], bytes = frees ? 0 : e->args[1];
	struct heap *heap = th->target->slot[m->slot];

	/* nothing is allocated, and the allocator's own books have nothing of it */
	if (!recorder__in_window(m->recorder, time_ns) || (!frees && !bytes))
		return 0;
	if (!addr || addr == UINT64_MAX || bytes > MAX_NUMBER) {
		m->senseless++;
		return 0;
	}
	if (!heap)
		heap = th->target->slot[m->slot] = calloc(1, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	name_attrs(m);
	return frees ? freed(m, heap, th, time_ns, description, addr)
		     : allocated(m, heap, th, time_ns, description, addr, bytes);
}

int memory__account(struct memory *m)
{
	unsigned __int128 live = m->ended_bytes;
	cJSON *o = cJSON_CreateObject();
	struct target *t;

	for (t = targets__first(m->targets); t; t = t->hh.next)
		if (t->slot[m->slot])
			live += ((const struct heap *)t->slot[m->slot])->live;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"allocations", m->allocations},         {"frees", m->frees},
		{"allocated_bytes", m->allocated_bytes}, {"live_bytes", most(live)},
		{"peak_bytes", m->peak_bytes},           {"frees_of_earlier", m->earlier},
		{"frees_not_seen", m->unseen},           {"allocations_not_kept", m->not_kept},
		{"not_understood", m->senseless},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	if (m->not_kept)
		log_warn(
			"a shorter recording, or one of fewer processes",
			"%" PRIu64
			" allocations are not recorded: %u were in use at once, and no more are kept",
			m->not_kept, MEMORY_MOST_KEPT);
	return recorder__meta_value(m->recorder, "memory", o);
}
