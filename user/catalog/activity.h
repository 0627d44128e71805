/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every type of activity: its name in traces, the kind of device that does it, and to which of
 * torch.profiler's sets (ProfilerActivity) it belongs. The types are those of libkineto's
 * ActivityType, the sets those of its kineto_shim.
 */
#ifndef KPROF_CATALOG_ACTIVITY_H
#define KPROF_CATALOG_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/activity.h"

/* Kinds of devices, with the numbers of c10::DeviceType. */
enum activity_device {
	ACTIVITY_DEVICE_CPU = 0,
	ACTIVITY_DEVICE_CUDA = 1,
	ACTIVITY_DEVICE_OPENCL = 4,
	ACTIVITY_DEVICE_XPU = 12,
	ACTIVITY_DEVICE_HPU = 15,
	ACTIVITY_DEVICE_MTIA = 19,
	ACTIVITY_DEVICE_PRIVATEUSE1 = 20,
};

/*
 * Sets of activities, as bits; an activity can belong to several. They correspond to
 * ProfilerActivity.
 */
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
	const char *name; /* also the category in traces: "gpu_memcpy" */
	enum activity_device device;
	unsigned int sets; /* enum activity_set */
	bool on_device;    /* shown on a row of a device's stream, not of a thread */
	bool is_call;      /* a call of a device's runtime or driver */
	/* no work, but a wait, what is waited for, or what was measured: beside the stream's row */
	bool is_wait;
	bool optional; /* recorded only when requested by its name or by an option */
};

/*
 * The type with this number. Never NULL: an unknown one is treated as an operator on the CPU, with
 * one warning for each, because the table then lacks an entry.
 */
const struct activity_type *activity_by_id(uint32_t id);
/* The type of this name; NULL: there is none. */
const struct activity_type *activity_by_name(const char *name);
/* The i-th type, for lists; NULL past the end. */
const struct activity_type *activity_at(size_t i);

/* Properties of a type, without that warning: these are called for each record. */
bool activity_is_call(uint32_t id);
bool activity_is_wait(uint32_t id);

#define ACTIVITY_BIT(id) (1ull << (id))
/*
 * A mask of types also contains, in the bits from ACTIVITY_SETS_SHIFT on, the sets (enum
 * activity_set) whose devices are meant, since a kernel has the same type on every device. No such
 * bit: every device.
 */
#define ACTIVITY_SETS_SHIFT 58
#define ACTIVITY_TYPES (ACTIVITY_BIT(ACTIVITY_SETS_SHIFT) - 1)
static inline unsigned int activity_sets_in(uint64_t mask)
{
	return (unsigned int)(mask >> ACTIVITY_SETS_SHIFT);
}
/*
 * Types that this version of kprof can record: those of the host, and those of devices of these
 * sets (0: all sets).
 */
uint64_t activity_sources(unsigned int sets);
/* The types that are recorded by default: those of every set, without the optional types. */
uint64_t activity_default_types(void);
/* The types of these sets, without the optional ones. */
uint64_t activity_types_of(unsigned int sets);
/*
 * Adds the sets in "cpu,cuda" to *sets, and the bits of the types in "kernel,gpu_memcpy" to *types.
 * "privateuse1=NAME" is the set of a backend that was registered as PrivateUse1 under this name;
 * the name is written to renamed (ACTIVITY_RENAMED_BYTES long). -EINVAL with the error set: an
 * unknown name.
 */
#define ACTIVITY_RENAMED_BYTES 32
int activity_parse_sets(const char *text, unsigned int *sets, char *renamed);
int activity_parse_types(const char *text, uint64_t *types);

#endif
