// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/activity.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "kprof.h"
#include "util/error.h"
#include "util/util.h"

#define CPU ACTIVITY_SET_CPU
#define CUDA ACTIVITY_SET_CUDA
#define XPU ACTIVITY_SET_XPU
#define HPU ACTIVITY_SET_HPU
#define MTIA ACTIVITY_SET_MTIA
#define PRIV ACTIVITY_SET_PRIVATEUSE1
/* The sets of all devices whose work libkineto reports with these types. */
#define DEVICES (CUDA | XPU | PRIV)

#define TYPE(id_, name_, device_, ...)                                 \
	[KPROF_ACTIVITY_##id_] = {.id = KPROF_ACTIVITY_##id_,          \
				  .name = (name_),                     \
				  .device = ACTIVITY_DEVICE_##device_, \
				  __VA_ARGS__}

static const struct activity_type types[KPROF_ACTIVITY_NR] = {
	TYPE(CPU_OP, "cpu_op", CPU, .sets = CPU),
	TYPE(USER_ANNOTATION, "user_annotation", CPU, .sets = CPU),
	TYPE(CPU_INSTANT_EVENT, "cpu_instant_event", CPU, .sets = CPU),
	TYPE(PYTHON_FUNCTION, "python_function", CPU, .sets = CPU),
	TYPE(EXTERNAL_CORRELATION, "external_correlation", CPU, .sets = CPU),
	TYPE(OVERHEAD, "overhead", CPU, .sets = CUDA | XPU),
	TYPE(GPU_USER_ANNOTATION, "gpu_user_annotation", CUDA, .sets = DEVICES, .on_device = true),
	TYPE(GPU_MEMCPY, "gpu_memcpy", CUDA, .sets = DEVICES, .on_device = true),
	TYPE(GPU_MEMSET, "gpu_memset", CUDA, .sets = DEVICES, .on_device = true),
	TYPE(KERNEL, "kernel", CUDA, .sets = DEVICES, .on_device = true),
	TYPE(CUDA_RUNTIME, "cuda_runtime", CPU, .sets = CPU | CUDA, .is_call = true),
	TYPE(CUDA_DRIVER, "cuda_driver", CPU, .sets = CPU | CUDA, .is_call = true),
	TYPE(CUDA_SYNC, "cuda_sync", CUDA, .sets = CUDA, .on_device = true, .optional = true,
	     .is_wait = true),
	TYPE(CUDA_EVENT, "cuda_event", CUDA, .sets = CUDA, .on_device = true, .optional = true,
	     .is_wait = true),
	TYPE(CUDA_PROFILER_RANGE, "cuda_profiler_range", CUDA, .sets = CUDA, .on_device = true,
	     .optional = true, .is_wait = true),
	TYPE(GLOW_RUNTIME, "glow_runtime", CPU, .sets = CPU, .optional = true, .is_call = true),
	TYPE(XPU_RUNTIME, "xpu_runtime", CPU, .sets = CPU | XPU, .is_call = true),
	TYPE(XPU_DRIVER, "xpu_driver", CPU, .sets = CPU | XPU, .is_call = true),
	TYPE(XPU_SCOPE_PROFILER, "xpu_scope_profiler", XPU, .sets = XPU, .on_device = true,
	     .optional = true),
	TYPE(XPU_SYNC, "xpu_sync", XPU, .sets = XPU, .on_device = true, .optional = true,
	     .is_wait = true),
	TYPE(HPU_OP, "hpu_op", HPU, .sets = HPU),
	TYPE(MTIA_RUNTIME, "mtia_runtime", CPU, .sets = MTIA, .is_call = true),
	TYPE(MTIA_CCP_EVENTS, "mtia_ccp_events", MTIA, .sets = MTIA, .on_device = true),
	TYPE(MTIA_WORKLOADD, "mtia_workloadd", MTIA, .sets = MTIA, .optional = true),
	TYPE(MTIA_INSIGHT, "mtia_insight", MTIA, .sets = MTIA),
	TYPE(MTIA_COUNTERS, "mtia_counters", MTIA, .sets = MTIA),
	TYPE(COLLECTIVE_COMM, "collective_comm", CPU, .sets = CPU),
	TYPE(PRIVATEUSE1_RUNTIME, "privateuse1_runtime", CPU, .sets = CPU | PRIV, .is_call = true),
	TYPE(PRIVATEUSE1_DRIVER, "privateuse1_driver", CPU, .sets = CPU | PRIV, .is_call = true),
	/* types that libkineto does not have */
	TYPE(GPU_APPROXIMATE, "gpu_approximate", CUDA, .sets = CUDA, .on_device = true),
	TYPE(OPENCL_RUNTIME, "opencl_runtime", CPU, .sets = CPU, .is_call = true),
};

