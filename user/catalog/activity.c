// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/activity.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kprof.h"
#include "util/error.h"
#include "util/util.h"

#define CPU ACTIVITY_SET_CPU
#define CUDA ACTIVITY_SET_CUDA
#define XPU ACTIVITY_SET_XPU
#define HPU ACTIVITY_SET_HPU
#define MTIA ACTIVITY_SET_MTIA
#define PRIV ACTIVITY_SET_PRIVATEUSE1
/* Every kind of device that libkineto reports work of in this form. */
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
	TYPE(CUDA_RUNTIME, "cuda_runtime", CPU, .sets = CPU | CUDA),
	TYPE(CUDA_DRIVER, "cuda_driver", CPU, .sets = CPU | CUDA),
	TYPE(CUDA_SYNC, "cuda_sync", CUDA, .sets = CUDA, .on_device = true, .optional = true),
	TYPE(CUDA_EVENT, "cuda_event", CUDA, .sets = CUDA, .on_device = true, .optional = true),
	TYPE(CUDA_PROFILER_RANGE, "cuda_profiler_range", CUDA, .sets = CUDA, .on_device = true,
	     .optional = true),
	TYPE(GLOW_RUNTIME, "glow_runtime", CPU, .sets = CPU, .optional = true),
	TYPE(XPU_RUNTIME, "xpu_runtime", CPU, .sets = CPU | XPU),
	TYPE(XPU_DRIVER, "xpu_driver", CPU, .sets = CPU | XPU),
	TYPE(XPU_SCOPE_PROFILER, "xpu_scope_profiler", XPU, .sets = XPU, .on_device = true,
	     .optional = true),
	TYPE(XPU_SYNC, "xpu_sync", XPU, .sets = XPU, .on_device = true, .optional = true),
	TYPE(HPU_OP, "hpu_op", HPU, .sets = HPU),
	TYPE(MTIA_RUNTIME, "mtia_runtime", CPU, .sets = MTIA),
	TYPE(MTIA_CCP_EVENTS, "mtia_ccp_events", MTIA, .sets = MTIA, .on_device = true),
	TYPE(MTIA_WORKLOADD, "mtia_workloadd", MTIA, .sets = MTIA, .optional = true),
	TYPE(MTIA_INSIGHT, "mtia_insight", MTIA, .sets = MTIA),
	TYPE(MTIA_COUNTERS, "mtia_counters", MTIA, .sets = MTIA),
	TYPE(COLLECTIVE_COMM, "collective_comm", CPU, .sets = MTIA),
	TYPE(PRIVATEUSE1_RUNTIME, "privateuse1_runtime", CPU, .sets = CPU | PRIV),
	TYPE(PRIVATEUSE1_DRIVER, "privateuse1_driver", CPU, .sets = CPU | PRIV),
	/* kprof's own */
	TYPE(GPU_APPROXIMATE, "gpu_approximate", CUDA, .sets = CUDA, .on_device = true),
	TYPE(OPENCL_RUNTIME, "opencl_runtime", CPU, .sets = CPU),
};

static const struct {
	const char *name;
	enum activity_set set;
} sets[] = {
	{"cpu", CPU}, {"cuda", CUDA}, {"xpu", XPU},
	{"hpu", HPU}, {"mtia", MTIA}, {"privateuse1", PRIV},
};

static const struct activity_type *unknown(const char *what)
{
	static atomic_uint_fast64_t
		said; /* a bit per hash: a name is said once, few are lost to others */
	uint64_t hash = 1469598103934665603u;

	for (const char *p = what; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	if (!(atomic_fetch_or(&said, 1ull << (hash >> 58)) & 1ull << (hash >> 58)))
		log_warn(NULL, "unknown type of activity %s: it counts as the CPU's", what);
	return &types[KPROF_ACTIVITY_CPU_OP];
}

const struct activity_type *activity_by_id(uint32_t id)
{
	char number[16];

	if (id < KPROF_ACTIVITY_NR && types[id].name)
		return &types[id];
	snprintf(number, sizeof(number), "%u", id);
	return unknown(number);
}

const struct activity_type *activity_by_name(const char *name)
{
	for (size_t i = 0; i < KPROF_ACTIVITY_NR; i++)
		if (types[i].name && !strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

const struct activity_type *activity_by_category(const char *category)
{
	const struct activity_type *type = activity_by_name(category);

	return type ? type : unknown(category);
}

const struct activity_type *activity_at(size_t i)
{
	for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (types[id].name && !i--)
			return &types[id];
	return NULL;
}

uint64_t activity_default_types(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < KPROF_ACTIVITY_NR; i++)
		if (types[i].name && !types[i].optional)
			mask |= ACTIVITY_BIT(i);
	return mask;
}

static bool is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !strncasecmp(word, name, len);
}

static int add_set(const char *word, size_t len, uint64_t *mask)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		if (!is(word, len, sets[i].name))
			continue;
		for (size_t id = 0; id < KPROF_ACTIVITY_NR; id++)
			if (types[id].sets & sets[i].set && !types[id].optional)
				*mask |= ACTIVITY_BIT(id);
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

int activity_parse_sets(const char *text, uint64_t *mask, char *renamed)
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
			err = add_set(text, prefix - 1, mask);
		} else {
			err = add_set(text, len, mask);
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

int kprof_session_opts_activities(struct kprof_session_opts *opts, const char *set_list,
				  const char *type_list)
{
	int err = 0;

	error_clear();
	opts->types = 0;
	if (set_list)
		err = activity_parse_sets(set_list, &opts->types, opts->privateuse1);
	if (!err && type_list)
		err = activity_parse_types(type_list, &opts->types);
	if (!err && !set_list && !type_list)
		opts->types = activity_default_types();
	return err;
}

const char *kprof_activity_name(size_t i)
{
	const struct activity_type *type = activity_at(i);

	return type ? type->name : NULL;
}
