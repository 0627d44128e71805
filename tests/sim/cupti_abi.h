/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: CUPTI's records and what is around them, in our own declarations.
 * Records only ever grew at their end: each is declared as the newest, and how much of it a version
 * has is in the table of cupti_records.c.
 *
 * Source: cupti_activity.h and cupti_callbacks.h of CUDA 11.7 to 13.2 (layouts and numbers only);
 * abi_check.c holds this against the real headers.
 */
#ifndef SIM_CUPTI_ABI_H
#define SIM_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* X(name, number): CUptiResult, those that are given. */
#define CUPTI_RESULTS(X)                                \
	X(SUCCESS, 0)                                   \
	X(ERROR_INVALID_PARAMETER, 1)                   \
	X(ERROR_INVALID_DEVICE, 2)                      \
	X(ERROR_INVALID_CONTEXT, 3)                     \
	X(ERROR_INVALID_OPERATION, 7)                   \
	X(ERROR_OUT_OF_MEMORY, 8)                       \
	X(ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, 10)      \
	X(ERROR_MAX_LIMIT_REACHED, 12)                  \
	X(ERROR_NOT_INITIALIZED, 15)                    \
	X(ERROR_INVALID_METRIC_NAME, 17)                \
	X(ERROR_QUEUE_EMPTY, 18)                        \
	X(ERROR_INVALID_KIND, 21)                       \
	X(ERROR_DISABLED, 23)                           \
	X(ERROR_HARDWARE_BUSY, 26)                      \
	X(ERROR_INSUFFICIENT_PRIVILEGES, 35)            \
	X(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39) \
	X(ERROR_UNKNOWN, 999)

#ifndef SIM_ABI_CHECK
#define CUPTI_ENUM(name, number) CUPTI_##name = (number),
enum cupti_result { CUPTI_RESULTS(CUPTI_ENUM) };
#endif

enum cupti_activity_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONTEXT = 9,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22,
	CUPTI_KIND_CUDA_EVENT = 36,
	CUPTI_KIND_STREAM = 37,
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_EXTERNAL_CORRELATION = 39,
	CUPTI_KIND_MEMORY2 = 49,
	CUPTI_KIND_GRAPH_TRACE = 51,
	CUPTI_KINDS = 60,
};

#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct CUPTI_RECORD cupti_record_kernel { /* CUpti_ActivityKernel11 */
	uint32_t kind;
	uint8_t cacheConfig;
	uint8_t sharedMemoryConfig;
	uint16_t registersPerThread;
	uint32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
	uint64_t start, end, completed;
	uint32_t deviceId, contextId, streamId;
	int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
	int32_t staticSharedMemory, dynamicSharedMemory;
	uint32_t localMemoryPerThread, localMemoryTotal, correlationId;
	int64_t gridId;
	const char *name;
	void *reserved0;
	uint64_t queued, submitted;
	uint8_t launchType, isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested, padding;
	uint32_t sharedMemoryExecuted;
	uint64_t graphNodeId;
	uint32_t shmemLimitConfig, graphId;
	void *pAccessPolicyWindow;
	uint32_t channelID, channelType;
	uint32_t clusterX, clusterY, clusterZ, clusterSchedulingPolicy;
	uint64_t localMemoryTotal_v2;
	uint32_t maxPotentialClusterSize, maxActiveClusters;
	uint8_t isDeviceLaunched, padding3[7];
	int32_t priority;
	uint32_t padding4;
};

struct CUPTI_RECORD cupti_record_memcpy { /* CUpti_ActivityMemcpy6 */
	uint32_t kind;
	uint8_t copyKind, srcKind, dstKind, flags;
	uint64_t bytes, start, end;
	uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId, channelID, channelType;
	uint8_t isDeviceLaunched, pad2[3];
	uint64_t copyCount;
};

struct CUPTI_RECORD cupti_record_peer { /* CUpti_ActivityMemcpyPtoP4 */
	uint32_t kind;
	uint8_t copyKind, srcKind, dstKind, flags;
	uint64_t bytes, start, end;
	uint32_t deviceId, contextId, streamId;
	uint32_t srcDeviceId, srcContextId, dstDeviceId, dstContextId, correlationId;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId, channelID, channelType;
};

struct CUPTI_RECORD cupti_record_memset { /* CUpti_ActivityMemset4 */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t deviceId, contextId, streamId, correlationId;
	uint16_t flags, memoryKind;
	uint32_t pad;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId, channelID, channelType, pad2;
};

struct CUPTI_RECORD cupti_record_memory { /* CUpti_ActivityMemory4 */
	uint32_t kind, memoryOperationType, memoryKind, correlationId;
	uint64_t address, bytes, timestamp, PC;
	uint32_t processId, deviceId, contextId, streamId;
	const char *name;
	uint32_t isAsync, pad1;
	uint64_t pool[5]; /* memoryPoolConfig */
	const char *source;
};

struct CUPTI_RECORD cupti_record_api { /* CUpti_ActivityAPI */
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t processId, threadId, correlationId, returnValue;
};

