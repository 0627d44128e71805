// SPDX-License-Identifier: BSD-2-Clause
/*
 * gpu/cupti/abi.h against the real headers of one CUDA release: compiling it is the test. KERNEL,
 * MEMCPY … are the newest of the release's records of that kind, which is what its library writes;
 * tests/gpu/abi finds out which those are.
 */
#include <cupti_activity.h>

#include "gpu/cupti/abi.h"

#define FIELD(ours, field, theirs, other)                                                     \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, other), #theirs "." #other); \
	_Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->other),            \
		       #theirs "." #other " (size)")
#define LONG_ENOUGH(theirs, bytes) _Static_assert(sizeof(theirs) >= (bytes), #theirs)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

/* A field that came later: there, or the record ends before it (and so its size tells). */
#define ENDS_BEFORE(ours, field, theirs) \
	_Static_assert(sizeof(theirs) < offsetof(ours, field) + sizeof(((ours *)0)->field), #theirs)

#define K(field, other) FIELD(struct cupti_kernel, field, KERNEL, other)
K(kind, kind);
K(registers, registersPerThread);
K(start, start);
K(end, end);
K(device, deviceId);
K(context, contextId);
K(stream, streamId);
FIELD(struct cupti_kernel, grid[0], KERNEL, gridX);
FIELD(struct cupti_kernel, grid[1], KERNEL, gridY);
FIELD(struct cupti_kernel, grid[2], KERNEL, gridZ);
FIELD(struct cupti_kernel, block[0], KERNEL, blockX);
FIELD(struct cupti_kernel, block[1], KERNEL, blockY);
FIELD(struct cupti_kernel, block[2], KERNEL, blockZ);
K(static_shared, staticSharedMemory);
K(dynamic_shared, dynamicSharedMemory);
K(local_per_thread, localMemoryPerThread);
K(correlation, correlationId);
K(name, name);
K(queued, queued);
K(shared_executed, sharedMemoryExecuted);
K(graph_node, graphNodeId);
K(graph, graphId);
LONG_ENOUGH(KERNEL, CUPTI_KERNEL_BYTES);
#ifdef HAS_PRIORITY
K(priority, priority);
#else
ENDS_BEFORE(struct cupti_kernel, priority, KERNEL);
#endif
#ifdef HAS_CHANNEL
K(channel, channelID);
K(channel_type, channelType);
#else
ENDS_BEFORE(struct cupti_kernel, channel_type, KERNEL);
#endif

#define M(field, other) FIELD(struct cupti_memcpy, field, MEMCPY, other)
M(kind, kind);
M(copy, copyKind);
M(from, srcKind);
M(to, dstKind);
M(bytes, bytes);
M(start, start);
M(end, end);
M(device, deviceId);
M(context, contextId);
M(stream, streamId);
M(correlation, correlationId);
M(graph_node, graphNodeId);
M(graph, graphId);
LONG_ENOUGH(MEMCPY, CUPTI_MEMCPY_BYTES);
#ifdef HAS_CHANNEL
M(channel, channelID);
M(channel_type, channelType);
#else
ENDS_BEFORE(struct cupti_memcpy, channel_type, MEMCPY);
#endif

#define P(field, other) FIELD(struct cupti_memcpy_peer, field, MEMCPY_PEER, other)
P(kind, kind);
P(copy, copyKind);
P(from, srcKind);
P(to, dstKind);
P(bytes, bytes);
P(start, start);
P(end, end);
P(device, deviceId);
P(context, contextId);
P(stream, streamId);
P(from_device, srcDeviceId);
P(from_context, srcContextId);
P(to_device, dstDeviceId);
P(to_context, dstContextId);
P(correlation, correlationId);
P(graph_node, graphNodeId);
P(graph, graphId);
LONG_ENOUGH(MEMCPY_PEER, CUPTI_MEMCPY_PEER_BYTES);
#ifdef HAS_CHANNEL
P(channel, channelID);
P(channel_type, channelType);
#else
ENDS_BEFORE(struct cupti_memcpy_peer, channel_type, MEMCPY_PEER);
#endif

#define S(field, other) FIELD(struct cupti_memset, field, MEMSET, other)
S(kind, kind);
S(value, value);
S(bytes, bytes);
S(start, start);
S(end, end);
S(device, deviceId);
S(context, contextId);
S(stream, streamId);
S(correlation, correlationId);
S(memory, memoryKind);
S(graph_node, graphNodeId);
S(graph, graphId);
LONG_ENOUGH(MEMSET, CUPTI_MEMSET_BYTES);
#ifdef HAS_CHANNEL
S(channel, channelID);
S(channel_type, channelType);
#else
ENDS_BEFORE(struct cupti_memset, channel_type, MEMSET);
#endif

#define L(field, other) FIELD(struct cupti_memory, field, ALLOC, other)
L(kind, kind);
L(operation, memoryOperationType);
L(memory, memoryKind);
L(correlation, correlationId);
L(address, address);
L(bytes, bytes);
L(time, timestamp);
L(process, processId);
L(device, deviceId);
L(context, contextId);
L(stream, streamId);
LONG_ENOUGH(ALLOC, CUPTI_MEMORY_BYTES);

#define Y(field, other) FIELD(struct cupti_sync, field, SYNC, other)
Y(kind, kind);
Y(type, type);
Y(start, start);
Y(end, end);
Y(correlation, correlationId);
Y(context, contextId);
Y(stream, streamId);
Y(event, cudaEventId);
LONG_ENOUGH(SYNC, CUPTI_SYNC_BYTES);

#define E(field, other) FIELD(struct cupti_event, field, EVENT, other)
E(kind, kind);
E(correlation, correlationId);
E(context, contextId);
E(stream, streamId);
E(event, eventId);
LONG_ENOUGH(EVENT, CUPTI_EVENT_BYTES);
#ifdef HAS_EVENT_SYNC
Y(event_sync, cudaEventSyncId);
E(event_sync, cudaEventSyncId);
E(device, deviceId);
E(device_time, deviceTimestamp);
#else
ENDS_BEFORE(struct cupti_sync, event_sync, SYNC);
ENDS_BEFORE(struct cupti_event, event_sync, EVENT);
#endif

#define A(field, other) FIELD(struct cupti_call, field, CUpti_ActivityAPI, other)
A(kind, kind);
A(cbid, cbid);
A(start, start);
A(end, end);
A(process, processId);
A(thread, threadId);
A(correlation, correlationId);
A(result, returnValue);
LONG_ENOUGH(CUpti_ActivityAPI, CUPTI_CALL_BYTES);

#define O(field, other) FIELD(struct cupti_overhead, field, OVERHEAD, other)
O(kind, kind);
O(overhead, overheadKind);
O(object, objectKind);
O(id, objectId);
FIELD(struct cupti_overhead, id[0], OVERHEAD, objectId.pt.processId);
FIELD(struct cupti_overhead, id[1], OVERHEAD, objectId.pt.threadId);
FIELD(struct cupti_overhead, id[0], OVERHEAD, objectId.dcs.deviceId);
FIELD(struct cupti_overhead, id[1], OVERHEAD, objectId.dcs.contextId);
FIELD(struct cupti_overhead, id[2], OVERHEAD, objectId.dcs.streamId);
O(start, start);
O(end, end);
LONG_ENOUGH(OVERHEAD, CUPTI_OVERHEAD_BYTES);
#ifdef HAS_OVERHEAD_CORRELATION
O(correlation, correlationId);
#else
ENDS_BEFORE(struct cupti_overhead, correlation, OVERHEAD);
#endif

#define D(field, other) FIELD(struct cupti_device, field, DEVICE, other)
D(kind, kind);
D(bandwidth, globalMemoryBandwidth);
D(memory, globalMemorySize);
D(warp, numThreadsPerWarp);
D(multiprocessors, numMultiprocessors);
D(max_warps_sm, maxWarpsPerMultiprocessor);
D(max_blocks_sm, maxBlocksPerMultiprocessor);
D(max_shared_sm, maxSharedMemoryPerMultiprocessor);
D(max_registers_sm, maxRegistersPerMultiprocessor);
D(max_registers_block, maxRegistersPerBlock);
D(max_shared_block, maxSharedMemoryPerBlock);
D(max_threads_block, maxThreadsPerBlock);
D(compute_major, computeCapabilityMajor);
D(compute_minor, computeCapabilityMinor);
D(id, id);
D(name, name);
LONG_ENOUGH(DEVICE, CUPTI_DEVICE_BYTES);

#define C(field, other) FIELD(struct cupti_context, field, CONTEXT, other)
C(kind, kind);
C(context, contextId);
C(device, deviceId);
C(null_stream, nullStreamId);
LONG_ENOUGH(CONTEXT, CUPTI_CONTEXT_BYTES);

#define X(field, other) \
	FIELD(struct cupti_external, field, CUpti_ActivityExternalCorrelation, other)
X(kind, kind);
X(external_kind, externalKind);
X(external, externalId);
X(correlation, correlationId);
LONG_ENOUGH(CUpti_ActivityExternalCorrelation, CUPTI_EXTERNAL_BYTES);

FIELD(struct cupti_callback_data, site, CUpti_CallbackData, callbackSite);

SAME(CUPTI_OK, CUPTI_SUCCESS);
SAME(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_OLD_PROFILER, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES,
     CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(CUPTI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(CUPTI_MEMORY_ALLOCATION, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
SAME(CUPTI_MEMORY_RELEASE, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
SAME(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(CUPTI_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
SAME(CUPTI_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
SAME(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
SAME(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(CUPTI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(CUPTI_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(CUPTI_RUNTIME_API, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(CUPTI_API_EXIT_SITE, CUPTI_API_EXIT);
SAME(CUPTI_OVERHEAD_DRIVER_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME(CUPTI_OVERHEAD_BUFFER_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME(CUPTI_OVERHEAD_INSTRUMENTATION, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME(CUPTI_OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME(CUPTI_OBJECT_DEVICE, CUPTI_ACTIVITY_OBJECT_DEVICE);
SAME(CUPTI_OBJECT_CONTEXT, CUPTI_ACTIVITY_OBJECT_CONTEXT);
SAME(CUPTI_OBJECT_STREAM, CUPTI_ACTIVITY_OBJECT_STREAM);

/* The functions, as far as their parameters go: an enum passes as an int, a handle as a pointer. */
#define CALL(symbol, ...)                                                                  \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&symbol),                   \
						    CUptiResult(CUPTIAPI *)(__VA_ARGS__)), \
		       #symbol)
CALL(cuptiSubscribe, CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
CALL(cuptiUnsubscribe, CUpti_SubscriberHandle);
CALL(cuptiEnableDomain, uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
CALL(cuptiGetCallbackName, CUpti_CallbackDomain, uint32_t, const char **);
CALL(cuptiGetTimestamp, uint64_t *);
CALL(cuptiActivityEnable, CUpti_ActivityKind);
CALL(cuptiActivityEnableAndDump, CUpti_ActivityKind);
CALL(cuptiActivityDisable, CUpti_ActivityKind);
CALL(cuptiActivityRegisterCallbacks, CUpti_BuffersCallbackRequestFunc,
     CUpti_BuffersCallbackCompleteFunc);
CALL(cuptiActivityFlushAll, uint32_t);
CALL(cuptiActivityGetNextRecord, uint8_t *, size_t, CUpti_Activity **);
CALL(cuptiActivityGetNumDroppedRecords, CUcontext, uint32_t, size_t *);
CALL(cuptiSetThreadIdType, CUpti_ActivityThreadIdType);
CALL(cuptiActivityRegisterTimestampCallback, CUpti_TimestampCallbackFunc);
CALL(cuptiFinalize, void);
#ifdef HAS_CALL_SWITCHES
CALL(cuptiActivityEnableRuntimeApi, CUpti_CallbackId, uint8_t);
CALL(cuptiActivityEnableDriverApi, CUpti_CallbackId, uint8_t);
#endif
#ifdef HAS_EVENT_TIMES
CALL(cuptiActivityEnableCudaEventDeviceTimestamps, uint8_t);
#endif
