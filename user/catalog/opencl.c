// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenCL, at its loader (libOpenCL), seen from outside: the calls that queue work, wait for it,
 * build programs and allocate. Signatures are those of CL/cl.h, 1.0 to 3.0. Of an array of sizes
 * only those elements are read that are there in each call: an NDRange has at least one dimension,
 * a region has three.
 *
 * clSetKernelArg, clRetain…, clRelease… and clGet…Info are left out: they are the most frequent
 * calls and say nothing about the device's work.
 */
#include "catalog/calls.h"

#define QUEUE ARG("queue handle", STREAM, REG(1))
#define KERNEL ARG("kernel handle", POINTER, REG(2))
#define BLOCKING(n) ARG("blocking", UNSIGNED32, REG(n))
#define REGION(n)                                                                  \
	ARG("width", UNSIGNED, FIELD(n, 0)), ARG("height", UNSIGNED, FIELD(n, 8)), \
		ARG("depth", UNSIGNED, FIELD(n, 16))

#define CALLS(calls, ...)                                                                   \
	{                                                                                   \
		.source = "opencl_runtime", .library = "libOpenCL.so*", .symbols = (calls), \
		.category = "opencl_runtime", .shape = CATALOG_SPAN,                        \
		.naming = CATALOG_NAME_SYMBOL, .activity = KPROF_ACTIVITY_OPENCL_RUNTIME,   \
		__VA_ARGS__                                                                 \
	}
#define RESULT .result = &result

