// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenCL, at its loader (libOpenCL), seen from outside: the calls that queue work, wait for it, build programs and
 * allocate. Signatures are those of CL/cl.h, 1.0 to 3.0. What a pointer to sizes points at is told as far as the call
 * says that it is there: an NDRange has one dimension at least, a region three.
 *
 * Not here: clSetKernelArg, clRetain… and clRelease…, clGet…Info. They are called more often than anything else and say
 * nothing.
 */
#include "catalog/catalog.h"
#include "util/util.h"

/* Where an argument lies: the n-th register; behind a pointer in it. */
#define REG(n)                          \
	{                               \
		.reg = KPROF_REG_ARG##n \
	}
#define FIELD(n, at)                                             \
	{                                                        \
		.reg = KPROF_REG_ARG##n, .deref = 1, .off = (at) \
	}

/* What arguments are called, and what they are. The place, a list in braces, comes last. */
#define ARG(key, is, ...)                                                    \
	{                                                                    \
		.name = (key), .kind = CATALOG_ARG_##is, .from = __VA_ARGS__ \
	}
#define QUEUE ARG("queue handle", STREAM, REG(1))
#define KERNEL ARG("kernel handle", POINTER, REG(2))
#define BLOCKING(n) ARG("blocking", UNSIGNED32, REG(n))
#define BYTES(n) ARG("bytes", BYTES, REG(n))
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
#define ARGS(...) .args = {__VA_ARGS__}
#define RESULT .result = &result

