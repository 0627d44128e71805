// SPDX-License-Identifier: BSD-2-Clause
/*
 * NVTX, NVIDIA's annotations, as far as they can be seen without a tool of NVIDIA's in the process:
 * the functions of the library of version 2 (libnvToolsExt), and those of the headers of version 3
 * where the compiler did not inline them and their symbols are kept (libtorch_python.so of
 * PyTorch's wheels, programs that are not stripped). kprof injects nothing for NVTX, and so does
 * not know what NVTX would give to a tool: the names of registered strings.
 *
 * A range that may end on another thread (nvtxRangeStart…) is recorded as two moments: they could
 * be matched by the range's id, but ids come from a tool; without one they are all 0.
 *
 * nvtxEventAttributes_t, versions 2 and 3 (nvToolsExt.h), has the type of the message at offset 32
 * and the message at 40. Before them are the category (at 4), type of colour and colour (8, 12),
 * type of payload (16) and payload (24). Domains are handles that only a tool gives out: without
 * one they are all null, and their names unknown.
 */
#include "catalog/catalog.h"
#include "kprof.h"
#include "util/util.h"

#define LIBRARIES "libnvToolsExt.so* libnvtx3interop.so* libtorch_python.so*"
/*
 * The extension module of the Python package `nvtx`, which inlines NVTX's functions into its own.
 */
#define PYTHON_MODULE "lib.cpython-*.so lib.abi3.so"
#define PYTHON_FUNCTION "__pyx_pw_4nvtx_4_lib_3lib_"
/* The class of a disabled domain, whose functions do nothing. */
#define PYTHON_DUMMY PYTHON_FUNCTION "*DummyDomain*"

#define MESSAGE_OFFSET 40
#define TEXT(n)                         \
	{                               \
		.reg = KPROF_REG_ARG##n \
	}
#define MESSAGE(n)                                                              \
	{                                                                       \
		.reg = KPROF_REG_ARG##n, .nr_off = 1, .off = { MESSAGE_OFFSET } \
	}

/* What else the attributes have: category, colour, payload. */
#define ATTRIBUTE(n, at) .from = {.reg = KPROF_REG_ARG##n, .deref = 1, .off = (at)}
#define ATTRIBUTES(n)                                                               \
	.args = {{.name = "category", CATALOG_ARG_NVTX_CATEGORY, ATTRIBUTE(n, 4)},  \
		 {.name = "colour", CATALOG_ARG_NVTX_COLOUR, ATTRIBUTE(n, 8)},      \
		 {.name = "payload type", CATALOG_ARG_NVTX_TYPE, ATTRIBUTE(n, 16)}, \
		 {.name = "payload", CATALOG_ARG_NVTX_PAYLOAD, ATTRIBUTE(n, 24)}}

#define ROW(in, functions, is, ...)                                                           \
	{                                                                                     \
		.source = "nvtx", .library = in, .symbols = functions, .shape = CATALOG_##is, \
		.optional = true, __VA_ARGS__                                                 \
	}
#define BEGIN(functions, ...)                                                 \
	ROW(LIBRARIES, functions, RANGE_BEGIN, .category = "user_annotation", \
	    .naming = CATALOG_NAME_TEXT, .text = __VA_ARGS__)
#define END(in, functions)                                                                         \
	ROW(in, functions, RANGE_END, .category = "user_annotation", .naming = CATALOG_NAME_FIXED, \
	    .name = "nvtx", .unless = PYTHON_DUMMY)
#define MOMENT(functions, ...)                                              \
	ROW(LIBRARIES, functions, INSTANT, .category = "cpu_instant_event", \
	    .naming = CATALOG_NAME_TEXT, __VA_ARGS__)
/*
 * A message of wide characters, or a registered string: the event is recorded, but its text cannot
 * be read.
 */
#define NAMELESS(in, functions, is, in_category, shown)                               \
	ROW(in, functions, is, .category = in_category, .naming = CATALOG_NAME_FIXED, \
	    .name = shown, .unless = PYTHON_DUMMY)

static const struct catalog_row rows[] = {
	BEGIN("nvtxRangePushA", TEXT(1)),
	BEGIN("nvtxRangePushEx", MESSAGE(1), ATTRIBUTES(1)),
	BEGIN("nvtxDomainRangePushEx", MESSAGE(2), ATTRIBUTES(2)),
	NAMELESS(LIBRARIES, "nvtxRangePushW", RANGE_BEGIN, "user_annotation", "nvtxRangePushW"),
	/*
	 * Each domain has a stack of ranges of its own. They are treated as one per thread, which
	 * is almost always right.
	 */
	END(LIBRARIES, "nvtxRangePop nvtxDomainRangePop"),
	MOMENT("nvtxMarkA", .text = TEXT(1)),
	MOMENT("nvtxMarkEx", .text = MESSAGE(1), ATTRIBUTES(1)),
	MOMENT("nvtxDomainMarkEx", .text = MESSAGE(2), ATTRIBUTES(2)),
	NAMELESS(LIBRARIES, "nvtxMarkW", INSTANT, "cpu_instant_event", "nvtxMarkW"),
	MOMENT("nvtxRangeStartA", .name = "%s (range start)", .text = TEXT(1)),
	MOMENT("nvtxRangeStartEx", .name = "%s (range start)", .text = MESSAGE(1), ATTRIBUTES(1)),
	MOMENT("nvtxDomainRangeStartEx", .name = "%s (range start)", .text = MESSAGE(2),
	       ATTRIBUTES(2)),
	NAMELESS(LIBRARIES, "nvtxRangeStartW", INSTANT, "cpu_instant_event", "nvtxRangeStartW"),
	NAMELESS(LIBRARIES, "nvtxRangeEnd nvtxDomainRangeEnd", INSTANT, "cpu_instant_event",
		 "nvtxRangeEnd"),
	NAMELESS(PYTHON_MODULE, PYTHON_FUNCTION "*push_range", RANGE_BEGIN, "user_annotation",
		 "nvtx range"),
	END(PYTHON_MODULE, PYTHON_FUNCTION "*pop_range"),
	NAMELESS(PYTHON_MODULE, PYTHON_FUNCTION "*[0-9]mark", INSTANT, "cpu_instant_event",
		 "nvtx mark"),
	NAMELESS(PYTHON_MODULE, PYTHON_FUNCTION "*start_range", INSTANT, "cpu_instant_event",
		 "nvtx range start"),
	NAMELESS(PYTHON_MODULE, PYTHON_FUNCTION "*end_range", INSTANT, "cpu_instant_event",
		 "nvtx range end"),
};

static const char *const libraries[] = {"libnvToolsExt.so*", "libnvtx3interop.so*", NULL};

const struct catalog_framework catalog_nvtx = {
	.name = "nvtx",
	.libraries = libraries,
	.common = "nvtx*",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.annotations = KPROF_ONLY_NVTX,
	.embedded_symbol = "nvtxRangePushA",
	.embedded_as = "libnvToolsExt.so",
	.embedded_with = "libcudart.so* libcuda.so*",
};
