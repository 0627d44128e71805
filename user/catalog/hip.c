// SPDX-License-Identifier: BSD-2-Clause
/*
 * HIP, AMD's runtime (libamdhip64), seen from outside: the calls that launch, copy, set, wait,
 * record, capture and allocate. Signatures are those of hip_runtime_api.h, 5.2. Calls have Kineto's
 * category cuda_runtime, as in its own traces of ROCm. The agent has no module for AMD's devices:
 * only calls are recorded.
 */
#include "catalog/calls.h"

/* …_spt: with a default stream per thread */
#define SUFFIXES "_spt"

#define CALLS(calls, ...)                                                                  \
	{                                                                                  \
		.source = "hip_runtime", .library = "libamdhip64.so*", .symbols = (calls), \
		.suffixes = SUFFIXES, .category = "cuda_runtime", .shape = CATALOG_SPAN,   \
		.naming = CATALOG_NAME_SYMBOL, .activity = KPROF_ACTIVITY_CUDA_RUNTIME,    \
		.result = &result, .folded_into = "cuda_runtime", __VA_ARGS__              \
	}

/* hipError_t, in order of number. */
static const struct catalog_result_name errors[] = {
	{1, "hipErrorInvalidValue"},
	{2, "hipErrorOutOfMemory"},
	{3, "hipErrorNotInitialized"},
	{4, "hipErrorDeinitialized"},
	{5, "hipErrorProfilerDisabled"},
	{6, "hipErrorProfilerNotInitialized"},
	{7, "hipErrorProfilerAlreadyStarted"},
	{8, "hipErrorProfilerAlreadyStopped"},
	{9, "hipErrorInvalidConfiguration"},
	{12, "hipErrorInvalidPitchValue"},
	{13, "hipErrorInvalidSymbol"},
	{17, "hipErrorInvalidDevicePointer"},
	{21, "hipErrorInvalidMemcpyDirection"},
	{35, "hipErrorInsufficientDriver"},
	{52, "hipErrorMissingConfiguration"},
	{53, "hipErrorPriorLaunchFailure"},
	{98, "hipErrorInvalidDeviceFunction"},
	{100, "hipErrorNoDevice"},
	{101, "hipErrorInvalidDevice"},
	{200, "hipErrorInvalidImage"},
	{201, "hipErrorInvalidContext"},
	{202, "hipErrorContextAlreadyCurrent"},
	{205, "hipErrorMapFailed"},
	{206, "hipErrorUnmapFailed"},
	{207, "hipErrorArrayIsMapped"},
	{208, "hipErrorAlreadyMapped"},
	{209, "hipErrorNoBinaryForGpu"},
	{210, "hipErrorAlreadyAcquired"},
	{211, "hipErrorNotMapped"},
	{212, "hipErrorNotMappedAsArray"},
	{213, "hipErrorNotMappedAsPointer"},
	{214, "hipErrorECCNotCorrectable"},
	{215, "hipErrorUnsupportedLimit"},
	{216, "hipErrorContextAlreadyInUse"},
	{217, "hipErrorPeerAccessUnsupported"},
	{218, "hipErrorInvalidKernelFile"},
	{219, "hipErrorInvalidGraphicsContext"},
	{300, "hipErrorInvalidSource"},
	{301, "hipErrorFileNotFound"},
	{302, "hipErrorSharedObjectSymbolNotFound"},
	{303, "hipErrorSharedObjectInitFailed"},
	{304, "hipErrorOperatingSystem"},
	{400, "hipErrorInvalidHandle"},
	{401, "hipErrorIllegalState"},
	{500, "hipErrorNotFound"},
	{600, "hipErrorNotReady"},
	{700, "hipErrorIllegalAddress"},
	{701, "hipErrorLaunchOutOfResources"},
	{702, "hipErrorLaunchTimeOut"},
	{704, "hipErrorPeerAccessAlreadyEnabled"},
	{705, "hipErrorPeerAccessNotEnabled"},
	{708, "hipErrorSetOnActiveProcess"},
	{709, "hipErrorContextIsDestroyed"},
	{710, "hipErrorAssert"},
	{712, "hipErrorHostMemoryAlreadyRegistered"},
	{713, "hipErrorHostMemoryNotRegistered"},
	{719, "hipErrorLaunchFailure"},
	{720, "hipErrorCooperativeLaunchTooLarge"},
	{801, "hipErrorNotSupported"},
	{900, "hipErrorStreamCaptureUnsupported"},
	{901, "hipErrorStreamCaptureInvalidated"},
	{902, "hipErrorStreamCaptureMerge"},
	{903, "hipErrorStreamCaptureUnmatched"},
	{904, "hipErrorStreamCaptureUnjoined"},
	{905, "hipErrorStreamCaptureIsolation"},
	{906, "hipErrorStreamCaptureImplicit"},
	{907, "hipErrorCapturedEvent"},
	{908, "hipErrorStreamCaptureWrongThread"},
	{910, "hipErrorGraphExecUpdateFailure"},
	{999, "hipErrorUnknown"},
	{1052, "hipErrorRuntimeMemory"},
	{1053, "hipErrorRuntimeOther"},
	{0, NULL},
};

