/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: what the simulator declares, held against NVIDIA's own headers.
 * Compiled by tests/sim.bats where there are some, never linked: every line is an assertion.
 * -DSIM_MAJOR=12 or 13: of whose newest records they are.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#undef CUPTI_API_VERSION
/* The simulator's names are NVIDIA's, where they are of functions and handles. */
#define CUdevice sim_CUdevice
#define CUdeviceptr sim_CUdeviceptr
#define CUcontext sim_CUcontext
#define CUstream sim_CUstream
#define CUevent sim_CUevent
#define CUmodule sim_CUmodule
#define CUfunction sim_CUfunction
#define CUgraph sim_CUgraph
#define CUgraphNode sim_CUgraphNode
#define CUgraphExec sim_CUgraphExec
#define CUmemoryPool sim_CUmemoryPool
#define CUhostFn sim_CUhostFn
#define SIM_ABI_CHECK
#include "cbids.h"
#include "cuda_abi.h"
#include "cupti_abi.h"
#include "sim.h"
#undef CUdevice
#undef CUdeviceptr
#undef CUcontext
#undef CUstream
#undef CUevent
#undef CUmodule
#undef CUfunction
#undef CUgraph
#undef CUgraphNode
#undef CUgraphExec
#undef CUmemoryPool
#undef CUhostFn

#define EQUAL(a, b) _Static_assert((unsigned long)(a) == (unsigned long)(b), #a " is " #b)
#define FIELD2(ours, f, theirs, g)                            \
	EQUAL(offsetof(struct ours, f), offsetof(theirs, g)); \
	EQUAL(sizeof(((struct ours *)0)->f), sizeof(((theirs *)0)->g))
#define FIELD(ours, theirs, f) FIELD2(ours, f, theirs, f)
#define SIZE(ours, theirs) EQUAL(sizeof(struct ours), sizeof(theirs))

/* ---- numbers ---- */

