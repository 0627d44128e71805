// SPDX-License-Identifier: BSD-2-Clause
/* The table of activity types: whole, without doubles, and as torch.profiler's sets have it. */
#include "catalog/activity.h"

#include <errno.h>
#include <stdio.h>

#include "kprof.h"
#include "unit.h"

#define BIT(name) ACTIVITY_BIT(KPROF_ACTIVITY_##name)

static void whole(void)
{
	size_t nr = 0;

	for (const struct activity_type *t; (t = activity_at(nr)); nr++) {
		CHECK(activity_by_id(t->id) == t);
		CHECK(activity_by_name(t->name) == t);
		CHECK(t->sets);
		CHECK_STR(kprof_activity_name(nr), t->name);
		/* What runs on a device is of one; a thread's row is the CPU's. */
		CHECK(!t->on_device || t->device != ACTIVITY_DEVICE_CPU);
	}
	CHECK_EQ(nr, 31);
	CHECK(!kprof_activity_name(nr));
}

static void names(void)
{
	CHECK_STR(activity_by_id(KPROF_ACTIVITY_KERNEL)->name, "kernel");
	CHECK_STR(activity_by_id(KPROF_ACTIVITY_PRIVATEUSE1_DRIVER)->name, "privateuse1_driver");
	CHECK_EQ(activity_by_name("mtia_counters")->id, KPROF_ACTIVITY_MTIA_COUNTERS);
	CHECK_EQ(activity_by_name("hpu_op")->device, ACTIVITY_DEVICE_HPU);
	CHECK(!activity_by_name("Kernel"));
	CHECK(!activity_by_name(""));
}

static int warnings;

static void count_warning(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	warnings += level == KPROF_LOG_WARN;
}

static void unknown(void)
{
	kprof_set_log(count_warning, NULL);
	for (int i = 0; i < 3; i++) {
		CHECK_STR(activity_by_id(63)->name, "cpu_op");
		CHECK_STR(activity_by_id(0)->name, "cpu_op");
		CHECK_STR(activity_by_id(UINT32_MAX)->name, "cpu_op");
	}
	kprof_set_log(NULL, NULL);
	CHECK(warnings >= 1 && warnings <= 4);
}

/* Adds the types of these sets. */
static int parse_sets(const char *text, uint64_t *types, char *renamed)
{
	unsigned int sets = 0;
	int err = activity_parse_sets(text, &sets, renamed);

	*types |= activity_types_of(sets);
	return err;
}

static void sets(void)
{
	char renamed[ACTIVITY_RENAMED_BYTES] = "";
	uint64_t types = 0;

	CHECK_EQ(parse_sets("cuda", &types, renamed), 0);
	CHECK_EQ(types, BIT(GPU_MEMCPY) | BIT(GPU_MEMSET) | BIT(KERNEL) | BIT(GPU_USER_ANNOTATION) |
				BIT(CUDA_RUNTIME) | BIT(CUDA_DRIVER) | BIT(OVERHEAD) |
				BIT(GPU_APPROXIMATE));
	CHECK_EQ(parse_sets("CPU,hpu", &types, renamed), 0);
	CHECK(types & BIT(CPU_OP) && types & BIT(HPU_OP) && types & BIT(KERNEL));
	CHECK(!(types & BIT(CUDA_SYNC)));
	CHECK_STR(renamed, "");
	types = 0;
	CHECK_EQ(parse_sets("privateuse1=npu,cpu", &types, renamed), 0);
	CHECK_STR(renamed, "npu");
	CHECK(types & BIT(PRIVATEUSE1_RUNTIME) && types & BIT(CPU_OP));
}

static void wrong(void)
{
	static const char *const no_sets[] = {"",      ",",    "gpu",          "cpu,",
					      ",cuda", "cpux", "privateuse1=", "cpu cuda"};
	char renamed[ACTIVITY_RENAMED_BYTES] = "", huge[64];
	uint64_t types = 0;

	for (size_t i = 0; i < sizeof(no_sets) / sizeof(no_sets[0]); i++) {
		CHECK_EQ(parse_sets(no_sets[i], &types, renamed), -EINVAL);
		CHECK(*kprof_error_cause() && kprof_error_hint());
	}
	memset(huge, 'x', sizeof(huge));
	memcpy(huge, "privateuse1=", 12);
	huge[63] = '\0';
	CHECK_EQ(parse_sets(huge, &types, renamed), -EINVAL);
	CHECK_EQ(activity_parse_types("kernel,,cpu_op", &types), -EINVAL);
	CHECK_EQ(activity_parse_types("kernels", &types), -EINVAL);
}

