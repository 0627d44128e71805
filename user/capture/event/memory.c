// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "capture/event/alive.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* Kineto's numbers of the CPU: c10::DeviceType, and that there is only one. */
#define DEVICE_TYPE_CPU 0
#define DEVICE_ID_CPU (-1)
#define MAX_NUMBER INT64_MAX /* of what a trace or a report can say */
#define MAX_DEVICES 64

/* What an allocation, a free or a failure is said to be. */
struct said {
	struct thread *th;
	uint64_t time_ns;
	uint32_t description, op;
	bool has_addr;
	uint64_t addr;
	int64_t bytes; /* of a free: negative */
	uint64_t allocated, reserved;
	int8_t device_type, device_id;
};

/* What the allocator of a device has said, in all processes. */
struct device {
	int8_t type, id;
	uint64_t allocations, frees, allocated_bytes, failed;
	uint64_t peak_bytes, peak_reserved_bytes; /* of one process */
};

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
	struct alive *alive; /* NULL: events are written */
	uint32_t slot;
	uint32_t device_type, device_id, addr, bytes, allocated, reserved; /* string ids */
	size_t nr_kept;                                                    /* in all heaps */
	struct device devices[MAX_DEVICES];
	size_t nr_devices;
	uint64_t allocations, frees, allocated_bytes, peak_bytes, failed;
	uint64_t earlier;     /* frees of what was not seen being allocated */
	uint64_t unseen;      /* frees that were not seen: the address was allocated again */
	uint64_t not_kept;    /* allocations for which there was no room */
	uint64_t senseless;   /* sizes and addresses that no allocation has */
	uint64_t ended_bytes; /* never freed by processes that have ended */
};

int memory__new(struct recorder *recorder, struct targets *targets, struct alive *alive,
		struct memory **out)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->recorder = recorder;
	m->targets = targets;
	m->alive = alive;
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

static int keep(struct memory *m, const struct said *said)
{
	const struct alive_said to = {
		.time_ns = said->time_ns,
		.addr = said->addr,
		.bytes = said->bytes,
		.allocated = said->allocated,
		.reserved = said->reserved,
		.op = said->op,
		.description = said->description,
		.device_type = said->device_type,
		.device_id = said->device_id,
	};

	return said->has_addr ? alive__take(m->alive, &to) : 0;
}

static int record(struct memory *m, const struct said *said)
{
	if (m->alive)
		return keep(m, said);
	struct store_attr attrs[6] = {
		{m->device_type, STORE_ATTR_I64, (uint64_t)said->device_type},
		{m->device_id, STORE_ATTR_I64, (uint64_t)said->device_id},
	};
	struct store_record r = {
		.type = STORE_INSTANT,
		.instant = {.time_ns = said->time_ns,
			    .thread = said->th->index,
			    .description = said->description},
		.attrs = attrs,
	};
	uint32_t nr = 2;

	if (said->has_addr)
		attrs[nr++] = (struct store_attr){m->addr, STORE_ATTR_U64, said->addr};
	attrs[nr++] = (struct store_attr){m->bytes, STORE_ATTR_I64, (uint64_t)said->bytes};
	attrs[nr++] = (struct store_attr){m->allocated, STORE_ATTR_U64, said->allocated};
	attrs[nr++] = (struct store_attr){m->reserved, STORE_ATTR_U64, said->reserved};
	r.nr_attrs = nr;
	return recorder__event(m->recorder, &r);
}