static const struct catalog_result result = {
	.names = errors, .answer = 600, /* hipErrorNotReady */
};

static const struct catalog_row rows[] = {
	CALLS("hipLaunchKernel hipLaunchCooperativeKernel hipExtLaunchKernel",
	      ARGS(KERNEL_FUNCTION(REG(1)), DIM3("grid", REG(2), REG(3)),
		   DIM3("block", REG(4), REG(5)), SHARED(STACK(1)), STREAM(STACK(2))),
	      .lost = "kernel launches"),
	CALLS("hipModuleLaunchKernel",
	      ARGS(DIM3_WORDS("grid", REG(2), REG(3), REG(4)),
		   DIM3_WORDS("block", REG(5), REG(6), STACK(1)), SHARED32(STACK(2)),
		   STREAM(STACK(3))),
	      .lost = "kernel launches"),
	CALLS("hipLaunchByPtr", ARGS(KERNEL_FUNCTION(REG(1))), .optional = true),
	CALLS("hipGraphLaunch", ARGS(GRAPH_EXEC(REG(1)), STREAM(REG(2))), .optional = true),

	CALLS("hipMemcpyAsync hipMemcpyWithStream",
	      ARGS(BYTES(REG(3)), KIND(REG(4)), STREAM(REG(5))), .lost = "copies"),
	CALLS("hipMemcpy", ARGS(BYTES(REG(3)), KIND(REG(4))), .lost = "copies"),
	CALLS("hipMemcpyHtoDAsync hipMemcpyDtoHAsync hipMemcpyDtoDAsync",
	      ARGS(BYTES(REG(3)), STREAM(REG(4))), .optional = true),
	CALLS("hipMemcpyHtoD hipMemcpyDtoH hipMemcpyDtoD", ARGS(BYTES(REG(3))), .optional = true),
	CALLS("hipMemcpyToSymbolAsync hipMemcpyFromSymbolAsync",
	      ARGS(BYTES(REG(3)), KIND(REG(5)), STREAM(REG(6))), .optional = true),
	CALLS("hipMemcpyToSymbol hipMemcpyFromSymbol", ARGS(BYTES(REG(3)), KIND(REG(5))),
	      .optional = true),
	CALLS("hipMemcpy2DAsync",
	      ARGS(WIDTH(REG(5)), HEIGHT(REG(6)), KIND(STACK(1)), STREAM(STACK(2))),
	      .optional = true),
	CALLS("hipMemcpy2D", ARGS(WIDTH(REG(5)), HEIGHT(REG(6)), KIND(STACK(1))), .optional = true),
	CALLS("hipMemcpy3DAsync", ARGS(STREAM(REG(2))), .optional = true),
	CALLS("hipMemcpy3D hipMemcpyParam2D", .optional = true),
	CALLS("hipMemcpyPeerAsync",
	      ARGS(BYTES(REG(5)), ARG("to device", SIGNED32, REG(2)),
		   ARG("from device", SIGNED32, REG(4)), STREAM(REG(6))),
	      .optional = true),
	CALLS("hipMemcpyPeer",
	      ARGS(BYTES(REG(5)), ARG("to device", SIGNED32, REG(2)),
		   ARG("from device", SIGNED32, REG(4))),
	      .optional = true),
	CALLS("hipMemPrefetchAsync", ARGS(BYTES(REG(2)), STREAM(REG(4))), .optional = true),

	CALLS("hipMemsetAsync", ARGS(BYTES(REG(3)), STREAM(REG(4))), .lost = "memory sets"),
	CALLS("hipMemset", ARGS(BYTES(REG(3)))),
	CALLS("hipMemset2DAsync", ARGS(WIDTH(REG(4)), HEIGHT(REG(5)), STREAM(REG(6))),
	      .optional = true),
	CALLS("hipMemset2D", ARGS(WIDTH(REG(4)), HEIGHT(REG(5))), .optional = true),
	CALLS("hipMemsetD8Async hipMemsetD16Async hipMemsetD32Async",
	      ARGS(ARG("elements", UNSIGNED, REG(3)), STREAM(REG(4))), .optional = true),
	CALLS("hipMemsetD8 hipMemsetD16 hipMemsetD32", ARGS(ARG("elements", UNSIGNED, REG(3))),
	      .optional = true),
	CALLS("hipMemset3D hipMemset3DAsync", .optional = true),

	CALLS("hipDeviceSynchronize", .lost = "waiting for the device"),
	CALLS("hipCtxSynchronize", .optional = true),
	CALLS("hipStreamSynchronize hipStreamQuery", ARGS(STREAM(REG(1))),
	      .lost = "waiting for a stream"),
	CALLS("hipEventSynchronize hipEventQuery", ARGS(EVENT(REG(1))),
	      .lost = "waiting for an event"),
	CALLS("hipStreamWaitEvent", ARGS(STREAM(REG(1)), EVENT(REG(2)))),
	CALLS("hipEventRecord", ARGS(EVENT(REG(1)), STREAM(REG(2)))),
	CALLS("hipEventElapsedTime hipStreamCreate hipStreamCreateWithFlags "
	      "hipStreamCreateWithPriority"),
	CALLS("hipStreamDestroy hipStreamAddCallback hipStreamAttachMemAsync hipLaunchHostFunc "
	      "hipStreamBeginCapture hipStreamEndCapture",
	      ARGS(STREAM(REG(1))), .optional = true),
	CALLS("hipGraphInstantiate hipGraphInstantiateWithFlags", ARGS(GRAPH(REG(2))),
	      .optional = true),
	CALLS("hipGraphExecUpdate", ARGS(GRAPH_EXEC(REG(1)), GRAPH(REG(2))), .optional = true),
	CALLS("hipGraphExecDestroy", ARGS(GRAPH_EXEC(REG(1))), .optional = true),
	CALLS("hipGraphDestroy", ARGS(GRAPH(REG(1))), .optional = true),

	CALLS("hipMalloc hipHostMalloc hipMallocHost hipHostAlloc hipMallocManaged "
	      "hipExtMallocWithFlags",
	      ARGS(BYTES(REG(2))), .lost = "allocations"),
	CALLS("hipMallocAsync", ARGS(BYTES(REG(2)), STREAM(REG(3))), .optional = true),
	CALLS("hipMallocFromPoolAsync", ARGS(BYTES(REG(2)), STREAM(REG(4))), .optional = true),
	CALLS("hipMallocPitch", ARGS(WIDTH(REG(3)), HEIGHT(REG(4))), .optional = true),
	CALLS("hipMalloc3D hipMallocArray hipMalloc3DArray hipMemGetInfo", .optional = true),
	CALLS("hipHostRegister", ARGS(ADDRESS(REG(1)), BYTES(REG(2)))),
	CALLS("hipFree hipHostFree hipFreeHost hipFreeArray hipHostUnregister",
	      ARGS(ADDRESS(REG(1)))),
	CALLS("hipFreeAsync", ARGS(ADDRESS(REG(1)), STREAM(REG(2))), .optional = true),

	/* Calls that are rare and slow. */
	CALLS("hipInit hipDeviceReset hipCtxCreate hipCtxDestroy hipModuleLoad hipModuleLoadData "
	      "hipModuleLoadDataEx hipModuleUnload hipProfilerStart hipProfilerStop",
	      .optional = true),
};

