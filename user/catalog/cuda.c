// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUDA's runtime (libcudart) and driver (libcuda), seen from outside: the calls that launch, copy,
 * set, wait, record, capture and allocate. Signatures are those of cuda_runtime_api.h and cuda.h,
 * 11.8 to 13; where they differ between releases, only arguments that all have are read. A dim3 by
 * value is two registers: x and y in one, z in the next.
 *
 * Variants of a call (…_ptsz: with a default stream per thread; …_v2: since some release) count as
 * that call. `__cudaLaunchKernel` has no row: it jumps to cudaLaunchKernel.
 *
 * As in Kineto's traces, cudaGetDevice, cudaSetDevice, cudaGetLastError, and the creation and
 * destruction of events are left out. They are the most frequent calls and say nothing about the
 * device's work.
 */
#include "catalog/calls.h"

#define RUNTIME_LIBS "libcudart.so* libcudart-*.so*"
#define DRIVER_LIBS "libcuda.so*"
#define SUFFIXES "_ptsz _ptds _spt _v#"

/*
 * cudaLaunchConfig_t and CUlaunchConfig have these fields at the same offsets; only the size of
 * shared memory, which is not read, has another width.
 */
#define LAUNCH_CONFIG                                                                      \
	DIM3("grid", FIELD(1, 0), FIELD(1, 8)), DIM3("block", FIELD(1, 12), FIELD(1, 20)), \
		STREAM(FIELD(1, 32))

/* A row: names of calls, and their arguments, which all of them have in the same places. */
#define RUNTIME(calls, ...)                                                              \
	{                                                                                \
		.source = "cuda_runtime", .library = RUNTIME_LIBS, .symbols = (calls),   \
		.suffixes = SUFFIXES, .category = "cuda_runtime", .shape = CATALOG_SPAN, \
		.naming = CATALOG_NAME_SYMBOL, .activity = KPROF_ACTIVITY_CUDA_RUNTIME,  \
		.result = &runtime_result, .folded_into = "cuda_runtime", __VA_ARGS__    \
	}
#define DRIVER(calls, ...)                                                                       \
	{                                                                                        \
		.source = "cuda_driver", .library = DRIVER_LIBS, .symbols = (calls),             \
		.suffixes = SUFFIXES, .category = "cuda_driver", .shape = CATALOG_SPAN,          \
		.naming = CATALOG_NAME_SYMBOL, .activity = KPROF_ACTIVITY_CUDA_DRIVER,           \
		.result = &driver_result, .folded_into = "cuda_runtime cuda_driver", __VA_ARGS__ \
	}

static const struct catalog_result runtime_result = {
	.names = catalog_cuda_errors, .answer = 600, /* cudaErrorNotReady */
};

static const struct catalog_result driver_result = {
	.names = catalog_cuda_driver_errors, .answer = 600, /* CUDA_ERROR_NOT_READY */
};