static const struct {
	const char *name;
	enum activity_set set;
} sets[] = {
	{"cpu", CPU}, {"cuda", CUDA}, {"xpu", XPU},
	{"hpu", HPU}, {"mtia", MTIA}, {"privateuse1", PRIV},
};

const struct activity_type *activity_by_id(uint32_t id)
{
	/* one bit per hash of a number: each is reported once; a few collide and are not */
	static atomic_uint_fast64_t reported;
	uint64_t bit = 1ull << (hash64(id) >> 58);

	if (id < KPROF_ACTIVITY_NR && types[id].name)
		return &types[id];
	if (!(atomic_fetch_or(&reported, bit) & bit))
		log_warn(NULL, "unknown type of activity %u: it counts as the CPU's", id);
	return &types[KPROF_ACTIVITY_CPU_OP];
}

const struct activity_type *activity_by_name(const char *name)
{
	for (size_t i = 0; i < KPROF_ACTIVITY_NR; i++)
		if (types[i].name && !strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

const struct activity_type *activity_at(size_t i)
{
	for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (types[id].name && !i--)
			return &types[id];
	return NULL;
}

uint64_t activity_types_of(unsigned int wanted)
{
	uint64_t mask = 0;

	for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (types[id].sets & wanted && !types[id].optional)
			mask |= ACTIVITY_BIT(id);
	return mask;
}

uint64_t activity_default_types(void)
{
	return activity_types_of(~0u);
}

bool activity_is_call(uint32_t id)
{
	return id < KPROF_ACTIVITY_NR && types[id].is_call;
}

bool activity_is_wait(uint32_t id)
{
	return id < KPROF_ACTIVITY_NR && types[id].is_wait;
}

/* ---- what can be recorded here ---- */

uint32_t catalog_row_type(const struct catalog_row *row)
{
	const struct activity_type *type;

	if (row->activity)
		return row->activity;
	type = activity_by_name(row->category);
	return type ? type->id : KPROF_ACTIVITY_CPU_OP;
}

uint64_t activity_sources(unsigned int wanted)
{
	const struct catalog_framework *const *fw;
	const struct catalog_runtime *rt;
	uint64_t mask = 0;

	for (fw = catalog_frameworks; *fw; fw++)
		for (size_t i = 0; i < (*fw)->nr_rows; i++)
			mask |= ACTIVITY_BIT(catalog_row_type(&(*fw)->rows[i]));
	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++)
		if (!wanted || rt->sets & wanted)
			mask |= rt->activities;
	return mask;
}

#define LIST_BYTES 512

/* Writes the names of the mask's types, separated by commas. */
static const char *list_types(uint64_t mask, char *list)
{
	size_t used = 0;

	list[0] = '\0';
	for (size_t id = 0; id < KPROF_ACTIVITY_NR && used < LIST_BYTES; id++)
		if (types[id].name && mask & ACTIVITY_BIT(id))
			used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s%s",
						 used ? ", " : "", types[id].name);
	return list;
}

/*
 * Reports requested types that cannot be recorded: an error for a type that was requested by its
 * name, a message for the missing types of a set.
 */
