/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: what the files of the simulated libcudart share. */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include "cbids.h"
#include "cuda_driver.h"
#include "cuda_runtime.h"
#include "sim.h"

#ifndef SIM_MAJOR
#define SIM_MAJOR 13
#endif
#define RT_VERSION (SIM_MAJOR == 12 ? 12010 : 13020) /* of the real ones that the tests know */

/* The driver's functions that the runtime calls. Z, D: with a per-thread twin, _ptsz and _ptds. */
/* clang-format off */
#define RT_DRIVER(X, Z, D) \
	X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGetAttribute) \
	X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxReset_v2) \
	X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuCtxEnablePeerAccess) \
	X(cuCtxGetStreamPriorityRange) X(cuModuleLoadData) X(cuModuleGetFunction) \
	X(cuFuncSetAttribute) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocManaged) \
	X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister_v2) X(cuMemHostUnregister) \
	X(cuPointerGetAttribute) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) \
	X(cuEventCreate) X(cuEventQuery) X(cuEventSynchronize) X(cuEventDestroy_v2) \
	X(cuEventElapsedTime) X(cuGraphCreate) X(cuGraphAddKernelNode_v2) \
	X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphAddHostNode) \
	X(cuGraphAddEmptyNode) X(cuGraphGetNodes) X(cuGraphInstantiateWithFlags) \
	X(cuGraphExecDestroy) X(cuGraphDestroy) Z(cuMemAllocAsync) Z(cuMemFreeAsync) \
	Z(cuMemcpyAsync) Z(cuMemcpyHtoDAsync_v2) Z(cuMemcpyDtoHAsync_v2) \
	Z(cuMemcpyDtoDAsync_v2) Z(cuMemcpyPeerAsync) Z(cuMemsetD8Async) Z(cuStreamSynchronize) \
	Z(cuStreamQuery) Z(cuStreamWaitEvent) Z(cuStreamBeginCapture_v2) Z(cuStreamEndCapture) \
	Z(cuStreamIsCapturing) Z(cuEventRecord) Z(cuEventRecordWithFlags) Z(cuLaunchKernel) \
	Z(cuLaunchKernelEx) Z(cuLaunchCooperativeKernel) Z(cuLaunchHostFunc) Z(cuGraphUpload) \
	Z(cuGraphLaunch) D(cuMemcpyHtoD_v2) D(cuMemcpyDtoH_v2) D(cuMemcpyDtoD_v2) D(cuMemcpy) \
	D(cuMemsetD8_v2)
/* clang-format on */

#define RT_POINTER(fn) __typeof__(&fn) fn;
#define RT_POINTERS(fn) __typeof__(&fn) fn[2]; /* [per_thread] */
struct rt_driver {
	RT_DRIVER(RT_POINTER, RT_POINTERS, RT_POINTERS)
};
extern struct rt_driver rt;
extern const struct sim_table *rt_table;

struct rt_api {
	uint32_t cbid;
	const char *name;
	bool per_thread;
};

/*
 * Defines an exported function, or one and its per-thread twin, with the same body: see driver.h.
 */
#define RT_API(fn, params, body)                                              \
	SIM_EXPORT cudaError_t fn params                                      \
	{                                                                     \
		static const struct rt_api api = {SIM_CBID_##fn, #fn, false}; \
		return body;                                                  \
	}
#define RT_API2(fn, twin, params, body)                                                  \
	RT_API(fn, params, body)                                                         \
	SIM_EXPORT cudaError_t fn##twin params                                           \
	{                                                                                \
		static const struct rt_api api = {SIM_CBID_##fn##twin, #fn #twin, true}; \
		return body;                                                             \
	}

/*
 * Begins a call: with a driver that is new enough (rt_begin), initialized (rt_begin_init), with a
 * context. 0 or an error.
 */
int rt_begin(struct sim_call *call, const struct rt_api *api);
int rt_begin_init(struct sim_call *call, const struct rt_api *api);
int rt_begin_context(struct sim_call *call, const struct rt_api *api);
/* Ends it, and keeps the error for cudaGetLastError. */
#define rt_leave(call, result, ...) rt_end((call), (result), __VA_ARGS__)
int rt_end(struct sim_call *call, int result, const char *args, ...)
	__attribute__((format(printf, 3, 4)));
int *rt_last_error(void);
int rt_device(void);
void rt_set_device(int device);
void rt_forget_contexts(void);

/* runtime_launch.c. What a host function stands for; 0 or an error. */
int rt_function(const void *host, CUfunction *f, const char **name);

#endif