#define CHECK_DRIVER(name, number) EQUAL(number, CUPTI_DRIVER_TRACE_CBID_##name);
#define CHECK_RUNTIME(name, number, version) \
	EQUAL(number, CUPTI_RUNTIME_TRACE_CBID_##name##_v##version);
SIM_DRIVER_CBIDS(CHECK_DRIVER)
SIM_RUNTIME_CBIDS(CHECK_RUNTIME)
SIM_RUNTIME_CBIDS_MAJOR(CHECK_RUNTIME)
#if SIM_MAJOR == 13
SIM_DRIVER_CBIDS_LATER(CHECK_DRIVER)
#endif

#define CHECK_RESULT(name, number) EQUAL(number, CUPTI_##name);
CUPTI_RESULTS(CHECK_RESULT)
#define CHECK_KIND(name) EQUAL(CUPTI_KIND_##name, CUPTI_ACTIVITY_KIND_##name)
CHECK_KIND(MEMCPY);
CHECK_KIND(MEMSET);
CHECK_KIND(KERNEL);
CHECK_KIND(DRIVER);
CHECK_KIND(RUNTIME);
CHECK_KIND(DEVICE);
CHECK_KIND(CONTEXT);
CHECK_KIND(CONCURRENT_KERNEL);
CHECK_KIND(OVERHEAD);
CHECK_KIND(MEMCPY2);
CHECK_KIND(CUDA_EVENT);
CHECK_KIND(STREAM);
CHECK_KIND(SYNCHRONIZATION);
CHECK_KIND(EXTERNAL_CORRELATION);
CHECK_KIND(GRAPH_TRACE);
EQUAL(SIM_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
EQUAL(SIM_SYNC_STREAM_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
EQUAL(SIM_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
EQUAL(SIM_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);

EQUAL(SIM_INVALID_VALUE, cudaErrorInvalidValue);
EQUAL(SIM_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
EQUAL(SIM_NOT_INITIALIZED, cudaErrorInitializationError);
EQUAL(SIM_INVALID_CONFIGURATION, cudaErrorInvalidConfiguration);
EQUAL(SIM_INSUFFICIENT_DRIVER, cudaErrorInsufficientDriver);
EQUAL(SIM_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction);
EQUAL(SIM_NO_DEVICE, cudaErrorNoDevice);
EQUAL(SIM_INVALID_DEVICE, cudaErrorInvalidDevice);
EQUAL(SIM_INVALID_IMAGE, cudaErrorInvalidKernelImage);
EQUAL(SIM_INVALID_CONTEXT, cudaErrorDeviceUninitialized);
EQUAL(SIM_INVALID_HANDLE, cudaErrorInvalidResourceHandle);
EQUAL(SIM_NOT_FOUND, cudaErrorSymbolNotFound);
EQUAL(SIM_NOT_READY, cudaErrorNotReady);
EQUAL(SIM_LAUNCH_FAILED, cudaErrorLaunchFailure);
EQUAL(SIM_NOT_SUPPORTED, cudaErrorNotSupported);
EQUAL(SIM_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported);
EQUAL(SIM_CAPTURE_INVALIDATED, cudaErrorStreamCaptureInvalidated);
EQUAL(SIM_CAPTURE_UNMATCHED, cudaErrorStreamCaptureUnmatched);
EQUAL(SIM_CAPTURE_IMPLICIT, cudaErrorStreamCaptureImplicit);
EQUAL(SIM_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
EQUAL(SIM_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(SIM_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
EQUAL(SIM_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
EQUAL(SIM_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(SIM_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
EQUAL(SIM_HOST_TO_DEVICE, cudaMemcpyHostToDevice);
EQUAL(SIM_DEVICE_TO_HOST, cudaMemcpyDeviceToHost);
EQUAL(SIM_DEVICE_TO_DEVICE, cudaMemcpyDeviceToDevice);
EQUAL(SIM_MEMCPY_DEFAULT, cudaMemcpyDefault);

EQUAL(SIM_ATTR_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
EQUAL(SIM_ATTR_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
EQUAL(SIM_ATTR_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
EQUAL(SIM_ATTR_REGISTERS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
EQUAL(SIM_ATTR_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
EQUAL(SIM_ATTR_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(SIM_ATTR_MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
EQUAL(SIM_ATTR_MEMORY_BUS_WIDTH, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
EQUAL(SIM_ATTR_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EQUAL(SIM_ATTR_THREADS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
EQUAL(SIM_ATTR_ASYNC_ENGINES, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
EQUAL(SIM_ATTR_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(SIM_ATTR_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(SIM_ATTR_SHARED_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
EQUAL(SIM_ATTR_REGISTERS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
EQUAL(SIM_ATTR_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EQUAL(SIM_ATTR_BLOCKS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
EQUAL(SIM_ATTR_RESERVED_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);

/* ---- arguments ---- */

SIZE(sim_dim3, dim3);
SIZE(sim_uuid, CUuuid);
SIZE(sim_launch_config, cudaLaunchConfig_t);
FIELD2(sim_launch_config, grid, cudaLaunchConfig_t, gridDim);
FIELD2(sim_launch_config, block, cudaLaunchConfig_t, blockDim);
FIELD2(sim_launch_config, dynamic_shared, cudaLaunchConfig_t, dynamicSmemBytes);
FIELD2(sim_launch_config, stream, cudaLaunchConfig_t, stream);
FIELD2(sim_launch_config, attributes, cudaLaunchConfig_t, attrs);
FIELD2(sim_launch_config, nr_attributes, cudaLaunchConfig_t, numAttrs);
SIZE(sim_driver_launch_config, CUlaunchConfig);
FIELD2(sim_driver_launch_config, dynamic_shared, CUlaunchConfig, sharedMemBytes);
FIELD2(sim_driver_launch_config, stream, CUlaunchConfig, hStream);
FIELD2(sim_driver_launch_config, nr_attributes, CUlaunchConfig, numAttrs);
SIZE(sim_kernel_node_params, struct cudaKernelNodeParams);
FIELD2(sim_kernel_node_params, block, struct cudaKernelNodeParams, blockDim);
FIELD2(sim_kernel_node_params, params, struct cudaKernelNodeParams, kernelParams);
SIZE(sim_driver_kernel_node_params, CUDA_KERNEL_NODE_PARAMS);
FIELD2(sim_driver_kernel_node_params, dynamic_shared, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
FIELD2(sim_driver_kernel_node_params, params, CUDA_KERNEL_NODE_PARAMS, kernelParams);
FIELD2(sim_driver_kernel_node_params, context, CUDA_KERNEL_NODE_PARAMS, ctx);
SIZE(sim_memset_params, struct cudaMemsetParams);
SIZE(sim_memset_params, CUDA_MEMSET_NODE_PARAMS);
FIELD2(sim_memset_params, element_bytes, struct cudaMemsetParams, elementSize);
FIELD2(sim_memset_params, width, struct cudaMemsetParams, width);
SIZE(sim_driver_copy3d, CUDA_MEMCPY3D);
FIELD2(sim_driver_copy3d, src_device, CUDA_MEMCPY3D, srcDevice);
FIELD2(sim_driver_copy3d, dst_type, CUDA_MEMCPY3D, dstMemoryType);
FIELD2(sim_driver_copy3d, dst_device, CUDA_MEMCPY3D, dstDevice);
FIELD2(sim_driver_copy3d, width, CUDA_MEMCPY3D, WidthInBytes);
SIZE(sim_host_node_params, CUDA_HOST_NODE_PARAMS);
FIELD2(sim_pointer_attributes, device_pointer, struct cudaPointerAttributes, devicePointer);
FIELD2(sim_pointer_attributes, host_pointer, struct cudaPointerAttributes, hostPointer);

EQUAL(0, offsetof(struct cudaDeviceProp, name));
EQUAL(256, offsetof(struct cudaDeviceProp, uuid));
EQUAL(288, offsetof(struct cudaDeviceProp, totalGlobalMem));
EQUAL(SIM_MAJOR == 12 ? 1032 : 1008, sizeof(struct cudaDeviceProp));
#define RT_PROPERTY(field, attribute, offset12, offset13) \
	EQUAL(SIM_MAJOR == 12 ? offset12 : offset13, offsetof(struct cudaDeviceProp, field));
#include "device_prop.h"

/* ---- CUPTI's records ---- */

#if SIM_MAJOR == 12
typedef CUpti_ActivityKernel9 kernel;
typedef CUpti_ActivityMemcpy5 copy;
typedef CUpti_ActivityDevice4 device;
typedef CUpti_ActivityContext context;
typedef CUpti_ActivityOverhead overhead;
typedef CUpti_ActivityCudaEvent event;
typedef CUpti_ActivitySynchronization synchronization;
typedef CUpti_ActivityGraphTrace graph;
#else
typedef CUpti_ActivityKernel11 kernel;
typedef CUpti_ActivityMemcpy6 copy;
typedef CUpti_ActivityDevice6 device;
typedef CUpti_ActivityContext4 context;
typedef CUpti_ActivityOverhead3 overhead;
typedef CUpti_ActivityCudaEvent2 event;
typedef CUpti_ActivitySynchronization2 synchronization;
typedef CUpti_ActivityGraphTrace2 graph;

SIZE(cupti_record_kernel, kernel);
SIZE(cupti_record_memcpy, copy);
SIZE(cupti_record_device, device);
SIZE(cupti_record_context, context);
SIZE(cupti_record_overhead, overhead);
SIZE(cupti_record_event, event);
SIZE(cupti_record_sync, synchronization);
SIZE(cupti_record_graph, graph);
FIELD(cupti_record_kernel, kernel, priority);
FIELD(cupti_record_kernel, kernel, isDeviceLaunched);
FIELD(cupti_record_memcpy, copy, copyCount);
FIELD(cupti_record_device, device, numTpcs);
FIELD(cupti_record_context, context, numMultiprocessors);
FIELD(cupti_record_context, context, processId);
FIELD(cupti_record_overhead, overhead, overheadData);
FIELD(cupti_record_event, event, cudaEventSyncId);
FIELD(cupti_record_sync, synchronization, returnValue);
FIELD(cupti_record_graph, graph, endContextId);
#endif

FIELD(cupti_record_kernel, kernel, kind);
FIELD(cupti_record_kernel, kernel, registersPerThread);
FIELD(cupti_record_kernel, kernel, start);
FIELD(cupti_record_kernel, kernel, end);
FIELD(cupti_record_kernel, kernel, deviceId);
FIELD(cupti_record_kernel, kernel, streamId);
FIELD(cupti_record_kernel, kernel, gridX);
FIELD(cupti_record_kernel, kernel, blockZ);
FIELD(cupti_record_kernel, kernel, dynamicSharedMemory);
FIELD(cupti_record_kernel, kernel, localMemoryPerThread);
FIELD(cupti_record_kernel, kernel, correlationId);
FIELD(cupti_record_kernel, kernel, name);
FIELD(cupti_record_kernel, kernel, queued);
FIELD(cupti_record_kernel, kernel, sharedMemoryExecuted);
FIELD(cupti_record_kernel, kernel, graphNodeId);
FIELD(cupti_record_kernel, kernel, graphId);
FIELD(cupti_record_kernel, kernel, channelType);
FIELD(cupti_record_kernel, kernel, localMemoryTotal_v2);
FIELD(cupti_record_kernel, kernel, maxActiveClusters);
FIELD(cupti_record_memcpy, copy, copyKind);
FIELD(cupti_record_memcpy, copy, bytes);
FIELD(cupti_record_memcpy, copy, end);
FIELD(cupti_record_memcpy, copy, correlationId);
FIELD(cupti_record_memcpy, copy, graphNodeId);
FIELD(cupti_record_memcpy, copy, graphId);
FIELD(cupti_record_memcpy, copy, channelType);
SIZE(cupti_record_peer, CUpti_ActivityMemcpyPtoP4);
FIELD(cupti_record_peer, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
FIELD(cupti_record_peer, CUpti_ActivityMemcpyPtoP4, dstContextId);
FIELD(cupti_record_peer, CUpti_ActivityMemcpyPtoP4, correlationId);
FIELD(cupti_record_peer, CUpti_ActivityMemcpyPtoP4, graphNodeId);
FIELD(cupti_record_peer, CUpti_ActivityMemcpyPtoP4, graphId);
#if CUPTI_API_VERSION >= 130000
SIZE(cupti_record_memory, CUpti_ActivityMemory4);
FIELD(cupti_record_memory, CUpti_ActivityMemory4, address);
FIELD(cupti_record_memory, CUpti_ActivityMemory4, timestamp);
FIELD(cupti_record_memory, CUpti_ActivityMemory4, streamId);
FIELD(cupti_record_memory, CUpti_ActivityMemory4, isAsync);
#endif
SIZE(cupti_record_memset, CUpti_ActivityMemset4);
FIELD(cupti_record_memset, CUpti_ActivityMemset4, value);
FIELD(cupti_record_memset, CUpti_ActivityMemset4, correlationId);
FIELD(cupti_record_memset, CUpti_ActivityMemset4, memoryKind);
FIELD(cupti_record_memset, CUpti_ActivityMemset4, graphNodeId);
FIELD(cupti_record_memset, CUpti_ActivityMemset4, graphId);
SIZE(cupti_record_api, CUpti_ActivityAPI);
FIELD(cupti_record_api, CUpti_ActivityAPI, cbid);
FIELD(cupti_record_api, CUpti_ActivityAPI, threadId);
FIELD(cupti_record_api, CUpti_ActivityAPI, returnValue);
FIELD(cupti_record_device, device, globalMemorySize);
FIELD(cupti_record_device, device, numMultiprocessors);
FIELD(cupti_record_device, device, maxSharedMemoryPerMultiprocessor);
FIELD(cupti_record_device, device, maxThreadsPerBlock);
FIELD(cupti_record_device, device, computeCapabilityMajor);
FIELD(cupti_record_device, device, id);
FIELD(cupti_record_device, device, name);
FIELD(cupti_record_device, device, migUuid);
FIELD(cupti_record_context, context, contextId);
FIELD(cupti_record_context, context, nullStreamId);
FIELD(cupti_record_overhead, overhead, objectKind);
FIELD(cupti_record_overhead, overhead, objectId);
FIELD(cupti_record_overhead, overhead, end);
FIELD(cupti_record_event, event, eventId);
SIZE(cupti_record_stream, CUpti_ActivityStream);
FIELD(cupti_record_stream, CUpti_ActivityStream, flag);
FIELD(cupti_record_sync, synchronization, type);
FIELD(cupti_record_sync, synchronization, cudaEventId);
SIZE(cupti_record_external, CUpti_ActivityExternalCorrelation);
FIELD(cupti_record_external, CUpti_ActivityExternalCorrelation, externalId);
FIELD(cupti_record_external, CUpti_ActivityExternalCorrelation, correlationId);
FIELD(cupti_record_graph, graph, graphId);
FIELD(cupti_record_graph, graph, streamId);
SIZE(cupti_callback_data, CUpti_CallbackData);
FIELD(cupti_callback_data, CUpti_CallbackData, functionReturnValue);
FIELD(cupti_callback_data, CUpti_CallbackData, symbolName);
FIELD(cupti_callback_data, CUpti_CallbackData, contextUid);
FIELD(cupti_callback_data, CUpti_CallbackData, correlationId);
