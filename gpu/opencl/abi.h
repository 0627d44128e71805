/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of OpenCL's binary interface that the OpenCL layer uses. The declarations are kprof's
 * own, so that the agent builds without OpenCL's headers. tests/unit/gpu/opencl/abi.c compares each
 * line with CL/cl.h, CL/cl_icd.h and CL/cl_layer.h. Sources: The OpenCL Specification 3.0,
 * OpenCL-ICD-Loader's layers.
 */
#ifndef KPROF_GPU_OPENCL_ABI_H
#define KPROF_GPU_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Handles: pointers to structs that only the driver knows. */
typedef struct ocl_context_s *ocl_context;
typedef struct ocl_device_s *ocl_device;
typedef struct ocl_queue_s *ocl_queue;
typedef struct ocl_mem_s *ocl_mem;
typedef struct ocl_kernel_s *ocl_kernel;
typedef struct ocl_event_s *ocl_event;

/* Indices of functions in a dispatch table, which is an array of pointers to functions. */
enum ocl_entry {
	OCL_clGetDeviceInfo = 3,
	OCL_clCreateContext = 4,
	OCL_clCreateContextFromType = 5,
	OCL_clCreateCommandQueue = 9,
	OCL_clGetCommandQueueInfo = 12,
	OCL_clSetCommandQueueProperty = 13,
	OCL_clGetMemObjectInfo = 20,
	OCL_clGetImageInfo = 21,
	OCL_clGetKernelInfo = 39,
	OCL_clWaitForEvents = 41,
	OCL_clGetEventInfo = 42,
	OCL_clRetainEvent = 43,
	OCL_clReleaseEvent = 44,
	OCL_clGetEventProfilingInfo = 45,
	OCL_clFlush = 46,
	OCL_clFinish = 47,
	OCL_clEnqueueReadBuffer = 48,
	OCL_clEnqueueWriteBuffer = 49,
	OCL_clEnqueueCopyBuffer = 50,
	OCL_clEnqueueReadImage = 51,
	OCL_clEnqueueWriteImage = 52,
	OCL_clEnqueueCopyImage = 53,
	OCL_clEnqueueCopyImageToBuffer = 54,
	OCL_clEnqueueCopyBufferToImage = 55,
	OCL_clEnqueueMapBuffer = 56,
	OCL_clEnqueueMapImage = 57,
	OCL_clEnqueueUnmapMemObject = 58,
	OCL_clEnqueueNDRangeKernel = 59,
	OCL_clEnqueueTask = 60,
	OCL_clEnqueueNativeKernel = 61,
	OCL_clEnqueueMarker = 62,
	OCL_clEnqueueWaitForEvents = 63,
	OCL_clEnqueueBarrier = 64,
	OCL_clSetEventCallback = 81,
	OCL_clEnqueueReadBufferRect = 86,
	OCL_clEnqueueWriteBufferRect = 87,
	OCL_clEnqueueCopyBufferRect = 88,
	OCL_clEnqueueFillBuffer = 102,
	OCL_clEnqueueFillImage = 103,
	OCL_clEnqueueMigrateMemObjects = 104,
	OCL_clEnqueueMarkerWithWaitList = 105,
	OCL_clEnqueueBarrierWithWaitList = 106,
	OCL_clCreateCommandQueueWithProperties = 123,
	OCL_clEnqueueSVMFree = 128,
	OCL_clEnqueueSVMMemcpy = 129,
	OCL_clEnqueueSVMMemFill = 130,
	OCL_clEnqueueSVMMap = 131,
	OCL_clEnqueueSVMUnmap = 132,
	OCL_clEnqueueSVMMigrateMem = 139,
	OCL_clGetDeviceAndHostTimer = 140,
	OCL_ENTRIES = 149, /* the number of functions in OpenCL 3.0 */
};
typedef void (*ocl_function)(void);

enum ocl_constant {
	OCL_SUCCESS = 0,
	OCL_OUT_OF_HOST_MEMORY = -6,
	OCL_PROFILING_INFO_NOT_AVAILABLE = -7,
	OCL_INVALID_VALUE = -30,
	OCL_COMPLETE = 0,

	OCL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
	OCL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
	OCL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
	OCL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
	OCL_DEVICE_NAME = 0x102b,

	OCL_QUEUE_CONTEXT = 0x1090,
	OCL_QUEUE_DEVICE = 0x1091,
	OCL_QUEUE_PROPERTIES = 0x1093,
	OCL_QUEUE_PROPERTIES_ARRAY = 0x1098,
	OCL_QUEUE_PROFILING_ENABLE = 2,
	OCL_QUEUE_ON_DEVICE = 4,

	OCL_MEM_SIZE = 0x1102,
	OCL_IMAGE_ELEMENT_SIZE = 0x1111,
	OCL_MAP_WRITE_INVALIDATE_REGION = 4,
	OCL_MIGRATE_MEM_OBJECT_HOST = 1,
	OCL_KERNEL_FUNCTION_NAME = 0x1190,
	OCL_EVENT_COMMAND_QUEUE = 0x11d0,
	OCL_PROFILING_COMMAND_QUEUED = 0x1280,
	OCL_PROFILING_COMMAND_START = 0x1282,
	OCL_PROFILING_COMMAND_END = 0x1283,

	OCL_LAYER_API_VERSION = 0x4240,
	OCL_LAYER_NAME = 0x4241,
	OCL_LAYER_API_VERSION_100 = 100,
};

/*
 * The functions that the layer itself calls; the wrapped ones are declared where they are wrapped.
 */
typedef int32_t ocl_get_info_fn(const void *object, uint32_t what, size_t bytes, void *value,
				size_t *bytes_ret);
typedef int32_t ocl_event_fn(ocl_event event);
typedef void ocl_event_callback_fn(ocl_event event, int32_t status, void *data);
typedef int32_t ocl_set_event_callback_fn(ocl_event event, int32_t status,
					  ocl_event_callback_fn *fn, void *data);
typedef int32_t ocl_device_timer_fn(ocl_device device, uint64_t *device_ns, uint64_t *host_ns);

/* The functions that a layer exports. */
int32_t clGetLayerInfo(uint32_t what, size_t bytes, void *value, size_t *bytes_ret);
int32_t clInitLayer(uint32_t entries, const ocl_function *target, uint32_t *entries_ret,
		    const ocl_function **layer);

#endif