static const struct catalog_row rows[] = {
	RUNTIME("cudaLaunchKernel cudaLaunchCooperativeKernel",
		ARGS(KERNEL_FUNCTION(REG(1)), DIM3("grid", REG(2), REG(3)),
		     DIM3("block", REG(4), REG(5)), SHARED(STACK(1)), STREAM(STACK(2))),
		.lost = "kernel launches"),
	RUNTIME("cudaLaunchKernelExC",
		ARGS(KERNEL_FUNCTION(REG(2)), LAUNCH_CONFIG, SHARED(FIELD(1, 24))),
		.optional = true),
	RUNTIME("cudaLaunchCooperativeKernelMultiDevice", .optional = true),
	RUNTIME("cudaLaunchHostFunc", ARGS(STREAM(REG(1)), ARG("function", FUNCTION, REG(2))),
		.optional = true),
	RUNTIME("cudaGraphLaunch cudaGraphUpload", ARGS(GRAPH_EXEC(REG(1)), STREAM(REG(2))),
		.optional = true),

	RUNTIME("cudaMemcpyAsync", ARGS(BYTES(REG(3)), KIND(REG(4)), STREAM(REG(5))),
		.lost = "copies"),
	RUNTIME("cudaMemcpy", ARGS(BYTES(REG(3)), KIND(REG(4)))),
	RUNTIME("cudaMemcpyToSymbolAsync cudaMemcpyFromSymbolAsync",
		ARGS(BYTES(REG(3)), KIND(REG(5)), STREAM(REG(6))), .optional = true),
	RUNTIME("cudaMemcpyToSymbol cudaMemcpyFromSymbol", ARGS(BYTES(REG(3)), KIND(REG(5))),
		.optional = true),
	RUNTIME("cudaMemcpy2DAsync",
		ARGS(WIDTH(REG(5)), HEIGHT(REG(6)), KIND(STACK(1)), STREAM(STACK(2))),
		.optional = true),
	RUNTIME("cudaMemcpy2D", ARGS(WIDTH(REG(5)), HEIGHT(REG(6)), KIND(STACK(1))),
		.optional = true),
	RUNTIME("cudaMemcpy2DToArrayAsync cudaMemcpy2DFromArrayAsync",
		ARGS(WIDTH(REG(6)), HEIGHT(STACK(1)), KIND(STACK(2)), STREAM(STACK(3))),
		.optional = true),
	RUNTIME("cudaMemcpy2DToArray cudaMemcpy2DFromArray",
		ARGS(WIDTH(REG(6)), HEIGHT(STACK(1)), KIND(STACK(2))), .optional = true),
	/* cudaMemcpy3DParms: extent at 128, kind at 152 */
	RUNTIME("cudaMemcpy3DAsync",
		ARGS(WIDTH(FIELD(1, 128)), HEIGHT(FIELD(1, 136)), DEPTH(FIELD(1, 144)),
		     KIND(FIELD(1, 152)), STREAM(REG(2))),
		.optional = true),
	RUNTIME("cudaMemcpy3D",
		ARGS(WIDTH(FIELD(1, 128)), HEIGHT(FIELD(1, 136)), DEPTH(FIELD(1, 144)),
		     KIND(FIELD(1, 152))),
		.optional = true),
	/* cudaMemcpy3DPeerParms: devices at 64 and 136, extent at 144 */
	RUNTIME("cudaMemcpy3DPeerAsync",
		ARGS(WIDTH(FIELD(1, 144)), HEIGHT(FIELD(1, 152)), DEPTH(FIELD(1, 160)),
		     ARG("from device", SIGNED32, FIELD(1, 64)),
		     ARG("to device", SIGNED32, FIELD(1, 136)), STREAM(REG(2))),
		.optional = true),
	RUNTIME("cudaMemcpy3DPeer",
		ARGS(WIDTH(FIELD(1, 144)), HEIGHT(FIELD(1, 152)), DEPTH(FIELD(1, 160)),
		     ARG("from device", SIGNED32, FIELD(1, 64)),
		     ARG("to device", SIGNED32, FIELD(1, 136))),
		.optional = true),
	RUNTIME("cudaMemcpyPeerAsync",
		ARGS(BYTES(REG(5)), ARG("to device", SIGNED32, REG(2)),
		     ARG("from device", SIGNED32, REG(4)), STREAM(REG(6))),
		.optional = true),
	RUNTIME("cudaMemcpyPeer",
		ARGS(BYTES(REG(5)), ARG("to device", SIGNED32, REG(2)),
		     ARG("from device", SIGNED32, REG(4))),
		.optional = true),
	RUNTIME("cudaMemcpyBatchAsync", ARGS(ARG("copies", UNSIGNED, REG(4))), .optional = true),
	RUNTIME("cudaMemcpy3DBatchAsync", ARGS(ARG("copies", UNSIGNED, REG(1))), .optional = true),
	RUNTIME("cudaMemcpyToArrayAsync cudaMemcpyFromArrayAsync",
		ARGS(BYTES(REG(5)), KIND(REG(6)), STREAM(STACK(1))), .optional = true),
	RUNTIME("cudaMemcpyToArray cudaMemcpyFromArray", ARGS(BYTES(REG(5)), KIND(REG(6))),
		.optional = true),
	RUNTIME("cudaMemcpyArrayToArray", ARGS(BYTES(STACK(1)), KIND(STACK(2))), .optional = true),
	RUNTIME("cudaMemcpy2DArrayToArray", ARGS(WIDTH(STACK(1)), HEIGHT(STACK(2)), KIND(STACK(3))),
		.optional = true),
	RUNTIME("cudaMemcpyWithAttributesAsync", ARGS(BYTES(REG(3)), STREAM(REG(5))),
		.optional = true),
	RUNTIME("cudaMemcpy3DWithAttributesAsync", ARGS(STREAM(REG(3))), .optional = true),
	RUNTIME("cudaMemPrefetchAsync", ARGS(BYTES(REG(2))), .optional = true),
	RUNTIME("cudaMemPrefetchBatchAsync cudaMemDiscardAndPrefetchBatchAsync",
		ARGS(ARG("ranges", UNSIGNED, REG(3)), STREAM(STACK(2))), .optional = true),
	RUNTIME("cudaMemDiscardBatchAsync", ARGS(ARG("ranges", UNSIGNED, REG(3)), STREAM(REG(5))),
		.optional = true),

	RUNTIME("cudaMemsetAsync", ARGS(BYTES(REG(3)), STREAM(REG(4))), .lost = "memory sets"),
	RUNTIME("cudaMemset", ARGS(BYTES(REG(3)))),
	RUNTIME("cudaMemset2DAsync", ARGS(WIDTH(REG(4)), HEIGHT(REG(5)), STREAM(REG(6))),
		.optional = true),
	RUNTIME("cudaMemset2D", ARGS(WIDTH(REG(4)), HEIGHT(REG(5))), .optional = true),
	/*
	 * The arguments are (cudaPitchedPtr, value, cudaExtent, stream). Both structures are on the
	 * stack: 32 and 24 bytes.
	 */
	RUNTIME("cudaMemset3DAsync",
		ARGS(WIDTH(STACK(5)), HEIGHT(STACK(6)), DEPTH(STACK(7)), STREAM(REG(2))),
		.optional = true),
	RUNTIME("cudaMemset3D", ARGS(WIDTH(STACK(5)), HEIGHT(STACK(6)), DEPTH(STACK(7))),
		.optional = true),

	RUNTIME("cudaDeviceSynchronize", .lost = "waiting for the device"),
	RUNTIME("cudaThreadSynchronize", .optional = true),
	RUNTIME("cudaStreamSynchronize cudaStreamQuery", ARGS(STREAM(REG(1))),
		.lost = "waiting for a stream"),
	RUNTIME("cudaEventSynchronize cudaEventQuery", ARGS(EVENT(REG(1))),
		.lost = "waiting for an event"),
	RUNTIME("cudaStreamWaitEvent", ARGS(STREAM(REG(1)), EVENT(REG(2)))),
	RUNTIME("cudaEventRecord cudaEventRecordWithFlags", ARGS(EVENT(REG(1)), STREAM(REG(2)))),
	RUNTIME("cudaEventElapsedTime"),
	/* Contexts of a part of a device, from CUDA 13.1 on. */
	RUNTIME("cudaExecutionCtxRecordEvent cudaExecutionCtxWaitEvent", ARGS(EVENT(REG(2))),
		.optional = true),
	RUNTIME("cudaExecutionCtxSynchronize cudaExecutionCtxStreamCreate", .optional = true),

	RUNTIME("cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority"),
	RUNTIME("cudaStreamDestroy cudaStreamAddCallback cudaStreamAttachMemAsync",
		ARGS(STREAM(REG(1)))),
	RUNTIME("cudaStreamBeginCapture cudaStreamBeginCaptureToGraph "
		"cudaStreamBeginRecaptureToGraph cudaStreamEndCapture",
		ARGS(STREAM(REG(1))), .optional = true),
	RUNTIME("cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphInstantiateWithParams",
		ARGS(GRAPH(REG(2))), .optional = true),
	RUNTIME("cudaGraphExecUpdate", ARGS(GRAPH_EXEC(REG(1)), GRAPH(REG(2))), .optional = true),
	RUNTIME("cudaGraphExecDestroy", ARGS(GRAPH_EXEC(REG(1))), .optional = true),
	RUNTIME("cudaGraphDestroy", ARGS(GRAPH(REG(1))), .optional = true),
	RUNTIME("cudaGraphAddNode", ARGS(GRAPH(REG(2))), .optional = true),
	RUNTIME("cudaGraphCreate", .optional = true),

	RUNTIME("cudaMalloc cudaMallocHost cudaHostAlloc cudaMallocManaged", ARGS(BYTES(REG(2))),
		.lost = "allocations"),
	RUNTIME("cudaMallocAsync", ARGS(BYTES(REG(2)), STREAM(REG(3))), .optional = true),
	RUNTIME("cudaMallocFromPoolAsync", ARGS(BYTES(REG(2)), STREAM(REG(4))), .optional = true),
	RUNTIME("cudaMallocPitch", ARGS(WIDTH(REG(3)), HEIGHT(REG(4))), .optional = true),
	RUNTIME("cudaMalloc3D cudaMallocArray cudaMalloc3DArray cudaMemGetInfo", .optional = true),
	RUNTIME("cudaHostRegister", ARGS(ADDRESS(REG(1)), BYTES(REG(2)))),
	RUNTIME("cudaFree cudaFreeHost cudaFreeArray cudaHostUnregister", ARGS(ADDRESS(REG(1)))),
	RUNTIME("cudaFreeAsync", ARGS(ADDRESS(REG(1)), STREAM(REG(2))), .optional = true),

	RUNTIME("cudaMemPoolTrimTo", ARGS(ARG("bytes kept", UNSIGNED, REG(2))), .optional = true),

	/* Calls that are rare and slow. */
	RUNTIME("cudaDeviceReset cudaInitDevice cudaProfilerStart cudaProfilerStop "
		"cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload",
		.optional = true),
	DRIVER("cuLaunchKernel cuLaunchCooperativeKernel",
	       ARGS(DIM3_WORDS("grid", REG(2), REG(3), REG(4)),
		    DIM3_WORDS("block", REG(5), REG(6), STACK(1)), SHARED32(STACK(2)),
		    STREAM(STACK(3))),
	       .lost = "kernel launches of libraries with their own copy of the runtime"),
	DRIVER("cuLaunchKernelEx", ARGS(LAUNCH_CONFIG, SHARED32(FIELD(1, 24))), .optional = true),
	DRIVER("cuLaunchHostFunc", ARGS(STREAM(REG(1)), ARG("function", FUNCTION, REG(2))),
	       .optional = true),
	DRIVER("cuGraphLaunch cuGraphUpload", ARGS(GRAPH_EXEC(REG(1)), STREAM(REG(2))),
	       .optional = true),

	DRIVER("cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpyAsync",
	       ARGS(BYTES(REG(3)), STREAM(REG(4))), .lost = "copies"),
	DRIVER("cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpy", ARGS(BYTES(REG(3)))),
	DRIVER("cuMemcpyPeerAsync", ARGS(BYTES(REG(5)), STREAM(REG(6))), .optional = true),
	DRIVER("cuMemcpyPeer", ARGS(BYTES(REG(5))), .optional = true),
	/* CUDA_MEMCPY2D: width and height at 112; CUDA_MEMCPY3D and its peer: extent at 176 */
	DRIVER("cuMemcpy2DAsync", ARGS(WIDTH(FIELD(1, 112)), HEIGHT(FIELD(1, 120)), STREAM(REG(2))),
	       .optional = true),
	DRIVER("cuMemcpy2D cuMemcpy2DUnaligned", ARGS(WIDTH(FIELD(1, 112)), HEIGHT(FIELD(1, 120))),
	       .optional = true),
	DRIVER("cuMemcpy3DAsync cuMemcpy3DPeerAsync",
	       ARGS(WIDTH(FIELD(1, 176)), HEIGHT(FIELD(1, 184)), DEPTH(FIELD(1, 192)),
		    STREAM(REG(2))),
	       .optional = true),
	DRIVER("cuMemcpy3D cuMemcpy3DPeer",
	       ARGS(WIDTH(FIELD(1, 176)), HEIGHT(FIELD(1, 184)), DEPTH(FIELD(1, 192))),
	       .optional = true),
	DRIVER("cuMemcpyBatchAsync", ARGS(ARG("copies", UNSIGNED, REG(4))), .optional = true),
	DRIVER("cuMemcpy3DBatchAsync", ARGS(ARG("copies", UNSIGNED, REG(1))), .optional = true),
	DRIVER("cuMemcpyAtoA", ARGS(BYTES(REG(5))), .optional = true),
	DRIVER("cuMemcpyAtoD cuMemcpyDtoA cuMemcpyAtoH cuMemcpyHtoA", ARGS(BYTES(REG(4))),
	       .optional = true),
	DRIVER("cuMemcpyAtoHAsync cuMemcpyHtoAAsync", ARGS(BYTES(REG(4)), STREAM(REG(5))),
	       .optional = true),
	DRIVER("cuMemcpyWithAttributesAsync", ARGS(BYTES(REG(3)), STREAM(REG(5))),
	       .optional = true),
	DRIVER("cuMemcpy3DWithAttributesAsync", ARGS(STREAM(REG(3))), .optional = true),
	DRIVER("cuMemPrefetchAsync", ARGS(BYTES(REG(2))), .optional = true),
	DRIVER("cuMemPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync",
	       ARGS(ARG("ranges", UNSIGNED, REG(3)), STREAM(STACK(2))), .optional = true),
	DRIVER("cuMemDiscardBatchAsync", ARGS(ARG("ranges", UNSIGNED, REG(3)), STREAM(REG(5))),
	       .optional = true),

	DRIVER("cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async",
	       ARGS(ARG("elements", UNSIGNED, REG(3)), STREAM(REG(4))), .lost = "memory sets"),
	DRIVER("cuMemsetD8 cuMemsetD16 cuMemsetD32", ARGS(ARG("elements", UNSIGNED, REG(3)))),
	DRIVER("cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async",
	       ARGS(ARG("width", UNSIGNED, REG(4)), HEIGHT(REG(5)), STREAM(REG(6))),
	       .optional = true),
	DRIVER("cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32",
	       ARGS(ARG("width", UNSIGNED, REG(4)), HEIGHT(REG(5))), .optional = true),

	DRIVER("cuCtxSynchronize", .lost = "waiting for the device"),
	DRIVER("cuStreamSynchronize cuStreamQuery", ARGS(STREAM(REG(1))),
	       .lost = "waiting for a stream"),
	DRIVER("cuEventSynchronize cuEventQuery", ARGS(EVENT(REG(1))),
	       .lost = "waiting for an event"),
	DRIVER("cuStreamWaitEvent", ARGS(STREAM(REG(1)), EVENT(REG(2)))),
	DRIVER("cuEventRecord cuEventRecordWithFlags", ARGS(EVENT(REG(1)), STREAM(REG(2)))),
	DRIVER("cuEventElapsedTime"),
	/* By these, NCCL, NVSHMEM and symmetric memory make streams wait for other devices. */
	DRIVER("cuStreamWriteValue32 cuStreamWriteValue64 cuStreamWaitValue32 cuStreamWaitValue64",
	       ARGS(STREAM(REG(1)), ADDRESS(REG(2))), .optional = true),
	DRIVER("cuStreamBatchMemOp", ARGS(STREAM(REG(1))), .optional = true),

	DRIVER("cuStreamCreate cuStreamCreateWithPriority"),
	DRIVER("cuStreamDestroy cuStreamAddCallback cuStreamAttachMemAsync", ARGS(STREAM(REG(1)))),
	DRIVER("cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamEndCapture",
	       ARGS(STREAM(REG(1))), .optional = true),
	DRIVER("cuGraphInstantiate cuGraphInstantiateWithFlags cuGraphInstantiateWithParams",
	       ARGS(GRAPH(REG(2))), .optional = true),
	DRIVER("cuGraphExecUpdate", ARGS(GRAPH_EXEC(REG(1)), GRAPH(REG(2))), .optional = true),
	DRIVER("cuGraphExecDestroy", ARGS(GRAPH_EXEC(REG(1))), .optional = true),
	DRIVER("cuGraphDestroy", ARGS(GRAPH(REG(1))), .optional = true),
	DRIVER("cuGraphAddNode", ARGS(GRAPH(REG(2))), .optional = true),
	DRIVER("cuGraphCreate", .optional = true),

	DRIVER("cuMemAlloc cuMemAllocHost cuMemHostAlloc cuMemAllocManaged cuMemCreate",
	       ARGS(BYTES(REG(2))), .lost = "allocations"),
	DRIVER("cuMemAllocAsync", ARGS(BYTES(REG(2)), STREAM(REG(3))), .optional = true),
	DRIVER("cuMemAllocFromPoolAsync", ARGS(BYTES(REG(2)), STREAM(REG(4))), .optional = true),
	DRIVER("cuMemAllocPitch", ARGS(WIDTH(REG(3)), HEIGHT(REG(4))), .optional = true),
	DRIVER("cuMemHostRegister cuMemMap cuMemUnmap cuMemSetAccess",
	       ARGS(ADDRESS(REG(1)), BYTES(REG(2))), .optional = true),
	DRIVER("cuMemFree cuMemFreeHost cuMemHostUnregister cuMemRelease", ARGS(ADDRESS(REG(1)))),
	DRIVER("cuMemFreeAsync", ARGS(ADDRESS(REG(1)), STREAM(REG(2))), .optional = true),
	DRIVER("cuMemGetInfo", .optional = true),
	DRIVER("cuMemPoolTrimTo", ARGS(ARG("bytes kept", UNSIGNED, REG(2))), .optional = true),

	/* Calls that are rare and slow. */
	DRIVER("cuInit cuCtxCreate cuCtxDestroy cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease "
	       "cuDevicePrimaryCtxReset cuModuleLoad cuModuleLoadData cuModuleLoadDataEx "
	       "cuModuleLoadFatBinary cuModuleUnload cuLibraryLoadData cuLibraryLoadFromFile "
	       "cuLibraryUnload cuLinkComplete cuProfilerStart cuProfilerStop cuMulticastCreate "
	       "cuMulticastAddDevice cuMulticastBindMem cuMulticastBindAddr cuMulticastUnbind",
	       .optional = true),
};

