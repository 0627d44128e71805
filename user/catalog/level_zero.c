// SPDX-License-Identifier: BSD-2-Clause
/*
 * Level Zero, Intel's runtime, at its loader (libze_loader), seen from outside. Signatures are
 * those of ze_api.h, 1.8. A kernel is appended to a command list, which a queue executes; appending
 * to an immediate list does both. Calls have Kineto's category xpu_driver. The agent has no module
 * for these devices: only calls are recorded.
 *
 * zeKernelSetArgumentValue, zeKernelSetGroupSize and queries of properties are left out: they are
 * the most frequent calls and say nothing about the device's work.
 */
#include "catalog/calls.h"

#define CALLS(calls, ...)                                                                       \
	{                                                                                       \
		.source = "level_zero", .library = "libze_loader.so*", .symbols = (calls),      \
		.category = "xpu_driver", .shape = CATALOG_SPAN, .naming = CATALOG_NAME_SYMBOL, \
		.activity = KPROF_ACTIVITY_XPU_DRIVER, .result = &result,                       \
		.folded_into = "xpu_driver", __VA_ARGS__                                        \
	}
#define LIST ARG("command list handle", STREAM, REG(1))
#define QUEUE ARG("queue handle", STREAM, REG(1))
#define KERNEL ARG("kernel handle", POINTER, REG(2))
#define TIMEOUT ARG("timeout ns", UNSIGNED, REG(2)) /* UINT64_MAX: waits for ever */