/* Ordered by number. */
static const struct catalog_result_name errors[] = {
	{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
	{-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
	{-71, "CL_INVALID_SPEC_ID"},
	{-70, "CL_INVALID_DEVICE_QUEUE"},
	{-69, "CL_INVALID_PIPE_SIZE"},
	{-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
	{-67, "CL_INVALID_LINKER_OPTIONS"},
	{-66, "CL_INVALID_COMPILER_OPTIONS"},
	{-65, "CL_INVALID_IMAGE_DESCRIPTOR"},
	{-64, "CL_INVALID_PROPERTY"},
	{-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
	{-62, "CL_INVALID_MIP_LEVEL"},
	{-61, "CL_INVALID_BUFFER_SIZE"},
	{-60, "CL_INVALID_GL_OBJECT"},
	{-59, "CL_INVALID_OPERATION"},
	{-58, "CL_INVALID_EVENT"},
	{-57, "CL_INVALID_EVENT_WAIT_LIST"},
	{-56, "CL_INVALID_GLOBAL_OFFSET"},
	{-55, "CL_INVALID_WORK_ITEM_SIZE"},
	{-54, "CL_INVALID_WORK_GROUP_SIZE"},
	{-53, "CL_INVALID_WORK_DIMENSION"},
	{-52, "CL_INVALID_KERNEL_ARGS"},
	{-51, "CL_INVALID_ARG_SIZE"},
	{-50, "CL_INVALID_ARG_VALUE"},
	{-49, "CL_INVALID_ARG_INDEX"},
	{-48, "CL_INVALID_KERNEL"},
	{-47, "CL_INVALID_KERNEL_DEFINITION"},
	{-46, "CL_INVALID_KERNEL_NAME"},
	{-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
	{-44, "CL_INVALID_PROGRAM"},
	{-43, "CL_INVALID_BUILD_OPTIONS"},
	{-42, "CL_INVALID_BINARY"},
	{-41, "CL_INVALID_SAMPLER"},
	{-40, "CL_INVALID_IMAGE_SIZE"},
	{-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
	{-38, "CL_INVALID_MEM_OBJECT"},
	{-37, "CL_INVALID_HOST_PTR"},
	{-36, "CL_INVALID_COMMAND_QUEUE"},
	{-35, "CL_INVALID_QUEUE_PROPERTIES"},
	{-34, "CL_INVALID_CONTEXT"},
	{-33, "CL_INVALID_DEVICE"},
	{-32, "CL_INVALID_PLATFORM"},
	{-31, "CL_INVALID_DEVICE_TYPE"},
	{-30, "CL_INVALID_VALUE"},
	{-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
	{-18, "CL_DEVICE_PARTITION_FAILED"},
	{-17, "CL_LINK_PROGRAM_FAILURE"},
	{-16, "CL_LINKER_NOT_AVAILABLE"},
	{-15, "CL_COMPILE_PROGRAM_FAILURE"},
	{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
	{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
	{-12, "CL_MAP_FAILURE"},
	{-11, "CL_BUILD_PROGRAM_FAILURE"},
	{-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
	{-9, "CL_IMAGE_FORMAT_MISMATCH"},
	{-8, "CL_MEM_COPY_OVERLAP"},
	{-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
	{-6, "CL_OUT_OF_HOST_MEMORY"},
	{-5, "CL_OUT_OF_RESOURCES"},
	{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
	{-3, "CL_COMPILER_NOT_AVAILABLE"},
	{-2, "CL_DEVICE_NOT_AVAILABLE"},
	{-1, "CL_DEVICE_NOT_FOUND"},
	{0, NULL},
};

static const struct catalog_result result = {
	.names = errors,
};

static const struct catalog_row rows[] = {
	CALLS("clEnqueueNDRangeKernel",
	      ARGS(KERNEL, ARG("dimensions", UNSIGNED32, REG(3)),
		   ARG("global size x", UNSIGNED, FIELD(5, 0)),
		   ARG("local size x", UNSIGNED, FIELD(6, 0)), QUEUE),
	      RESULT, .lost = "kernel launches"),
	CALLS("clEnqueueTask", ARGS(KERNEL, QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueNativeKernel", ARGS(ARG("function", FUNCTION, REG(2)), QUEUE), RESULT,
	      .optional = true),

	CALLS("clEnqueueReadBuffer clEnqueueWriteBuffer", ARGS(BYTES(REG(5)), BLOCKING(3), QUEUE),
	      RESULT, .lost = "copies"),
	CALLS("clEnqueueCopyBuffer", ARGS(BYTES(REG(6)), QUEUE), RESULT),
	CALLS("clEnqueueReadBufferRect clEnqueueWriteBufferRect",
	      ARGS(REGION(6), BLOCKING(3), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueCopyBufferRect", ARGS(REGION(6), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueFillBuffer", ARGS(BYTES(REG(6)), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueMapBuffer", ARGS(BYTES(REG(6)), BLOCKING(3), QUEUE)),
	CALLS("clEnqueueUnmapMemObject clEnqueueMigrateMemObjects", ARGS(QUEUE), RESULT,
	      .optional = true),

	CALLS("clEnqueueReadImage clEnqueueWriteImage", ARGS(REGION(5), BLOCKING(3), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueCopyImage clEnqueueCopyBufferToImage", ARGS(REGION(6), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueCopyImageToBuffer clEnqueueFillImage", ARGS(REGION(5), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueMapImage", ARGS(REGION(6), BLOCKING(3), QUEUE), .optional = true),

	CALLS("clEnqueueSVMMemcpy", ARGS(BYTES(REG(5)), BLOCKING(2), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueSVMMemFill", ARGS(BYTES(REG(5)), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueSVMMap", ARGS(BYTES(REG(5)), BLOCKING(2), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueSVMUnmap clEnqueueSVMFree clEnqueueSVMMigrateMem", ARGS(QUEUE), RESULT,
	      .optional = true),

	CALLS("clFinish clFlush", ARGS(QUEUE), RESULT, .lost = "waiting for a queue"),
	CALLS("clWaitForEvents", ARGS(ARG("events", UNSIGNED32, REG(1))), RESULT,
	      .lost = "waiting for events"),
	CALLS("clEnqueueMarker clEnqueueBarrier clEnqueueWaitForEvents clEnqueueMarkerWithWaitList "
	      "clEnqueueBarrierWithWaitList",
	      ARGS(QUEUE), RESULT, .optional = true),

	CALLS("clCreateBuffer", ARGS(BYTES(REG(3))), .lost = "allocations"),
	CALLS("clSVMAlloc", ARGS(BYTES(REG(3))), .optional = true),
	CALLS("clCreateBufferWithProperties", ARGS(BYTES(REG(4))), .optional = true),
	CALLS("clCreateImage clCreateImage2D clCreateImage3D clCreateImageWithProperties "
	      "clCreateSubBuffer clCreatePipe clSVMFree",
	      .optional = true),

	/* Calls that are rare and slow. */
	CALLS("clBuildProgram clCompileProgram", RESULT),
	CALLS("clLinkProgram clCreateProgramWithSource clCreateProgramWithBinary "
	      "clCreateProgramWithIL clCreateContext clCreateContextFromType clCreateCommandQueue "
	      "clCreateCommandQueueWithProperties",
	      .optional = true),
};

static const char *const libraries[] = {"libOpenCL.so*", NULL};
static const char *const versioned[] = {"libOpenCL.so.*", NULL};

/*
 * From the specification's chapters on queueing commands and on waiting for them. Blocking and
 * other copies are not distinguished.
 */
static const struct catalog_role roles[] = {
	{"clEnqueueNDRangeKernel clEnqueueTask clEnqueueNativeKernel", DEVICE_ROLE_LAUNCH},
	{"clEnqueueRead* clEnqueueWrite* clEnqueueCopy* clEnqueueMap* clEnqueueUnmap* "
	 "clEnqueueSVMMemcpy clEnqueueSVMMap clEnqueueSVMUnmap clEnqueueMigrate* "
	 "clEnqueueSVMMigrateMem",
	 DEVICE_ROLE_COPY},
	{"clEnqueueFill* clEnqueueSVMMemFill", DEVICE_ROLE_SET},
	{"clCreateBuffer* clCreateImage* clCreatePipe clSVMAlloc", DEVICE_ROLE_ALLOCATE},
	{"clFinish", DEVICE_ROLE_WAIT_STREAM},
	{"clWaitForEvents", DEVICE_ROLE_WAIT_EVENT},
	{NULL, DEVICE_ROLE_NONE},
};

static const struct catalog_runtime runtime = {
	.name = "opencl",
	.title = "OpenCL",
	.libraries = versioned,
	.calls = "cl[A-Z]*",
	.roles = roles,
	/* PyTorch's backends for OpenCL are registered as PrivateUse1. */
	.sets = ACTIVITY_SET_PRIVATEUSE1,
	.module = KPROF_AGENT_OPENCL,
	.activities = ACTIVITY_BIT(KPROF_ACTIVITY_KERNEL) |
		      ACTIVITY_BIT(KPROF_ACTIVITY_GPU_MEMCPY) |
		      ACTIVITY_BIT(KPROF_ACTIVITY_GPU_MEMSET) |
		      ACTIVITY_BIT(KPROF_ACTIVITY_GPU_USER_ANNOTATION),
	/*
	 * The loader inserts the libraries listed in this variable as layers before every call
	 * (cl_loader_layers).
	 */
	.environment = {.name = "OPENCL_LAYERS", .is_list = true},
	.used = "libOpenCL.so*",
};

const struct catalog_framework catalog_opencl = {
	.name = "opencl",
	.libraries = libraries,
	/*
	 * Probed first where probes are scarce: the calls that put work on a device or wait for it.
	 */
	.common = "clEnqueue* clFinish clWaitForEvents",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.runtime = &runtime,
};
