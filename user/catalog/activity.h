/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every type of activity: what traces call it, what kind of device it is of, and in which of
 * torch.profiler's sets (ProfilerActivity) it belongs. After libkineto's ActivityType and
 * kineto_shim's sets.
 */
#ifndef KPROF_CATALOG_ACTIVITY_H
#define KPROF_CATALOG_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/activity.h"

/* c10::DeviceType's numbers. */
enum activity_device {
	ACTIVITY_DEVICE_CPU = 0,
	ACTIVITY_DEVICE_CUDA = 1,
	ACTIVITY_DEVICE_OPENCL = 4,
	ACTIVITY_DEVICE_XPU = 12,
	ACTIVITY_DEVICE_HPU = 15,
	ACTIVITY_DEVICE_MTIA = 19,
	ACTIVITY_DEVICE_PRIVATEUSE1 = 20,
};

/* ProfilerActivity, as bits: an activity can be in several. */
enum activity_set {
	ACTIVITY_SET_CPU = 1,
	ACTIVITY_SET_CUDA = 2,
	ACTIVITY_SET_XPU = 4,
	ACTIVITY_SET_HPU = 8,
	ACTIVITY_SET_MTIA = 16,
	ACTIVITY_SET_PRIVATEUSE1 = 32,
};

struct activity_type {
	enum kprof_activity id;
	const char *name; /* = category in traces: "gpu_memcpy" */
	enum activity_device device;
	unsigned int sets; /* enum activity_set */
	bool on_device;    /* on a row of a device's stream, not of a thread */
	bool is_call;      /* of a device's runtime or driver */
	bool is_wait;      /* the device waits: on a row of its own beside the stream's */
	bool optional;     /* only when asked for by name, or by an option of its own */
};

/*
 * Never NULL: an unknown number is an operator's, of the CPU, and so is an unknown category; that
 * is said once for each (a warning), for somebody has to add it to the table.
 */
const struct activity_type *activity_by_id(uint32_t id);
const struct activity_type *activity_by_category(const char *category);
/* NULL: no type of this name. */
const struct activity_type *activity_by_name(const char *name);
/* The i-th type, for lists; NULL past the end. */
const struct activity_type *activity_at(size_t i);

/* The same without that warning, for what is asked of each record. */
bool activity_is_call(uint32_t id);
bool activity_is_wait(uint32_t id);

#define ACTIVITY_BIT(id) (1ull << (id))
/*
 * Above the types a mask has the sets (enum activity_set) whose devices' work is wanted: a kernel
 * is a kernel on each of them. None: the work of every device.
 */
#define ACTIVITY_SETS_SHIFT 58
#define ACTIVITY_TYPES (ACTIVITY_BIT(ACTIVITY_SETS_SHIFT) - 1)
static inline unsigned int activity_sets_in(uint64_t mask)
{
	return (unsigned int)(mask >> ACTIVITY_SETS_SHIFT);
}
/*
 * Types that something here can record: of the host, and of the devices of these sets (0: of all).
 */
uint64_t activity_sources(unsigned int sets);
/* What is recorded unless something else is asked for: every set, without the optional types. */
uint64_t activity_default_types(void);
/*
 * Bits of the types in "cpu,cuda" (sets) or "kernel,gpu_memcpy" (types), separated by commas, added
 * to *types. A backend that was registered as PrivateUse1 under a name of its own is
 * "privateuse1=NAME": the name goes to renamed, of ACTIVITY_RENAMED_BYTES. -EINVAL with the error
 * set: no such name.
 */
#define ACTIVITY_RENAMED_BYTES 32
int activity_parse_sets(const char *text, uint64_t *types, char *renamed);
int activity_parse_types(const char *text, uint64_t *types);

#endif