/* ze_result_t, in order of number. */
static const struct catalog_result_name errors[] = {
	{1, "ZE_RESULT_NOT_READY"},
	{0x70000001, "ZE_RESULT_ERROR_DEVICE_LOST"},
	{0x70000002, "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"},
	{0x70000003, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"},
	{0x70000004, "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE"},
	{0x70000005, "ZE_RESULT_ERROR_MODULE_LINK_FAILURE"},
	{0x70000006, "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET"},
	{0x70000007, "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE"},
	{0x70010000, "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS"},
	{0x70010001, "ZE_RESULT_ERROR_NOT_AVAILABLE"},
	{0x70020000, "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE"},
	{0x70020001, "ZE_RESULT_WARNING_DROPPED_DATA"},
	{0x78000001, "ZE_RESULT_ERROR_UNINITIALIZED"},
	{0x78000002, "ZE_RESULT_ERROR_UNSUPPORTED_VERSION"},
	{0x78000003, "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE"},
	{0x78000004, "ZE_RESULT_ERROR_INVALID_ARGUMENT"},
	{0x78000005, "ZE_RESULT_ERROR_INVALID_NULL_HANDLE"},
	{0x78000006, "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE"},
	{0x78000007, "ZE_RESULT_ERROR_INVALID_NULL_POINTER"},
	{0x78000008, "ZE_RESULT_ERROR_INVALID_SIZE"},
	{0x78000009, "ZE_RESULT_ERROR_UNSUPPORTED_SIZE"},
	{0x7800000a, "ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT"},
	{0x7800000b, "ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT"},
	{0x7800000c, "ZE_RESULT_ERROR_INVALID_ENUMERATION"},
	{0x7800000d, "ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION"},
	{0x7800000e, "ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT"},
	{0x7800000f, "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY"},
	{0x78000010, "ZE_RESULT_ERROR_INVALID_GLOBAL_NAME"},
	{0x78000011, "ZE_RESULT_ERROR_INVALID_KERNEL_NAME"},
	{0x78000012, "ZE_RESULT_ERROR_INVALID_FUNCTION_NAME"},
	{0x78000013, "ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION"},
	{0x78000014, "ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION"},
	{0x78000015, "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX"},
	{0x78000016, "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE"},
	{0x78000017, "ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE"},
	{0x78000018, "ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED"},
	{0x78000019, "ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE"},
	{0x7800001a, "ZE_RESULT_ERROR_OVERLAPPING_REGIONS"},
	{0x7800001b, "ZE_RESULT_WARNING_ACTION_REQUIRED"},
	{0x7ffffffe, "ZE_RESULT_ERROR_UNKNOWN"},
	{0, NULL},
};

static const struct catalog_result result = {
	.names = errors, .answer = 1, /* ZE_RESULT_NOT_READY */
};

static const struct catalog_row rows[] = {
	/* ze_group_count_t: three 32-bit numbers */
	CALLS("zeCommandListAppendLaunchKernel zeCommandListAppendLaunchCooperativeKernel",
	      ARGS(KERNEL, DIM3("grid", FIELD(3, 0), FIELD(3, 8)), LIST),
	      .lost = "kernel launches"),
	CALLS("zeCommandListAppendLaunchKernelIndirect", ARGS(KERNEL, LIST), .optional = true),
	CALLS("zeCommandListAppendLaunchMultipleKernelsIndirect",
	      ARGS(ARG("kernels", UNSIGNED32, REG(2)), LIST), .optional = true),

	CALLS("zeCommandListAppendMemoryCopy", ARGS(BYTES(REG(4)), LIST), .lost = "copies"),
	CALLS("zeCommandListAppendMemoryFill zeCommandListAppendMemoryCopyFromContext",
	      ARGS(BYTES(REG(5)), LIST), .lost = "memory sets"),
	/* ze_copy_region_t: an origin, then the extent */
	CALLS("zeCommandListAppendMemoryCopyRegion",
	      ARGS(ARG("width in bytes", UNSIGNED32, FIELD(3, 12)),
		   ARG("height", UNSIGNED32, FIELD(3, 16)), ARG("depth", UNSIGNED32, FIELD(3, 20)),
		   LIST),
	      .optional = true),
	CALLS("zeCommandListAppendMemoryPrefetch", ARGS(BYTES(REG(3)), LIST), .optional = true),
	CALLS("zeCommandListAppendImageCopy*", ARGS(LIST), .optional = true),
	CALLS("zeCommandListAppendBarrier zeCommandListAppendMemoryRangesBarrier "
	      "zeCommandListAppendWaitOnEvents zeCommandListAppendWriteGlobalTimestamp",
	      ARGS(LIST), .optional = true),
	CALLS("zeCommandListAppendSignalEvent zeCommandListAppendEventReset",
	      ARGS(EVENT(REG(2)), LIST), .optional = true),
	CALLS("zeCommandListClose zeCommandListReset", ARGS(LIST)),
	CALLS("zeCommandQueueExecuteCommandLists",
	      ARGS(ARG("command lists", UNSIGNED32, REG(2)), QUEUE), .lost = "executions of lists"),

	CALLS("zeCommandQueueSynchronize", ARGS(TIMEOUT, QUEUE), .lost = "waiting for a queue"),
	CALLS("zeCommandListHostSynchronize", ARGS(TIMEOUT, LIST), .optional = true),
	CALLS("zeEventHostSynchronize", ARGS(EVENT(REG(1)), TIMEOUT),
	      .lost = "waiting for an event"),
	CALLS("zeFenceHostSynchronize", ARGS(ARG("fence handle", POINTER, REG(1)), TIMEOUT),
	      .lost = "waiting for a fence"),
	CALLS("zeEventQueryStatus", ARGS(EVENT(REG(1)))),
	CALLS("zeFenceQueryStatus", ARGS(ARG("fence handle", POINTER, REG(1)))),

	CALLS("zeMemAllocDevice zeMemAllocHost", ARGS(BYTES(REG(3))), .lost = "allocations"),
	CALLS("zeMemAllocShared", ARGS(BYTES(REG(4))), .lost = "allocations"),
	CALLS("zeMemFree", ARGS(ADDRESS(REG(2)))),
	CALLS("zeMemFreeExt", ARGS(ADDRESS(REG(3))), .optional = true),

	/* Calls that are rare and slow. */
	CALLS("zeInit zeInitDrivers zeContextCreate zeContextCreateEx zeContextDestroy "
	      "zeModuleCreate zeModuleDestroy zeModuleDynamicLink zeKernelCreate zeKernelDestroy "
	      "zeCommandQueueCreate zeCommandQueueDestroy zeCommandListCreate "
	      "zeCommandListCreateImmediate zeCommandListDestroy",
	      .optional = true),
};

static const char *const libraries[] = {"libze_loader.so*", NULL};
static const char *const versioned[] = {"libze_loader.so.*", NULL};

/*
 * From the specification's "Core Programming Guide". Lists that are not immediate are executed by a
 * queue.
 */
static const struct catalog_role roles[] = {
	{"zeCommandListAppendLaunch* zeCommandQueueExecuteCommandLists", DEVICE_ROLE_LAUNCH},
	{"zeCommandListAppendMemoryCopy* zeCommandListAppendImageCopy* "
	 "zeCommandListAppendMemoryPrefetch",
	 DEVICE_ROLE_COPY},
	{"zeCommandListAppendMemoryFill", DEVICE_ROLE_SET},
	{"zeMemAlloc*", DEVICE_ROLE_ALLOCATE},
	{"zeCommandQueueSynchronize zeCommandListHostSynchronize zeFenceHostSynchronize",
	 DEVICE_ROLE_WAIT_STREAM},
	{"zeEventHostSynchronize", DEVICE_ROLE_WAIT_EVENT},
	{NULL, DEVICE_ROLE_NONE},
};

static const struct catalog_runtime runtime = {
	.name = "level-zero",
	.title = "Level Zero",
	.libraries = versioned,
	.calls = "ze[A-Z]*",
	.roles = roles,
	.sets = ACTIVITY_SET_XPU,
};

const struct catalog_framework catalog_level_zero = {
	.name = "level-zero",
	.libraries = libraries,
	.common = "zeCommandListAppend* zeCommandQueueExecute* ze*Synchronize",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.runtime = &runtime,
};
