// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/alive.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "util/map64.h"
#include "util/util.h"

#define MAX_DEVICES 64

struct block {
	uint64_t addr, bytes, time_ns;
	uint64_t freed_ns; /* 0: it is alive */
	uint32_t op, stack, description;
	uint32_t number; /* of the allocation, modulo 2^32: tells it from others in its place */
	uint32_t device; /* index; UINT32_MAX: nothing is kept here */
	uint32_t next;   /* of a free place: the next one + 1 */
};

struct alive_device {
	int8_t type, id;
	struct map64 blocks; /* address → index of the block + 1 */
	uint64_t nr, bytes;
	uint64_t allocations, frees;
	uint64_t earlier; /* frees of what was not allocated in the recording, or not kept */
	uint64_t unseen;  /* frees that were not seen: the address was given out again */
	uint64_t not_kept;
	/* As told with the latest event, and the most of it. */
	uint64_t allocated, reserved, peak_bytes, peak_ns, peak_reserved;
};

struct alive {
	struct recorder *recorder;
	struct block *blocks;
	size_t nr, cap;
	uint32_t unused; /* the first free place + 1; 0: none */
	uint32_t number;
	uint64_t latest;
	struct alive_device devices[MAX_DEVICES];
	uint32_t nr_devices;
	uint64_t devices_not_kept; /* events of devices beyond these */
	struct block *freed; /* ALIVE_FREED_BLOCKS, the oldest at nr_freed if that is not less */
	uint64_t nr_freed;
	/* string ids */
	uint32_t device_type, device_id, addr, bytes, op, stack, freed_at;
};

int alive__new(struct recorder *recorder, struct alive **out)
{
	struct alive *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->recorder = recorder;
	a->freed = calloc(ALIVE_FREED_BLOCKS, sizeof(*a->freed));
	if (!a->freed) {
		free(a);
		return -ENOMEM;
	}
	*out = a;
	return 0;
}

static void empty(struct alive *a)
{
	for (uint32_t i = 0; i < a->nr_devices; i++) {
		map64__free(&a->devices[i].blocks);
		a->devices[i].nr = a->devices[i].bytes = 0;
	}
	free(a->blocks);
	a->blocks = NULL;
	a->nr = a->cap = 0;
	a->unused = 0;
	a->latest = 0;
}

void alive__free(struct alive *a)
{
	if (!a)
		return;
	empty(a);
	free(a->freed);
	free(a);
}

void alive__forget(struct alive *a)
{
	empty(a);
	a->nr_freed = 0;
}

/* UINT32_MAX: there are too many. */
static uint32_t device_of(struct alive *a, int8_t type, int8_t id)
{
	for (uint32_t i = 0; i < a->nr_devices; i++)
		if (a->devices[i].type == type && a->devices[i].id == id)
			return i;
	if (a->nr_devices == MAX_DEVICES)
		return UINT32_MAX;
	a->devices[a->nr_devices] = (struct alive_device){.type = type, .id = id};
	return a->nr_devices++;
}

/* The index of a place for a block; UINT32_MAX: no memory. */
static uint32_t place(struct alive *a)
{
	uint32_t i = a->unused - 1;

	if (a->unused) {
		a->unused = a->blocks[i].next;
		return i;
	}
	if (vec_grow((void **)&a->blocks, &a->cap, a->nr, sizeof(*a->blocks)))
		return UINT32_MAX;
	return (uint32_t)a->nr++;
}

/* The block is not alive any more. freed_ns: 0 if it is not known when it was freed. */
static void take_out(struct alive *a, struct alive_device *d, uint64_t *slot, uint64_t freed_ns)
{
	uint32_t i = (uint32_t)*slot - 1;
	struct block *b = &a->blocks[i];

	if (freed_ns) {
		struct block *to = &a->freed[a->nr_freed++ % ALIVE_FREED_BLOCKS];

		*to = *b;
		to->freed_ns = freed_ns;
	}
	d->nr--;
	d->bytes -= b->bytes;
	b->device = UINT32_MAX;
	b->next = a->unused;
	a->unused = i + 1;
	*slot = 0;
}

static size_t all_blocks(const struct alive *a)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < a->nr_devices; i++)
		nr += a->devices[i].nr;
	return nr;
}

static int allocated(struct alive *a, uint32_t device, const struct alive_said *said)
{
	struct alive_device *d = &a->devices[device];
	uint64_t *slot;
	uint32_t i;

	d->allocations++;
	if (map64__get(&d->blocks, said->addr)) {
		d->unseen++;
		take_out(a, d, map64__at(&d->blocks, said->addr), 0);
	}
	if (a->nr == ALIVE_MOST_BLOCKS && !a->unused) {
		d->not_kept++;
		return 0;
	}
	i = place(a);
	slot = i == UINT32_MAX ? NULL : map64__at(&d->blocks, said->addr);
	if (!slot)
		return -ENOMEM;
	*slot = i + 1;
	a->blocks[i] = (struct block){
		.addr = said->addr,
		.bytes = (uint64_t)said->bytes,
		.time_ns = said->time_ns,
		.op = said->op,
		.description = said->description,
		.number = ++a->number,
		.device = device,
	};
	d->nr++;
	d->bytes += (uint64_t)said->bytes;
	a->latest = (uint64_t)a->number << 32 | (i + 1);
	return 0;
}

static void freed(struct alive *a, struct alive_device *d, const struct alive_said *said)
{
	if (!map64__get(&d->blocks, said->addr)) {
		d->earlier++;
		return;
	}
	d->frees++;
	take_out(a, d, map64__at(&d->blocks, said->addr), said->time_ns);
}

