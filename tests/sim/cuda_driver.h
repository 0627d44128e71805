/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: the functions of the simulated libcuda.so.1, as the real one exports
 * them.
 */
#ifndef SIM_CUDA_DRIVER_H
#define SIM_CUDA_DRIVER_H

#include "cuda_abi.h"

/* Some have a twin for which stream 0 is the calling thread's own. */
#define SIM_F(name, ...) int name(__VA_ARGS__);
#define SIM_FZ(name, ...) int name(__VA_ARGS__), name##_ptsz(__VA_ARGS__);
#define SIM_FD(name, ...) int name(__VA_ARGS__), name##_ptds(__VA_ARGS__);

SIM_F(cuInit, unsigned int flags)
SIM_F(cuDriverGetVersion, int *version)
SIM_F(cuGetErrorName, int error, const char **name)
SIM_F(cuGetErrorString, int error, const char **text)
SIM_F(cuGetExportTable, const void **table, const struct sim_uuid *id)
SIM_F(cuGetProcAddress, const char *symbol, void **fn, int version, uint64_t flags)
SIM_F(cuGetProcAddress_v2, const char *symbol, void **fn, int version, uint64_t flags, int *status)
SIM_F(cuProfilerStart, void)
SIM_F(cuProfilerStop, void)

SIM_F(cuDeviceGet, CUdevice *device, int ordinal)
SIM_F(cuDeviceGetCount, int *count)
SIM_F(cuDeviceGetName, char *name, int bytes, CUdevice device)
SIM_F(cuDeviceGetUuid, struct sim_uuid *uuid, CUdevice device)
SIM_F(cuDeviceGetUuid_v2, struct sim_uuid *uuid, CUdevice device)
SIM_F(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
SIM_F(cuDeviceGetAttribute, int *value, int attribute, CUdevice device)
SIM_F(cuDeviceCanAccessPeer, int *can, CUdevice device, CUdevice peer)
SIM_F(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
SIM_F(cuDevicePrimaryCtxRelease, CUdevice device)
SIM_F(cuDevicePrimaryCtxRelease_v2, CUdevice device)
SIM_F(cuDevicePrimaryCtxReset, CUdevice device)
SIM_F(cuDevicePrimaryCtxReset_v2, CUdevice device)
SIM_F(cuDevicePrimaryCtxGetState, CUdevice device, unsigned int *flags, int *active)
SIM_F(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned int flags)
SIM_F(cuCtxCreate_v2, CUcontext *context, unsigned int flags, CUdevice device)
SIM_F(cuCtxDestroy_v2, CUcontext context)
SIM_F(cuCtxPushCurrent_v2, CUcontext context)
SIM_F(cuCtxPopCurrent_v2, CUcontext *context)
SIM_F(cuCtxSetCurrent, CUcontext context)
SIM_F(cuCtxGetCurrent, CUcontext *context)
SIM_F(cuCtxGetDevice, CUdevice *device)
SIM_F(cuCtxGetId, CUcontext context, unsigned long long *id)
SIM_F(cuCtxGetApiVersion, CUcontext context, unsigned int *version)
SIM_F(cuCtxGetStreamPriorityRange, int *least, int *greatest)
SIM_F(cuCtxEnablePeerAccess, CUcontext peer, unsigned int flags)
SIM_F(cuCtxSynchronize, void)

SIM_F(cuModuleLoadData, CUmodule *module, const void *image)
SIM_F(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned int nr_options,
      void *options, void **values)
SIM_F(cuModuleLoadFatBinary, CUmodule *module, const void *image)
SIM_F(cuModuleUnload, CUmodule module)
SIM_F(cuModuleGetFunction, CUfunction *function, CUmodule module, const char *name)
SIM_F(cuFuncGetAttribute, int *value, int attribute, CUfunction function)
SIM_F(cuFuncSetAttribute, CUfunction function, int attribute, int value)
SIM_F(cuFuncGetName, const char **name, CUfunction function)
SIM_F(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction function,
      int block_threads, size_t dynamic_shared)

SIM_F(cuMemGetInfo_v2, size_t *free_bytes, size_t *total)
SIM_F(cuMemAlloc_v2, CUdeviceptr *p, size_t bytes)
SIM_F(cuMemFree_v2, CUdeviceptr p)
SIM_F(cuMemAllocManaged, CUdeviceptr *p, size_t bytes, unsigned int flags)
SIM_F(cuMemAllocHost_v2, void **p, size_t bytes)
SIM_F(cuMemHostAlloc, void **p, size_t bytes, unsigned int flags)
SIM_F(cuMemFreeHost, void *p)
SIM_F(cuMemHostRegister_v2, void *p, size_t bytes, unsigned int flags)
SIM_F(cuMemHostUnregister, void *p)
SIM_FZ(cuMemAllocAsync, CUdeviceptr *p, size_t bytes, CUstream stream)
SIM_FZ(cuMemFreeAsync, CUdeviceptr p, CUstream stream)
SIM_F(cuPointerGetAttribute, void *value, int attribute, CUdeviceptr p)

SIM_FD(cuMemcpy, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
SIM_FD(cuMemcpyHtoD_v2, CUdeviceptr dst, const void *src, size_t bytes)
SIM_FD(cuMemcpyDtoH_v2, void *dst, CUdeviceptr src, size_t bytes)
SIM_FD(cuMemcpyDtoD_v2, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
SIM_FD(cuMemcpyPeer, CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes)
SIM_FZ(cuMemcpyAsync, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
SIM_FZ(cuMemcpyHtoDAsync_v2, CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
SIM_FZ(cuMemcpyDtoHAsync_v2, void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
SIM_FZ(cuMemcpyDtoDAsync_v2, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
SIM_FZ(cuMemcpyPeerAsync, CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
       size_t bytes, CUstream stream)
SIM_FD(cuMemsetD8_v2, CUdeviceptr dst, unsigned char value, size_t count)
SIM_FD(cuMemsetD32_v2, CUdeviceptr dst, unsigned int value, size_t count)
SIM_FZ(cuMemsetD8Async, CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
SIM_FZ(cuMemsetD32Async, CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)

SIM_F(cuStreamCreate, CUstream *stream, unsigned int flags)
SIM_F(cuStreamCreateWithPriority, CUstream *stream, unsigned int flags, int priority)
SIM_F(cuStreamDestroy_v2, CUstream stream)
SIM_FZ(cuStreamSynchronize, CUstream stream)
SIM_FZ(cuStreamQuery, CUstream stream)
SIM_FZ(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags)
SIM_FZ(cuStreamBeginCapture_v2, CUstream stream, int mode)
SIM_FZ(cuStreamEndCapture, CUstream stream, CUgraph *graph)
SIM_FZ(cuStreamIsCapturing, CUstream stream, int *status)
SIM_F(cuEventCreate, CUevent *event, unsigned int flags)
SIM_FZ(cuEventRecord, CUevent event, CUstream stream)
SIM_FZ(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned int flags)
SIM_F(cuEventQuery, CUevent event)
SIM_F(cuEventSynchronize, CUevent event)
SIM_F(cuEventDestroy_v2, CUevent event)
SIM_F(cuEventElapsedTime, float *ms, CUevent start, CUevent end)
SIM_F(cuEventElapsedTime_v2, float *ms, CUevent start, CUevent end)

SIM_FZ(cuLaunchKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
       void **params, void **extra)
SIM_FZ(cuLaunchKernelEx, const struct sim_driver_launch_config *config, CUfunction f, void **params,
       void **extra)
SIM_FZ(cuLaunchCooperativeKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
       void **params)
SIM_FZ(cuLaunchHostFunc, CUstream stream, CUhostFn fn, void *arg)

SIM_F(cuGraphCreate, CUgraph *graph, unsigned int flags)
SIM_F(cuGraphAddKernelNode_v2, CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
      size_t nr, const struct sim_driver_kernel_node_params *params)
SIM_F(cuGraphAddMemcpyNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
      const struct sim_driver_copy3d *copy, CUcontext context)
SIM_F(cuGraphAddMemsetNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
      const struct sim_memset_params *params, CUcontext context)
SIM_F(cuGraphAddHostNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
      const struct sim_host_node_params *params)
SIM_F(cuGraphAddEmptyNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr)
SIM_F(cuGraphGetNodes, CUgraph graph, CUgraphNode *nodes, size_t *nr)
SIM_F(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
SIM_FZ(cuGraphUpload, CUgraphExec exec, CUstream stream)
SIM_FZ(cuGraphLaunch, CUgraphExec exec, CUstream stream)
SIM_F(cuGraphExecDestroy, CUgraphExec exec)
SIM_F(cuGraphDestroy, CUgraph graph)

#undef SIM_F
#undef SIM_FZ
#undef SIM_FD
#endif