static const struct {
	int16_t number;
	const char *name;
} errors[] = {
	{-1, "CL_DEVICE_NOT_FOUND"},
	{-2, "CL_DEVICE_NOT_AVAILABLE"},
	{-3, "CL_COMPILER_NOT_AVAILABLE"},
	{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
	{-5, "CL_OUT_OF_RESOURCES"},
	{-6, "CL_OUT_OF_HOST_MEMORY"},
	{-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
	{-8, "CL_MEM_COPY_OVERLAP"},
	{-9, "CL_IMAGE_FORMAT_MISMATCH"},
	{-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
	{-11, "CL_BUILD_PROGRAM_FAILURE"},
	{-12, "CL_MAP_FAILURE"},
	{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
	{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
	{-15, "CL_COMPILE_PROGRAM_FAILURE"},
	{-16, "CL_LINKER_NOT_AVAILABLE"},
	{-17, "CL_LINK_PROGRAM_FAILURE"},
	{-18, "CL_DEVICE_PARTITION_FAILED"},
	{-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
	{-30, "CL_INVALID_VALUE"},
	{-31, "CL_INVALID_DEVICE_TYPE"},
	{-32, "CL_INVALID_PLATFORM"},
	{-33, "CL_INVALID_DEVICE"},
	{-34, "CL_INVALID_CONTEXT"},
	{-35, "CL_INVALID_QUEUE_PROPERTIES"},
	{-36, "CL_INVALID_COMMAND_QUEUE"},
	{-37, "CL_INVALID_HOST_PTR"},
	{-38, "CL_INVALID_MEM_OBJECT"},
	{-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
	{-40, "CL_INVALID_IMAGE_SIZE"},
	{-41, "CL_INVALID_SAMPLER"},
	{-42, "CL_INVALID_BINARY"},
	{-43, "CL_INVALID_BUILD_OPTIONS"},
	{-44, "CL_INVALID_PROGRAM"},
	{-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
	{-46, "CL_INVALID_KERNEL_NAME"},
	{-47, "CL_INVALID_KERNEL_DEFINITION"},
	{-48, "CL_INVALID_KERNEL"},
	{-49, "CL_INVALID_ARG_INDEX"},
	{-50, "CL_INVALID_ARG_VALUE"},
	{-51, "CL_INVALID_ARG_SIZE"},
	{-52, "CL_INVALID_KERNEL_ARGS"},
	{-53, "CL_INVALID_WORK_DIMENSION"},
	{-54, "CL_INVALID_WORK_GROUP_SIZE"},
	{-55, "CL_INVALID_WORK_ITEM_SIZE"},
	{-56, "CL_INVALID_GLOBAL_OFFSET"},
	{-57, "CL_INVALID_EVENT_WAIT_LIST"},
	{-58, "CL_INVALID_EVENT"},
	{-59, "CL_INVALID_OPERATION"},
	{-60, "CL_INVALID_GL_OBJECT"},
	{-61, "CL_INVALID_BUFFER_SIZE"},
	{-62, "CL_INVALID_MIP_LEVEL"},
	{-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
	{-64, "CL_INVALID_PROPERTY"},
	{-65, "CL_INVALID_IMAGE_DESCRIPTOR"},
	{-66, "CL_INVALID_COMPILER_OPTIONS"},
	{-67, "CL_INVALID_LINKER_OPTIONS"},
	{-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
	{-69, "CL_INVALID_PIPE_SIZE"},
	{-70, "CL_INVALID_DEVICE_QUEUE"},
	{-71, "CL_INVALID_SPEC_ID"},
	{-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
	{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

static const char *error_name(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].number == number)
			return errors[i].name;
	return NULL;
}

static const struct catalog_result result = {
	.key = "error",
	.name = error_name,
	.is_signed = true,
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

	CALLS("clEnqueueReadBuffer clEnqueueWriteBuffer", ARGS(BYTES(5), BLOCKING(3), QUEUE),
	      RESULT, .lost = "copies"),
	CALLS("clEnqueueCopyBuffer", ARGS(BYTES(6), QUEUE), RESULT),
	CALLS("clEnqueueReadBufferRect clEnqueueWriteBufferRect",
	      ARGS(REGION(6), BLOCKING(3), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueCopyBufferRect", ARGS(REGION(6), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueFillBuffer", ARGS(BYTES(6), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueMapBuffer", ARGS(BYTES(6), BLOCKING(3), QUEUE)),
	CALLS("clEnqueueUnmapMemObject clEnqueueMigrateMemObjects", ARGS(QUEUE), RESULT,
	      .optional = true),

	CALLS("clEnqueueReadImage clEnqueueWriteImage", ARGS(REGION(5), BLOCKING(3), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueCopyImage clEnqueueCopyBufferToImage", ARGS(REGION(6), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueCopyImageToBuffer clEnqueueFillImage", ARGS(REGION(5), QUEUE), RESULT,
	      .optional = true),
	CALLS("clEnqueueMapImage", ARGS(REGION(6), BLOCKING(3), QUEUE), .optional = true),

	CALLS("clEnqueueSVMMemcpy", ARGS(BYTES(5), BLOCKING(2), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueSVMMemFill", ARGS(BYTES(5), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueSVMMap", ARGS(BYTES(5), BLOCKING(2), QUEUE), RESULT, .optional = true),
	CALLS("clEnqueueSVMUnmap clEnqueueSVMFree clEnqueueSVMMigrateMem", ARGS(QUEUE), RESULT,
	      .optional = true),

	CALLS("clFinish clFlush", ARGS(QUEUE), RESULT, .lost = "waiting for a queue"),
	CALLS("clWaitForEvents", ARGS(ARG("events", UNSIGNED32, REG(1))), RESULT,
	      .lost = "waiting for events"),
	CALLS("clEnqueueMarker clEnqueueBarrier clEnqueueWaitForEvents clEnqueueMarkerWithWaitList "
	      "clEnqueueBarrierWithWaitList",
	      ARGS(QUEUE), RESULT, .optional = true),

	CALLS("clCreateBuffer", ARGS(BYTES(3)), .lost = "allocations"),
	CALLS("clSVMAlloc", ARGS(BYTES(3)), .optional = true),
	CALLS("clCreateBufferWithProperties", ARGS(BYTES(4)), .optional = true),
	CALLS("clCreateImage clCreateImage2D clCreateImage3D clCreateImageWithProperties "
	      "clCreateSubBuffer clCreatePipe clSVMFree",
	      .optional = true),

	/* Rare and slow */
	CALLS("clBuildProgram clCompileProgram", RESULT),
	CALLS("clLinkProgram clCreateProgramWithSource clCreateProgramWithBinary "
	      "clCreateProgramWithIL clCreateContext clCreateContextFromType clCreateCommandQueue "
	      "clCreateCommandQueueWithProperties",
	      .optional = true),
};

static const char *const libraries[] = {"libOpenCL.so*", NULL};

const struct catalog_framework catalog_opencl = {
	.name = "opencl",
	.libraries = libraries,
	/* First where probes are scarce: what puts work on a device, and what waits for it. */
	.common = "clEnqueue* clFinish clWaitForEvents",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
};