static const char *const libraries[] = {"libcudart.so*", "libcudart-*.so*", "libcuda.so*", NULL};
static const char *const versioned[] = {"libcudart.so.*", "libcudart-*.so.*", "libcuda.so.*", NULL};

/*
 * From CUDA's programming guide, the chapters on streams and "API synchronization behavior". Calls
 * that set memory return before it is set, whatever their names, and so do copies between devices.
 * Other copies without Async in their names wait for the copy, except small ones to the device.
 */
static const struct catalog_role roles[] = {
	{"cudaLaunchKernel* cudaLaunchCooperative* cuLaunchKernel* cuLaunchCooperative* "
	 "cudaGraphLaunch cuGraphLaunch",
	 DEVICE_ROLE_LAUNCH},
	{"cudaMemcpy*Async cuMemcpy*Async cudaMemcpy*Peer cuMemcpy*Peer cudaMemPrefetchAsync "
	 "cuMemPrefetchAsync",
	 DEVICE_ROLE_COPY},
	{"cudaMemcpy* cuMemcpy*", DEVICE_ROLE_COPY_AND_WAIT},
	{"cudaMemset* cuMemset*", DEVICE_ROLE_SET},
	{"cudaMalloc* cudaHostAlloc cuMemAlloc* cuMemHostAlloc cuMemCreate", DEVICE_ROLE_ALLOCATE},
	{"cudaEventRecord* cuEventRecord*", DEVICE_ROLE_RECORD},
	{"cudaStreamSynchronize cuStreamSynchronize", DEVICE_ROLE_WAIT_STREAM},
	{"cudaEventSynchronize cuEventSynchronize", DEVICE_ROLE_WAIT_EVENT},
	{"cudaDeviceSynchronize cudaThreadSynchronize cudaExecutionCtxSynchronize cuCtxSynchronize",
	 DEVICE_ROLE_WAIT_DEVICE},
	{NULL, DEVICE_ROLE_NONE},
};