static void public_face(void)
{
	struct kprof_session_opts opts = {.sz = sizeof(opts)};

	CHECK_EQ(kprof_session_opts_activities(&opts, NULL, NULL), 0);
	CHECK_EQ(opts.types, activity_default_types());
	CHECK(opts.types & BIT(KERNEL) && opts.types & BIT(CPU_OP) &&
	      !(opts.types & BIT(CUDA_SYNC)));
	CHECK_EQ(kprof_session_opts_activities(&opts, NULL, "kernel,cuda_sync"), 0);
	CHECK_EQ(opts.types, BIT(KERNEL) | BIT(CUDA_SYNC));
	CHECK_EQ(kprof_session_opts_activities(&opts, "cpu", "kernel"), 0);
	CHECK(opts.types & BIT(KERNEL) && opts.types & BIT(CPU_OP) &&
	      !(opts.types & BIT(GPU_MEMCPY)));
	CHECK_EQ(kprof_session_opts_activities(&opts, "cpu", "nothing"), -EINVAL);
}

static char said[2048];

static void keep_warning(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	size_t at = strlen(said);

	if (level == KPROF_LOG_WARN)
		snprintf(said + at, sizeof(said) - at, "%s\n", text);
}

/* A set is of its devices; a type that is asked for by name is of all of them. */
static void devices(void)
{
	static const struct {
		const char *sets, *types;
		unsigned int meant;
	} asked[] = {
		{"cuda", NULL, ACTIVITY_SET_CUDA},
		{"cpu", NULL, 0},
		{"cpu,xpu", NULL, ACTIVITY_SET_XPU},
		{"xpu,privateuse1", NULL, ACTIVITY_SET_XPU | ACTIVITY_SET_PRIVATEUSE1},
		{"xpu", "cpu_op", ACTIVITY_SET_XPU},
		{"xpu", "kernel", 0},
		{NULL, "kernel,cpu_op", 0},
		{NULL, NULL, 0},
	};
	struct kprof_session_opts opts = {.sz = sizeof(opts)};

	kprof_set_log(keep_warning, NULL);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		CHECK_EQ(kprof_session_opts_activities(&opts, asked[i].sets, asked[i].types), 0);
		CHECK_EQ(activity_sets_in(opts.types), asked[i].meant);
		CHECK(opts.types & ACTIVITY_TYPES);
	}
	kprof_set_log(NULL, NULL);
	/* By name; of CUDA's nothing is missing. */
	CHECK(strstr(said, "of the set xpu, nothing here records "));
	CHECK(strstr(said, "xpu_runtime") && strstr(said, "gpu_memcpy"));
	CHECK(strstr(said, "of the set cpu, nothing here records "));
	CHECK(!strstr(said, "set cuda"));
}

/*
 * What nothing can record is refused when it is asked for by name, and when nothing else is asked
 * for.
 */
static void without_source(void)
{
	static const char *const none[] = {"glow_runtime",
					   "xpu_runtime",
					   "xpu_sync",
					   "mtia_runtime",
					   "hpu_op",
					   "xpu_scope_profiler",
					   "mtia_ccp_events",
					   "mtia_insight",
					   "privateuse1_driver",
					   "python_function",
					   "external_correlation"};
	struct kprof_session_opts opts = {.sz = sizeof(opts)};
	const struct activity_type *type;
	size_t refused = 0;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK_EQ(kprof_session_opts_activities(&opts, NULL, none[i]), -EINVAL);
		CHECK(strstr(kprof_error_cause(), none[i]) && strstr(kprof_error_hint(), "cpu_op"));
	}
	for (size_t i = 0; (type = activity_at(i)); i++) {
		bool has = activity_sources(0) & ACTIVITY_BIT(type->id);

		CHECK_EQ(kprof_session_opts_activities(&opts, NULL, type->name), has ? 0 : -EINVAL);
		refused += !has;
	}
	CHECK(refused > 0 && refused < 31);
	CHECK_EQ(kprof_session_opts_activities(&opts, "hpu", NULL), -EINVAL);
	CHECK_EQ(kprof_session_opts_activities(&opts, "mtia", NULL), -EINVAL);
	CHECK_EQ(kprof_session_opts_activities(&opts, "privateuse1=npu", NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "npu"));
	CHECK_EQ(kprof_session_opts_activities(&opts, "privateuse1", NULL), 0);
}

UNIT_MAIN(TEST(devices), TEST(without_source), TEST(whole), TEST(names), TEST(unknown), TEST(sets),
	  TEST(wrong), TEST(public_face))
