// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocations and frees, which are instants with attributes; and so are blocks that were allocated
 * at a moment (capture/event/alive.c).
 */
#include "model/timeline/impl.h"

#include <stdio.h>
#include <string.h>

#include "kprof/unwind.h"
#include "util/util.h"

/* PyTorch's numbers of types of devices, and its names for them (c10/core/DeviceType.h). */
static const char *const device_types[] = {
	"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
	"fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
	"meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone",
};
#define TYPE_CPU 0
#define TYPE_OF(device) ((device) >> 8)
#define ID_OF(device) ((device)&0xff)
#define MOST INT8_MAX /* a type, a number */

const char *timeline__memory_device(char buf[TL_MEMORY_DEVICE_BYTES], uint32_t device)
{
	uint32_t type = TYPE_OF(device), id = ID_OF(device);

	if (type == TYPE_CPU)
		snprintf(buf, TL_MEMORY_DEVICE_BYTES, "cpu");
	else if (type < ARRAY_SIZE(device_types))
		snprintf(buf, TL_MEMORY_DEVICE_BYTES, "%s:%u", device_types[type], id);
	else
		snprintf(buf, TL_MEMORY_DEVICE_BYTES, "device %u:%u", type, id);
	return buf;
}

bool timeline__has_memory(const struct kprof_capture *t)
{
	return kprof_capture_meta(t, "profile_memory") != NULL;
}

bool kprof_capture_has_memory(const struct kprof_capture *c)
{
	return timeline__has_memory(c);
}

static bool number(const struct kprof_capture *t, const struct store_record *r, const char *key,
		   int64_t *out)
{
	const struct store_attr *a = timeline__attr(t, r->attrs, r->nr_attrs, key);

	if (!a || (a->type != STORE_ATTR_I64 && a->type != STORE_ATTR_U64))
		return false;
	*out = (int64_t)a->value;
	return true;
}

bool timeline__memory(const struct kprof_capture *t, const struct store_record *r,
		      struct tl_memory *out)
{
	const struct tl_description *d = timeline__description(t, r->instant.description - 1);
	const struct kprof_source *source = d ? kprof_capture_source(t, d->source) : NULL;
	int64_t addr, type, id;

	/* Marks have instants of that name, too: they are what a program says of its own memory. */
	if (!source || strcmp(source->name, "memory") != 0)
		return false;
	if (!number(t, r, "Addr", &addr) || !number(t, r, "Bytes", &out->bytes) ||
	    !number(t, r, "Total Allocated", &out->allocated))
		return false;
	out->addr = (uint64_t)addr;
	if (out->allocated < 0)
		out->allocated = INT64_MAX;
	out->device = TL_MEMORY_CPU;
	out->reserved = 0;
	if (number(t, r, "Device Type", &type) && type > TYPE_CPU && type <= MOST) {
		bool numbered = number(t, r, "Device Id", &id) && id >= 0 && id <= MOST;

		out->device = (uint32_t)type << 8 | (numbered ? (uint32_t)id : 0);
		if (!number(t, r, "Total Reserved", &out->reserved) || out->reserved < 0)
			out->reserved = 0;
	}
	return out->bytes && out->bytes != INT64_MIN && out->addr != UINT64_MAX;
}

/* ---- blocks ---- */

bool timeline__has_blocks(const struct kprof_capture *t)
{
	return kprof_capture_meta(t, "memory_alive") != NULL;
}

static uint64_t value(const struct kprof_capture *t, const struct store_record *r, const char *key,
		      enum store_attr_type type)
{
	const struct store_attr *a = timeline__attr(t, r->attrs, r->nr_attrs, key);

	return a && a->type == type ? a->value : 0;
}

bool tl_block__read(const struct kprof_capture *t, const struct store_record *r,
		    struct tl_block *out)
{
	uint64_t type, id, stack, op;

	if (r->type != STORE_INSTANT)
		return false;
	type = value(t, r, "Device Type", STORE_ATTR_I64);
	id = value(t, r, "Device Id", STORE_ATTR_I64);
	stack = value(t, r, "stack", STORE_ATTR_STACK);
	op = value(t, r, "Operator", STORE_ATTR_STRING);
	*out = (struct tl_block){
		.addr = value(t, r, "Addr", STORE_ATTR_U64),
		.bytes = value(t, r, "Bytes", STORE_ATTR_I64),
		.time_ns = r->instant.time_ns,
		.freed_ns = value(t, r, "Freed (ns)", STORE_ATTR_U64),
		.op = timeline__string(t, (uint32_t)op),
		.op_id = (uint32_t)op,
		.stack = stack <= timeline__nr_stacks(t) ? (uint32_t)stack : 0,
		.thread = r->instant.thread,
	};
	if (type && type <= MOST)
		out->device = (uint32_t)type << 8 | (id <= MOST ? (uint32_t)id : 0);
	return out->bytes && out->bytes <= INT64_MAX && out->addr <= INT64_MAX;
}

int tl_block__hand_out(const struct kprof_capture *t, const struct store_record *instant,
		       int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	struct store_record r = {.type = STORE_SAMPLE};
	struct tl_block b;

	if (!tl_block__read(t, instant, &b) || b.freed_ns)
		return 0;
	r.sample.time_ns = b.time_ns;
	r.sample.thread = b.thread;
	r.sample.stack = b.stack;
	r.sample.weight_ns = b.bytes;
	if (b.stack)
		r.sample.flags = (uint32_t)KPROF_UNWIND_WHOLE << KPROF_SAMPLE_END_SHIFT;
	return fn(ctx, &r);
}