static const struct catalog_runtime runtime = {
	.name = "cuda",
	.title = "CUDA",
	.libraries = versioned,
	.calls = "cuda* cu*",
	.suffixes = SUFFIXES,
	/* CUPTI's tables add the release to a name ("_v7000"); "_v2" is a version of the ABI. */
	.unshown_suffixes = "_ptsz _ptds _v####",
	.roles = roles,
	.sets = ACTIVITY_SET_CUDA,
	.module = KPROF_AGENT_CUDA,
	.activities =
		ACTIVITY_BIT(KPROF_ACTIVITY_KERNEL) | ACTIVITY_BIT(KPROF_ACTIVITY_GPU_MEMCPY) |
		ACTIVITY_BIT(KPROF_ACTIVITY_GPU_MEMSET) | ACTIVITY_BIT(KPROF_ACTIVITY_CUDA_SYNC) |
		ACTIVITY_BIT(KPROF_ACTIVITY_CUDA_EVENT) | ACTIVITY_BIT(KPROF_ACTIVITY_OVERHEAD) |
		ACTIVITY_BIT(KPROF_ACTIVITY_GPU_USER_ANNOTATION) |
		ACTIVITY_BIT(KPROF_ACTIVITY_GPU_APPROXIMATE),
	.launch_details = true,
	/*
	 * CUDA's driver loads the library that this variable names at its first use (CUPTI's
	 * documentation).
	 */
	.environment = {.name = "CUDA_INJECTION64_PATH", .waits = true},
	/* Every program built for CUDA maps the runtime; only those that use it map the driver. */
	.used = "libcuda.so.1 libcuda.so.[0-9]*.[0-9]*",
	.injectable = true,
	.not_after_fork = true,
	.hints =
		{
			[KPROF_AGENT_NO_CUPTI] = ("KPROF_CUPTI_PATH in the process's environment "
						  "names a libcupti.so of its CUDA release"),
			[KPROF_AGENT_BUSY] = ("CUPTI serves one tool at a time: stop the other "
					      "(torch.profiler, Nsight, DCGM), then attach again; "
					      "older PyTorch keeps it until the process ends"),
			[KPROF_AGENT_NO_PERMISSION] = ("load the nvidia module with "
						       "NVreg_RestrictProfilingToAdminUsers=0, "
						       "or give the process CAP_SYS_ADMIN"),
			[KPROF_AGENT_BAD_VERSION] =
				("CUDA 11.6 to 13 are known to this kprof, but for "
				 "the first 13.0; with CUDA 11, kprof run "
				 "records what attach must not"),
			[KPROF_AGENT_NO_DRIVER] = "nvidia-smi says which driver there is",
		},
};

const struct catalog_framework catalog_cuda = {
	.name = "cuda",
	.libraries = libraries,
	/*
	 * Probed first where probes are scarce: the calls that put work on a device or wait for it.
	 */
	.common = "cudaLaunch* cuLaunch* cudaGraphLaunch cuGraphLaunch cudaMemcpy* cuMemcpy* "
		  "cudaMemset* cuMemset* cuda*Synchronize cu*Synchronize",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
	.runtime = &runtime,
	.embedded_symbol = "cudaLaunchKernel",
	.embedded_as = "libcudart.so",
	.embedded_with = "libcuda.so*",
};
