// SPDX-License-Identifier: BSD-2-Clause
/* gpu/opencl/abi.h against OpenCL's own headers, where they are installed (scripts/setup check). */
#include "unit.h"

#if __has_include(<CL/cl_layer.h>)

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_layer.h>
#include <stddef.h>

/* The handles are then the same types, so that the wrapped calls' declarations can be compared. */
#define ocl_context_s _cl_context
#define ocl_device_s _cl_device_id
#define ocl_queue_s _cl_command_queue
#define ocl_mem_s _cl_mem
#define ocl_kernel_s _cl_kernel
#define ocl_event_s _cl_event
/* The dispatch table is an array to us. */
#define clGetLayerInfo ocl_clGetLayerInfo
#define clInitLayer ocl_clInitLayer
#include "fake_agent.h"

#include "gpu/base/clock.c"
#include "gpu/opencl/state.c"
#include "gpu/opencl/opencl.c"
#include "gpu/layer.c"
#include "gpu/opencl/device_clock.c"
#include "gpu/opencl/jobs.c"
#include "gpu/opencl/objects.c"
#include "gpu/opencl/queues.c"
#undef WRAPPER
#include "gpu/opencl/calls.c"

static void places_in_the_table(void)
{
#define AT(name) CHECK_EQ(OCL_##name * sizeof(void *), offsetof(cl_icd_dispatch, name))
	AT(clGetDeviceInfo);
	AT(clCreateContext);
	AT(clCreateContextFromType);
	AT(clCreateCommandQueue);
	AT(clGetCommandQueueInfo);
	AT(clSetCommandQueueProperty);
	AT(clGetMemObjectInfo);
	AT(clGetImageInfo);
	AT(clGetKernelInfo);
	AT(clWaitForEvents);
	AT(clGetEventInfo);
	AT(clRetainEvent);
	AT(clReleaseEvent);
	AT(clGetEventProfilingInfo);
	AT(clFlush);
	AT(clFinish);
	AT(clEnqueueReadBuffer);
	AT(clEnqueueWriteBuffer);
	AT(clEnqueueCopyBuffer);
	AT(clEnqueueReadImage);
	AT(clEnqueueWriteImage);
	AT(clEnqueueCopyImage);
	AT(clEnqueueCopyImageToBuffer);
	AT(clEnqueueCopyBufferToImage);
	AT(clEnqueueMapBuffer);
	AT(clEnqueueMapImage);
	AT(clEnqueueUnmapMemObject);
	AT(clEnqueueNDRangeKernel);
	AT(clEnqueueTask);
	AT(clEnqueueNativeKernel);
	AT(clEnqueueMarker);
	AT(clEnqueueWaitForEvents);
	AT(clEnqueueBarrier);
	AT(clSetEventCallback);
	AT(clEnqueueReadBufferRect);
	AT(clEnqueueWriteBufferRect);
	AT(clEnqueueCopyBufferRect);
	AT(clEnqueueFillBuffer);
	AT(clEnqueueFillImage);
	AT(clEnqueueMigrateMemObjects);
	AT(clEnqueueMarkerWithWaitList);
	AT(clEnqueueBarrierWithWaitList);
	AT(clCreateCommandQueueWithProperties);
	AT(clEnqueueSVMFree);
	AT(clEnqueueSVMMemcpy);
	AT(clEnqueueSVMMemFill);
	AT(clEnqueueSVMMap);
	AT(clEnqueueSVMUnmap);
	AT(clEnqueueSVMMigrateMem);
	AT(clGetDeviceAndHostTimer);
	CHECK_EQ(OCL_ENTRIES * sizeof(void *), sizeof(cl_icd_dispatch));
}

static void constants(void)
{
#define IS(name) CHECK_EQ(OCL_##name, CL_##name)
	IS(SUCCESS);
	IS(OUT_OF_HOST_MEMORY);
	IS(PROFILING_INFO_NOT_AVAILABLE);
	IS(INVALID_VALUE);
	IS(COMPLETE);
	IS(DEVICE_MAX_COMPUTE_UNITS);
	IS(DEVICE_MAX_WORK_GROUP_SIZE);
	IS(DEVICE_GLOBAL_MEM_SIZE);
	IS(DEVICE_LOCAL_MEM_SIZE);
	IS(DEVICE_NAME);
	IS(QUEUE_CONTEXT);
	IS(QUEUE_DEVICE);
	IS(QUEUE_PROPERTIES);
	IS(QUEUE_PROPERTIES_ARRAY);
	IS(QUEUE_PROFILING_ENABLE);
	IS(QUEUE_ON_DEVICE);
	IS(MEM_SIZE);
	IS(IMAGE_ELEMENT_SIZE);
	CHECK_EQ(OCL_MAP_WRITE_INVALIDATE_REGION, CL_MAP_WRITE_INVALIDATE_REGION);
	IS(MIGRATE_MEM_OBJECT_HOST);
	IS(KERNEL_FUNCTION_NAME);
	IS(EVENT_COMMAND_QUEUE);
	IS(PROFILING_COMMAND_QUEUED);
	IS(PROFILING_COMMAND_START);
	IS(PROFILING_COMMAND_END);
	IS(LAYER_API_VERSION);
	IS(LAYER_NAME);
	IS(LAYER_API_VERSION_100);
}

