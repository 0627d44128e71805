// SPDX-License-Identifier: BSD-2-Clause
/* Allocations and frees, which are instants with attributes. */
#include "model/timeline/impl.h"

#include <stdio.h>
#include <string.h>

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