int alive__take(struct alive *a, const struct alive_said *said)
{
	uint32_t device = device_of(a, said->device_type, said->device_id);
	struct alive_device *d;
	int err = 0;

	a->latest = 0;
	if (device == UINT32_MAX) {
		a->devices_not_kept++;
		return 0;
	}
	d = &a->devices[device];
	if (said->bytes > 0)
		err = allocated(a, device, said);
	else
		freed(a, d, said);
	d->allocated = said->allocated;
	d->reserved = said->reserved;
	if (said->allocated > d->peak_bytes) {
		d->peak_bytes = said->allocated;
		d->peak_ns = said->time_ns;
	}
	if (said->reserved > d->peak_reserved)
		d->peak_reserved = said->reserved;
	return err;
}

uint64_t alive__latest(struct alive *a)
{
	uint64_t number = a->latest;

	a->latest = 0;
	return number;
}

void alive__stack(struct alive *a, uint64_t number, uint32_t stack)
{
	size_t i = (uint32_t)number - 1;

	/* it may have been freed by another thread meanwhile */
	if (i < a->nr && a->blocks[i].device != UINT32_MAX && a->blocks[i].number == number >> 32)
		a->blocks[i].stack = stack;
}

void alive__sums(const struct alive *a, struct alive_sums *out)
{
	*out = (struct alive_sums){.blocks = all_blocks(a), .not_kept = a->devices_not_kept};
	for (uint32_t i = 0; i < a->nr_devices; i++) {
		out->bytes += a->devices[i].bytes;
		out->not_kept += a->devices[i].not_kept;
	}
}

/* ---- into a capture ---- */

int alive__prepare(struct alive *a)
{
	a->device_type = recorder__string(a->recorder, "Device Type");
	a->device_id = recorder__string(a->recorder, "Device Id");
	a->addr = recorder__string(a->recorder, "Addr");
	a->bytes = recorder__string(a->recorder, "Bytes");
	a->op = recorder__string(a->recorder, "Operator");
	a->stack = recorder__string(a->recorder, "stack");
	a->freed_at = recorder__string(a->recorder, "Freed (ns)");
	return a->freed_at ? 0 : -ENOMEM;
}

static int put(struct alive *a, const struct block *b)
{
	const struct alive_device *d = &a->devices[b->device];
	struct store_attr attrs[7] = {
		{a->device_type, STORE_ATTR_I64, (uint64_t)d->type},
		{a->device_id, STORE_ATTR_I64, (uint64_t)d->id},
		{a->addr, STORE_ATTR_U64, b->addr},
		{a->bytes, STORE_ATTR_I64, b->bytes},
	};
	struct store_record r = {
		.type = STORE_INSTANT,
		.instant = {.time_ns = b->time_ns, .description = b->description},
		.attrs = attrs,
		.nr_attrs = 4,
	};

	if (b->op)
		attrs[r.nr_attrs++] = (struct store_attr){a->op, STORE_ATTR_STRING, b->op};
	if (b->stack)
		attrs[r.nr_attrs++] = (struct store_attr){a->stack, STORE_ATTR_STACK, b->stack};
	if (b->freed_ns)
		attrs[r.nr_attrs++] = (struct store_attr){a->freed_at, STORE_ATTR_U64, b->freed_ns};
	return recorder__put_anyway(a->recorder, &r);
}

static cJSON *device_json(const struct alive_device *d)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"device_type", (uint64_t)d->type},
		{"device_id", (uint64_t)d->id},
		{"blocks", d->nr},
		{"bytes", d->bytes},
		{"allocations", d->allocations},
		{"frees", d->frees},
		{"frees_of_earlier", d->earlier},
		{"frees_not_seen", d->unseen},
		{"not_kept", d->not_kept},
		{"allocated_bytes", d->allocated},
		{"reserved_bytes", d->reserved},
		{"peak_bytes", d->peak_bytes},
		{"peak_mono_ns", d->peak_ns},
		{"peak_reserved_bytes", d->peak_reserved},
	};
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	return o;
}

static int put_sums(struct alive *a, bool seen)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "devices");
	uint64_t freed = a->nr_freed < ALIVE_FREED_BLOCKS ? 0 : a->nr_freed % ALIVE_FREED_BLOCKS;

	for (uint32_t i = 0; i < a->nr_devices; i++)
		cJSON_AddItemToArray(list, device_json(&a->devices[i]));
	cJSON_AddBoolToObject(o, "allocator_seen", seen || a->nr_devices);
	cJSON_AddNumberToObject(o, "events_of_further_devices", (double)a->devices_not_kept);
	/* all that was freed since then is there */
	cJSON_AddNumberToObject(o, "freed_since_mono_ns",
				a->nr_freed > ALIVE_FREED_BLOCKS ? (double)a->freed[freed].freed_ns
								 : 0);
	return recorder__meta_value(a->recorder, "memory_alive", o);
}

int alive__put(struct alive *a, bool seen)
{
	size_t nr_freed = a->nr_freed < ALIVE_FREED_BLOCKS ? a->nr_freed : ALIVE_FREED_BLOCKS;
	int err = 0;

	for (size_t i = 0; i < nr_freed && !err; i++)
		err = put(a, &a->freed[(a->nr_freed - nr_freed + i) % ALIVE_FREED_BLOCKS]);
	for (size_t i = 0; i < a->nr && !err; i++)
		if (a->blocks[i].device != UINT32_MAX)
			err = put(a, &a->blocks[i]);
	return err ? err : put_sums(a, seen);
}