static int record_on_cpu(struct memory *m, const struct heap *heap, struct said said)
{
	said.device_type = DEVICE_TYPE_CPU;
	said.device_id = DEVICE_ID_CPU;
	said.allocated = heap ? most(heap->live) : 0;
	said.reserved = 0; /* Kineto: 0 on the CPU */
	return record(m, &said);
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

static int allocated(struct memory *m, struct heap *heap, const struct said *said)
{
	uint64_t *size;

	if (m->nr_kept >= MEMORY_MOST_KEPT && !map64__get(&heap->sizes, said->addr)) {
		m->not_kept++;
		/* the books have as many blocks by now, and count what they do not keep */
		return m->alive ? record_on_cpu(m, heap, *said) : 0;
	}
	size = map64__at(&heap->sizes, said->addr);
	if (!size)
		return -ENOMEM;
	if (*size) {
		m->unseen++;
		take_out(m, heap, size);
	}
	*size = (uint64_t)said->bytes;
	heap->live += *size;
	heap->nr++;
	m->nr_kept++;
	m->allocations++;
	add(&m->allocated_bytes, *size);
	if (most(heap->live) > m->peak_bytes)
		m->peak_bytes = most(heap->live);
	return record_on_cpu(m, heap, *said);
}

static int freed(struct memory *m, struct heap *heap, struct said *said)
{
	uint64_t bytes = map64__get(&heap->sizes, said->addr);

	if (!bytes) {
		m->earlier++;
		said->bytes = -1; /* not known: the books do not have it, either, and count it */
		return m->alive ? record_on_cpu(m, heap, *said) : 0;
	}
	m->frees++;
	take_out(m, heap, map64__at(&heap->sizes, said->addr)); /* not NULL: it is there */
	said->bytes = -(int64_t)bytes;
	return record_on_cpu(m, heap, *said);
}

static bool is_address(uint64_t addr)
{
	return addr && addr != UINT64_MAX;
}

/* What the allocators of the CPU's memory say: each call has one size at most, and no sums. */
static int on_cpu(struct memory *m, enum catalog_memory what, struct said *said,
		  const uint64_t args[])
{
	struct heap *heap = said->th->target->slot[m->slot];
	uint64_t bytes = what == CATALOG_MEMORY_ALLOCATED ? args[1] : args[0];

	if (what != CATALOG_MEMORY_FREED && (!bytes || bytes > MAX_NUMBER)) {
		/* of 0 bytes nothing is allocated, and the allocator's own books have nothing */
		m->senseless += bytes != 0;
		return 0;
	}
	said->bytes = (int64_t)bytes;
	if (what == CATALOG_MEMORY_FAILED) {
		m->failed++;
		return record_on_cpu(m, heap, *said);
	}
	said->has_addr = true;
	said->addr = args[0];
	if (!is_address(said->addr)) {
		m->senseless++;
		return 0;
	}
	if (!heap)
		heap = said->th->target->slot[m->slot] = calloc(1, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	return what == CATALOG_MEMORY_FREED ? freed(m, heap, said) : allocated(m, heap, said);
}

/* NULL: there is no such device, or there are too many. */
static struct device *device_of(struct memory *m, int8_t type, int8_t id)
{
	for (size_t i = 0; i < m->nr_devices; i++)
		if (m->devices[i].type == type && m->devices[i].id == id)
			return &m->devices[i];
	if (type < 0 || id < 0 || m->nr_devices == MAX_DEVICES)
		return NULL;
	m->devices[m->nr_devices] = (struct device){.type = type, .id = id};
	return &m->devices[m->nr_devices++];
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What the allocator of a device says of itself: with sizes and sums, which are its own. */
static int on_device(struct memory *m, enum catalog_memory what, struct said *said,
		     const uint64_t args[])
{
	struct device *d;

	said->has_addr = what == CATALOG_MEMORY_REPORTED;
	said->addr = said->has_addr ? *args++ : 0;
	said->bytes = (int64_t)args[0];
	said->allocated = args[1];
	said->reserved = args[2];
	said->device_type = CATALOG_DEVICE_TYPE(args[3]);
	said->device_id = CATALOG_DEVICE_ID(args[3]);
	if (said->device_type == DEVICE_TYPE_CPU) /* torch.profiler records; on_cpu() has it */
		return 0;
	d = device_of(m, said->device_type, said->device_id);
	if (!d || (said->has_addr && !is_address(said->addr)) || said->bytes == INT64_MIN ||
	    said->allocated > MAX_NUMBER || said->reserved > MAX_NUMBER) {
		m->senseless++;
		return 0;
	}
	if (!said->bytes)
		return 0;
	d->failed += !said->has_addr;
	d->allocations += said->has_addr && said->bytes > 0;
	d->frees += said->has_addr && said->bytes < 0;
	if (said->has_addr && said->bytes > 0)
		add(&d->allocated_bytes, (uint64_t)said->bytes);
	d->peak_bytes = larger(d->peak_bytes, said->allocated);
	d->peak_reserved_bytes = larger(d->peak_reserved_bytes, said->reserved);
	return record(m, said);
}

int memory__event(struct memory *m, struct thread *th, const struct probe *p, uint32_t description,
		  uint32_t op, const struct kprof_wire_begin_args *e)
{
	enum catalog_memory what = p->row->memory;
	struct said said = {
		.th = th, .time_ns = e->b.h.time_ns, .description = description, .op = op};

	if (!recorder__in_window(m->recorder, said.time_ns))
		return 0;
	name_attrs(m);
	return what == CATALOG_MEMORY_REPORTED || what == CATALOG_MEMORY_REPORTED_FAILED
		       ? on_device(m, what, &said, e->args)
		       : on_cpu(m, what, &said, e->args);
}

struct number {
	const char *name;
	uint64_t value;
};

static void add_numbers(cJSON *o, const struct number *numbers, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
}

static void add_devices(const struct memory *m, cJSON *o)
{
	cJSON *list = m->nr_devices ? cJSON_AddArrayToObject(o, "devices") : NULL;

	for (size_t i = 0; list && i < m->nr_devices; i++) {
		const struct device *d = &m->devices[i];
		const struct number numbers[] = {
			{"device_type", (uint64_t)d->type},
			{"device_id", (uint64_t)d->id},
			{"allocations", d->allocations},
			{"frees", d->frees},
			{"allocated_bytes", d->allocated_bytes},
			{"peak_bytes", d->peak_bytes},
			{"peak_reserved_bytes", d->peak_reserved_bytes},
			{"out_of_memory", d->failed},
		};
		cJSON *one = cJSON_CreateObject();

		add_numbers(one, numbers, ARRAY_SIZE(numbers));
		cJSON_AddItemToArray(list, one);
	}
}

int memory__account(struct memory *m)
{
	unsigned __int128 live = m->ended_bytes;
	cJSON *o = cJSON_CreateObject();
	struct target *t;

	for (t = targets__first(m->targets); t; t = t->hh.next)
		if (t->slot[m->slot])
			live += ((const struct heap *)t->slot[m->slot])->live;
	const struct number numbers[] = {
		{"allocations", m->allocations},         {"frees", m->frees},
		{"allocated_bytes", m->allocated_bytes}, {"live_bytes", most(live)},
		{"peak_bytes", m->peak_bytes},           {"frees_of_earlier", m->earlier},
		{"frees_not_seen", m->unseen},           {"allocations_not_kept", m->not_kept},
		{"not_understood", m->senseless},        {"out_of_memory", m->failed},
	};

	add_numbers(o, numbers, ARRAY_SIZE(numbers));
	add_devices(m, o);
	if (m->not_kept)
		log_warn(
			"a shorter recording, or one of fewer processes",
			"%" PRIu64
			" allocations are not recorded: %u were in use at once, and no more are kept",
			m->not_kept, MEMORY_MOST_KEPT);
	return recorder__meta_value(m->recorder, "memory", o);
}
