// SPDX-License-Identifier: BSD-2-Clause
/*
 * ITT, Intel's annotations (ittnotify). Its functions are macros around pointers inside of each
 * program: without a collector, a library that a variable of the environment names, all are null
 * after the first call, and nothing is called. So there is nothing to probe, except where a library
 * has functions of its own around them, as PyTorch has (torch.profiler.itt). Those are called
 * whether there is a collector or not.
 */
#include "catalog/catalog.h"
#include "kprof.h"
#include "util/util.h"

/* torch::profiler::itt_range_push(char const*), itt_range_pop(), itt_mark(char const*) */
#define PYTORCH(functions, is, ...)                                                   \
	{                                                                             \
		.source = "itt", .library = "libtorch_cpu.so*", .symbols = functions, \
		.shape = CATALOG_##is, .optional = true, __VA_ARGS__                  \
	}
#define TEXT                           \
	{                              \
		.reg = KPROF_REG_ARG1, \
	}

static const struct catalog_row rows[] = {
	PYTORCH("_ZN5torch8profiler14itt_range_pushEPKc", RANGE_BEGIN,
		.category = "user_annotation", .naming = CATALOG_NAME_TEXT, .text = TEXT),
	PYTORCH("_ZN5torch8profiler13itt_range_popEv", RANGE_END, .category = "user_annotation",
		.naming = CATALOG_NAME_FIXED, .name = "itt"),
	PYTORCH("_ZN5torch8profiler8itt_markEPKc", INSTANT, .category = "cpu_instant_event",
		.naming = CATALOG_NAME_TEXT, .text = TEXT),
};

/* No process is one of ITT's for that it maps PyTorch. */
static const char *const libraries[] = {NULL};

const struct catalog_framework catalog_itt = {
	.name = "itt",
	.libraries = libraries,
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.annotations = KPROF_ONLY_ITT,
};