static uint32_t nr_wrappers(const struct ocl_wrapper *w)
{
	uint32_t nr = 0;

	while (w[nr].function)
		nr++;
	return nr;
}

static void declarations(void)
{
	uint32_t nr = 0;

#define SAME(name)                                                                             \
	do {                                                                                   \
		CHECK(__builtin_types_compatible_p(__typeof__(&wrap_##name),                   \
						   __typeof__(((cl_icd_dispatch *)0)->name))); \
		nr++;                                                                          \
	} while (0)
	SAME(clCreateContext);
	SAME(clCreateContextFromType);
	SAME(clCreateCommandQueue);
	SAME(clCreateCommandQueueWithProperties);
	SAME(clSetCommandQueueProperty);
	SAME(clGetCommandQueueInfo);
	SAME(clGetEventProfilingInfo);
	SAME(clEnqueueNDRangeKernel);
	SAME(clEnqueueTask);
	SAME(clEnqueueNativeKernel);
	SAME(clEnqueueReadBuffer);
	SAME(clEnqueueWriteBuffer);
	SAME(clEnqueueCopyBuffer);
	SAME(clEnqueueReadBufferRect);
	SAME(clEnqueueWriteBufferRect);
	SAME(clEnqueueCopyBufferRect);
	SAME(clEnqueueFillBuffer);
	SAME(clEnqueueMapBuffer);
	SAME(clEnqueueMapImage);
	SAME(clEnqueueUnmapMemObject);
	SAME(clEnqueueMigrateMemObjects);
	SAME(clEnqueueReadImage);
	SAME(clEnqueueWriteImage);
	SAME(clEnqueueCopyImage);
	SAME(clEnqueueCopyImageToBuffer);
	SAME(clEnqueueCopyBufferToImage);
	SAME(clEnqueueFillImage);
	SAME(clEnqueueSVMMemcpy);
	SAME(clEnqueueSVMMemFill);
	SAME(clEnqueueSVMMap);
	SAME(clEnqueueSVMUnmap);
	SAME(clEnqueueSVMMigrateMem);
	SAME(clEnqueueSVMFree);
	SAME(clFlush);
	SAME(clFinish);
	SAME(clWaitForEvents);
	SAME(clEnqueueMarker);
	SAME(clEnqueueBarrier);
	SAME(clEnqueueWaitForEvents);
	SAME(clEnqueueMarkerWithWaitList);
	SAME(clEnqueueBarrierWithWaitList);
	/* All that is wrapped has been looked at. */
	CHECK_EQ(nr, nr_wrappers(ocl_call_wrappers) + nr_wrappers(ocl_queue_wrappers));
	/* What the layer calls by itself. */
	CHECK(__builtin_types_compatible_p(ocl_event_fn *, cl_api_clRetainEvent));
	CHECK(__builtin_types_compatible_p(ocl_event_fn *, cl_api_clReleaseEvent));
}

/* What is passed on must have the size that the driver reads. */
static void sizes(void)
{
	CHECK_EQ(sizeof(cl_int), sizeof(int32_t));
	CHECK_EQ(sizeof(cl_bool), sizeof(uint32_t));
	CHECK_EQ(sizeof(cl_map_flags), sizeof(uint64_t));
	CHECK_EQ(sizeof(cl_mem_migration_flags), sizeof(uint64_t));
	CHECK_EQ(sizeof(cl_command_queue_properties), sizeof(uint64_t));
	CHECK_EQ(sizeof(cl_queue_properties), sizeof(uint64_t));
	CHECK_EQ(sizeof(cl_context_properties), sizeof(intptr_t));
	CHECK_EQ(sizeof(cl_device_type), sizeof(uint64_t));
	CHECK_EQ(sizeof(cl_event), sizeof(ocl_event));
	CHECK_EQ(sizeof(cl_profiling_info), sizeof(uint32_t));
}

UNIT_MAIN(TEST(places_in_the_table), TEST(constants), TEST(declarations), TEST(sizes))

#else

int main(void)
{
	printf("ok # skip OpenCL's headers are not installed: scripts/setup check\n0 passed, 0 failed\n");
	return 0;
}

#endif