struct CUPTI_RECORD cupti_record_device { /* CUpti_ActivityDevice6 */
	uint32_t kind, flags;
	uint64_t globalMemoryBandwidth, globalMemorySize;
	uint32_t constantMemorySize, l2CacheSize, numThreadsPerWarp, coreClockRate,
		numMemcpyEngines;
	uint32_t numMultiprocessors, maxIPC, maxWarpsPerMultiprocessor, maxBlocksPerMultiprocessor;
	uint32_t maxSharedMemoryPerMultiprocessor, maxRegistersPerMultiprocessor,
		maxRegistersPerBlock;
	uint32_t maxSharedMemoryPerBlock, maxThreadsPerBlock;
	uint32_t maxBlockDimX, maxBlockDimY, maxBlockDimZ, maxGridDimX, maxGridDimY, maxGridDimZ;
	uint32_t computeCapabilityMajor, computeCapabilityMinor, id, eccEnabled;
	uint8_t uuid[16];
	const char *name;
	uint8_t isCudaVisible, isMigEnabled, reserved[6];
	uint32_t gpuInstanceId, computeInstanceId;
	uint8_t migUuid[16];
	uint32_t isNumaNode, numaId, numTpcs, reserved0;
};

struct CUPTI_RECORD cupti_record_context { /* CUpti_ActivityContext4 */
	uint32_t kind, contextId, deviceId;
	uint16_t computeApiKind, nullStreamId;
	uint32_t parentContextId;
	uint8_t isGreenContext, padding;
	uint16_t numMultiprocessors;
	uint32_t cigMode, padding2;
	uint64_t processId;
};

struct CUPTI_RECORD cupti_record_overhead { /* CUpti_ActivityOverhead3 */
	uint32_t kind, overheadKind, objectKind;
	uint32_t objectId[3];
	uint64_t start, end;
	uint32_t correlationId, reserved0;
	void *overheadData;
};

struct CUPTI_RECORD cupti_record_event { /* CUpti_ActivityCudaEvent2 */
	uint32_t kind, correlationId, contextId, streamId, eventId, pad;
	uint32_t deviceId, pad2;
	void *reserved0;
	uint64_t deviceTimestamp, cudaEventSyncId;
};

struct CUPTI_RECORD cupti_record_stream { /* CUpti_ActivityStream */
	uint32_t kind, contextId, streamId, priority, flag, correlationId;
};

struct CUPTI_RECORD cupti_record_sync { /* CUpti_ActivitySynchronization2 */
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlationId, contextId, streamId, cudaEventId;
	uint64_t cudaEventSyncId;
	uint32_t returnValue, pad;
};

struct CUPTI_RECORD cupti_record_external { /* CUpti_ActivityExternalCorrelation */
	uint32_t kind, externalKind;
	uint64_t externalId;
	uint32_t correlationId, reserved;
};

struct CUPTI_RECORD cupti_record_graph { /* CUpti_ActivityGraphTrace2 */
	uint32_t kind, correlationId;
	uint64_t start, end;
	uint32_t deviceId, graphId, contextId, streamId;
	void *reserved;
	uint32_t endDeviceId, endContextId;
};

/* CUpti_CallbackData */
struct cupti_callback_data {
	uint32_t callbackSite; /* 0 enter, 1 exit */
	const char *functionName;
	const void *functionParams;
	void *functionReturnValue;
	const char *symbolName;
	void *context;
	uint32_t contextUid;
	uint64_t *correlationData;
	uint32_t correlationId;
};

typedef void (*cupti_callback_fn)(void *userdata, int domain, uint32_t cbid, const void *data);
typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
typedef uint64_t (*cupti_timestamp_fn)(void);
struct cupti_subscriber;

#ifndef SIM_ABI_CHECK
int cuptiGetVersion(uint32_t *version);
int cuptiGetResultString(int result, const char **text);
int cuptiGetErrorMessage(int result, const char **text);
int cuptiGetLastError(void);
int cuptiSubscribe(struct cupti_subscriber **out, cupti_callback_fn fn, void *userdata);
int cuptiUnsubscribe(struct cupti_subscriber *s);
int cuptiEnableCallback(uint32_t enable, struct cupti_subscriber *s, int domain, uint32_t cbid);
int cuptiEnableDomain(uint32_t enable, struct cupti_subscriber *s, int domain);
int cuptiEnableAllDomains(uint32_t enable, struct cupti_subscriber *s);
int cuptiGetCallbackState(uint32_t *enable, struct cupti_subscriber *s, int domain, uint32_t cbid);
int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name);
int cuptiActivityGetEnabledKinds(struct cupti_subscriber *s, int *buffer, uint32_t *size,
				 uint32_t *nr);
int cuptiSupportedDomains(size_t *nr, int **domains);
int cuptiGetTimestamp(uint64_t *time);
int cuptiGetContextId(void *context, uint32_t *id);
int cuptiGetDeviceId(void *context, uint32_t *id);
int cuptiGetStreamId(void *context, void *stream, uint32_t *id);
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id);
int cuptiDeviceSupported(int device, int *supported);
int cuptiSetThreadIdType(int type);
int cuptiGetThreadIdType(int *type);
int cuptiFinalize(void);
int cuptiActivityRegisterCallbacks(cupti_request_fn request, cupti_complete_fn complete);
int cuptiActivityRegisterTimestampCallback(cupti_timestamp_fn fn);
int cuptiActivityEnable(int kind);
int cuptiActivityEnableAndDump(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityEnableContext(void *context, int kind);
int cuptiActivityDisableContext(void *context, int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag);
int cuptiActivityFlushPeriod(uint32_t ms);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiActivityGetAttribute(int attribute, size_t *size, void *value);
int cuptiActivitySetAttribute(int attribute, size_t *size, void *value);
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *id);
int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable);
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
int cuptiActivityEnableLatencyTimestamps(uint8_t enable);
int cuptiActivityEnableLaunchAttributes(uint8_t enable);
#endif

#endif