static const char *const libraries[] = {"libamdhip64.so*", NULL};
static const char *const versioned[] = {"libamdhip64.so.*", NULL};

/* From HIP's reference, "Memory Management" and "Stream Management". */
static const struct catalog_role roles[] = {
	{"hipLaunchKernel hipLaunchCooperativeKernel* hipExtLaunchKernel hipModuleLaunchKernel "
	 "hipLaunchByPtr hipGraphLaunch",
	 DEVICE_ROLE_LAUNCH},
	{"hipMemcpy*Async hipMemcpyPeer hipMemPrefetchAsync", DEVICE_ROLE_COPY},
	{"hipMemcpy*", DEVICE_ROLE_COPY_AND_WAIT},
	{"hipMemset*", DEVICE_ROLE_SET},
	{"hipMalloc* hipHostMalloc hipHostAlloc hipExtMalloc*", DEVICE_ROLE_ALLOCATE},
	{"hipEventRecord", DEVICE_ROLE_RECORD},
	{"hipStreamSynchronize", DEVICE_ROLE_WAIT_STREAM},
	{"hipEventSynchronize", DEVICE_ROLE_WAIT_EVENT},
	{"hipDeviceSynchronize hipCtxSynchronize", DEVICE_ROLE_WAIT_DEVICE},
	{NULL, DEVICE_ROLE_NONE},
};

static const struct catalog_runtime runtime = {
	.name = "hip",
	.title = "HIP",
	.libraries = versioned,
	.calls = "hip[A-Z]*",
	.suffixes = SUFFIXES,
	.roles = roles,
	.sets = ACTIVITY_SET_CUDA, /* PyTorch uses the name CUDA for AMD's devices, too */
};

const struct catalog_framework catalog_hip = {
	.name = "hip",
	.libraries = libraries,
	.common =
		"hipLaunch* hipModuleLaunch* hipGraphLaunch hipMemcpy* hipMemset* hip*Synchronize",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.runtime = &runtime,
};