static int check_sources(unsigned int requested_sets, uint64_t requested_types, uint64_t all)
{
	uint64_t missing = requested_types & ~activity_sources(0);
	char list[LIST_BYTES], known[LIST_BYTES + 16];

	snprintf(known, sizeof(known), "there are %s", list_types(activity_sources(0), list));
	if (missing & ACTIVITY_BIT(KPROF_ACTIVITY_CUDA_PROFILER_RANGE))
		return error_set_usage(-EINVAL, "leave it out of the types",
				       "--metrics NAMES records cuda_profiler_range");
	if (missing)
		return error_set_usage(-EINVAL, known, "nothing here records %s",
				       list_types(missing, list));
	if (!(all & activity_sources(requested_sets)))
		return error_set_usage(-EINVAL, known, "nothing here records %s",
				       list_types(all, list));
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		if (!(requested_sets & sets[i].set))
			continue;
		missing = activity_types_of(sets[i].set) & ~activity_sources(sets[i].set);
		if (missing)
			log_warn(NULL, "of the set %s, nothing here records %s", sets[i].name,
				 list_types(missing, list));
	}
	return 0;
}

/* ---- parsing requested types and sets ---- */

static bool is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !strncasecmp(word, name, len);
}

static int add_set(const char *word, size_t len, unsigned int *requested)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		if (!is(word, len, sets[i].name))
			continue;
		*requested |= sets[i].set;
		return 0;
	}
	return error_set_usage(-EINVAL, "there are cpu, cuda, xpu, hpu, mtia and privateuse1",
			       "'%.*s' is no set of activities", (int)len, word);
}

static int add_type(const char *word, size_t len, uint64_t *mask)
{
	for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++) {
		if (!types[id].name || !is(word, len, types[id].name))
			continue;
		*mask |= ACTIVITY_BIT(id);
		return 0;
	}
	return error_set_usage(-EINVAL, "`kprof attach --types list` lists them",
			       "'%.*s' is no type of activity", (int)len, word);
}

int activity_parse_sets(const char *text, unsigned int *requested, char *renamed)
{
	static const char privateuse1[] = "privateuse1=";
	size_t len, prefix = sizeof(privateuse1) - 1;
	int err = 0;

	for (; !err; text += len + 1) {
		len = strcspn(text, ",");
		if (len > prefix && !strncasecmp(text, privateuse1, prefix)) {
			if (len - prefix >= ACTIVITY_RENAMED_BYTES)
				return error_set_usage(-EINVAL, NULL,
						       "the name in '%.*s' is too long", (int)len,
						       text);
			memcpy(renamed, text + prefix, len - prefix);
			renamed[len - prefix] = '\0';
			err = add_set(text, prefix - 1, requested);
		} else {
			err = add_set(text, len, requested);
		}
		if (!text[len])
			break;
	}
	return err;
}

int activity_parse_types(const char *text, uint64_t *mask)
{
	size_t len;
	int err = 0;

	for (; !err; text += len + 1) {
		len = strcspn(text, ",");
		err = add_type(text, len, mask);
		if (!text[len])
			break;
	}
	return err;
}

/*
 * The devices that a request means: those of the requested sets, or every device if a type of a
 * device was requested by its name.
 */
static uint64_t devices_meant(unsigned int requested, uint64_t by_name)
{
	for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (by_name & ACTIVITY_BIT(id) && types[id].on_device)
			return 0;
	return (uint64_t)(requested & ~(unsigned int)CPU) << ACTIVITY_SETS_SHIFT;
}

int kprof_session_opts_activities(struct kprof_session_opts *opts, const char *set_list,
				  const char *type_list)
{
	uint64_t of_sets, by_name = 0;
	char renamed[ACTIVITY_RENAMED_BYTES] = "";
	unsigned int requested = 0;
	int err = 0;

	error_clear();
	opts->types = 0;
	if (!set_list && !type_list) {
		opts->types = activity_default_types();
		return 0;
	}
	if (set_list)
		err = activity_parse_sets(set_list, &requested, renamed);
	of_sets = activity_types_of(requested);
	if (!err && renamed[0])
		err = error_set_usage(
			-EINVAL, "privateuse1 alone means OpenCL's devices here",
			"no backend named %s can be recorded: of PrivateUse1 there is "
			"no source that knows its backend's name",
			renamed);
	if (!err && type_list)
		err = activity_parse_types(type_list, &by_name);
	if (!err)
		err = check_sources(requested, by_name, of_sets | by_name);
	if (!err)
		opts->types = of_sets | by_name | devices_meant(requested, by_name);
	return err;
}

const char *kprof_activity_name(size_t i)
{
	const struct activity_type *type = activity_at(i);

	return type ? type->name : NULL;
}
