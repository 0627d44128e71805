// SPDX-License-Identifier: BSD-2-Clause
/* OpenCL's rows: names of errors against CL/cl.h, and that every call is told once. */
#include "unit.h"

#include "catalog/catalog.h"

#define EVERY_ERROR(X)                                  \
	X(CL_DEVICE_NOT_FOUND)                          \
	X(CL_DEVICE_NOT_AVAILABLE)                      \
	X(CL_COMPILER_NOT_AVAILABLE)                    \
	X(CL_MEM_OBJECT_ALLOCATION_FAILURE)             \
	X(CL_OUT_OF_RESOURCES)                          \
	X(CL_OUT_OF_HOST_MEMORY)                        \
	X(CL_PROFILING_INFO_NOT_AVAILABLE)              \
	X(CL_MEM_COPY_OVERLAP)                          \
	X(CL_IMAGE_FORMAT_MISMATCH)                     \
	X(CL_IMAGE_FORMAT_NOT_SUPPORTED)                \
	X(CL_BUILD_PROGRAM_FAILURE)                     \
	X(CL_MAP_FAILURE)                               \
	X(CL_MISALIGNED_SUB_BUFFER_OFFSET)              \
	X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) \
	X(CL_COMPILE_PROGRAM_FAILURE)                   \
	X(CL_LINKER_NOT_AVAILABLE)                      \
	X(CL_LINK_PROGRAM_FAILURE)                      \
	X(CL_DEVICE_PARTITION_FAILED)                   \
	X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)             \
	X(CL_INVALID_VALUE)                             \
	X(CL_INVALID_DEVICE_TYPE)                       \
	X(CL_INVALID_PLATFORM)                          \
	X(CL_INVALID_DEVICE)                            \
	X(CL_INVALID_CONTEXT)                           \
	X(CL_INVALID_QUEUE_PROPERTIES)                  \
	X(CL_INVALID_COMMAND_QUEUE)                     \
	X(CL_INVALID_HOST_PTR)                          \
	X(CL_INVALID_MEM_OBJECT)                        \
	X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR)           \
	X(CL_INVALID_IMAGE_SIZE)                        \
	X(CL_INVALID_SAMPLER)                           \
	X(CL_INVALID_BINARY)                            \
	X(CL_INVALID_BUILD_OPTIONS)                     \
	X(CL_INVALID_PROGRAM)                           \
	X(CL_INVALID_PROGRAM_EXECUTABLE)                \
	X(CL_INVALID_KERNEL_NAME)                       \
	X(CL_INVALID_KERNEL_DEFINITION)                 \
	X(CL_INVALID_KERNEL)                            \
	X(CL_INVALID_ARG_INDEX)                         \
	X(CL_INVALID_ARG_VALUE)                         \
	X(CL_INVALID_ARG_SIZE)                          \
	X(CL_INVALID_KERNEL_ARGS)                       \
	X(CL_INVALID_WORK_DIMENSION)                    \
	X(CL_INVALID_WORK_GROUP_SIZE)                   \
	X(CL_INVALID_WORK_ITEM_SIZE)                    \
	X(CL_INVALID_GLOBAL_OFFSET)                     \
	X(CL_INVALID_EVENT_WAIT_LIST)                   \
	X(CL_INVALID_EVENT)                             \
	X(CL_INVALID_OPERATION)                         \
	X(CL_INVALID_GL_OBJECT)                         \
	X(CL_INVALID_BUFFER_SIZE)                       \
	X(CL_INVALID_MIP_LEVEL)                         \
	X(CL_INVALID_GLOBAL_WORK_SIZE)                  \
	X(CL_INVALID_PROPERTY)                          \
	X(CL_INVALID_IMAGE_DESCRIPTOR)                  \
	X(CL_INVALID_COMPILER_OPTIONS)                  \
	X(CL_INVALID_LINKER_OPTIONS)                    \
	X(CL_INVALID_DEVICE_PARTITION_COUNT)            \
	X(CL_INVALID_PIPE_SIZE)                         \
	X(CL_INVALID_DEVICE_QUEUE)                      \
	X(CL_INVALID_SPEC_ID)                           \
	X(CL_MAX_SIZE_RESTRICTION_EXCEEDED)

static const struct catalog_row *row_of(const char *symbol, size_t *nr)
{
	const struct catalog_row *found = NULL;

	*nr = 0;
	for (size_t i = 0; i < catalog_opencl.nr_rows; i++) {
		const struct catalog_row *row = &catalog_opencl.rows[i];

		if (!catalog_match(row->symbols, symbol))
			continue;
		found = row;
		++*nr;
	}
	return found;
}

static void errors_have_their_names(void)
{
	const struct catalog_result *r = catalog_opencl.rows[0].result;

	CHECK(r);
	CHECK_STR(catalog_result_name(r->names, -53), "CL_INVALID_WORK_DIMENSION");
	CHECK(catalog_result_name(r->names, 0) == NULL);
	CHECK(catalog_result_name(r->names, -500) == NULL);
}

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

static void errors_are_the_headers(void)
{
	const struct catalog_result *r = catalog_opencl.rows[0].result;

#define NAMED(error) CHECK_STR(catalog_result_name(r->names, error), #error);
	EVERY_ERROR(NAMED)
}
#define HEADERS , TEST(errors_are_the_headers)
#else
#define HEADERS
#endif

static void calls_have_one_row_each(void)
{
	static const char *const calls[] = {
		"clEnqueueNDRangeKernel", "clEnqueueReadBuffer",   "clEnqueueReadBufferRect",
		"clEnqueueCopyBuffer",    "clEnqueueMapImage",     "clEnqueueMarker",
		"clEnqueueSVMMemcpy",     "clEnqueueSVMMemFill",   "clFinish",
		"clWaitForEvents",        "clCreateBuffer",        "clBuildProgram",
		"clCreateImage",          "clCreateCommandQueue",  "clEnqueueWaitForEvents",
		"clEnqueueFillImage",     "clEnqueueNativeKernel",
	};
	size_t nr;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct catalog_row *row = row_of(calls[i], &nr);

		CHECK_EQ(nr, 1);
		CHECK(row && !strcmp(row->category, "opencl_runtime"));
	}
	row_of("clSetKernelArg", &nr);
	CHECK_EQ(nr, 0);
}

/* A result that is an address is no error. */
static void results_are_of_calls_that_return_them(void)
{
	static const char *const pointers[] = {"clEnqueueMapBuffer", "clEnqueueMapImage",
					       "clCreateBuffer",     "clSVMAlloc",
					       "clCreateContext",    "clLinkProgram"};
	size_t nr;

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		const struct catalog_row *row = row_of(pointers[i], &nr);

		CHECK(row && !row->result);
	}
	CHECK(row_of("clFinish", &nr)->result != NULL);
}

UNIT_MAIN(TEST(errors_have_their_names), TEST(calls_have_one_row_each),
	  TEST(results_are_of_calls_that_return_them) HEADERS)
