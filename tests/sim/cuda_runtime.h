/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: the functions of the simulated libcudart.so, as the real one exports
 * them.
 */
#ifndef SIM_CUDA_RUNTIME_H
#define SIM_CUDA_RUNTIME_H

#include "cuda_abi.h"

typedef struct sim_dim3 dim3;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef int cudaError_t;

#ifdef __cplusplus
extern "C" {
#endif

/* Some have a twin for which stream 0 is the calling thread's own. */
#define SIM_F(name, ...) cudaError_t name(__VA_ARGS__);
#define SIM_FZ(name, ...) cudaError_t name(__VA_ARGS__), name##_ptsz(__VA_ARGS__);
#define SIM_FD(name, ...) cudaError_t name(__VA_ARGS__), name##_ptds(__VA_ARGS__);

void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, void *tid, void *bid, void *block, void *grid,
			    int *warp);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
SIM_F(__cudaPopCallConfiguration, dim3 *grid, dim3 *block, size_t *shared, void *stream)

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
SIM_F(cudaGetLastError, void)
SIM_F(cudaPeekAtLastError, void)
SIM_F(cudaDriverGetVersion, int *version)
SIM_F(cudaRuntimeGetVersion, int *version)
SIM_F(cudaGetDeviceCount, int *count)
SIM_F(cudaGetDevice, int *device)
SIM_F(cudaSetDevice, int device)
SIM_F(cudaGetDeviceProperties, void *properties, int device)
SIM_F(cudaGetDeviceProperties_v2, void *properties, int device)
SIM_F(cudaDeviceGetAttribute, int *value, int attribute, int device)
SIM_F(cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
SIM_F(cudaDeviceCanAccessPeer, int *can, int device, int peer)
SIM_F(cudaDeviceEnablePeerAccess, int peer, unsigned int flags)
SIM_F(cudaDeviceSynchronize, void)
SIM_F(cudaDeviceReset, void)
SIM_F(cudaProfilerStart, void)
SIM_F(cudaProfilerStop, void)

SIM_F(cudaMemGetInfo, size_t *free_bytes, size_t *total)
SIM_F(cudaMalloc, void **p, size_t bytes)
SIM_F(cudaFree, void *p)
SIM_F(cudaMallocManaged, void **p, size_t bytes, unsigned int flags)
SIM_F(cudaMallocHost, void **p, size_t bytes)
SIM_F(cudaHostAlloc, void **p, size_t bytes, unsigned int flags)
SIM_F(cudaFreeHost, void *p)
SIM_F(cudaHostRegister, void *p, size_t bytes, unsigned int flags)
SIM_F(cudaHostUnregister, void *p)
SIM_FZ(cudaMallocAsync, void **p, size_t bytes, cudaStream_t stream)
SIM_FZ(cudaFreeAsync, void *p, cudaStream_t stream)
SIM_F(cudaPointerGetAttributes, void *attributes, const void *p)

SIM_FD(cudaMemcpy, void *dst, const void *src, size_t bytes, int kind)
SIM_FZ(cudaMemcpyAsync, void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream)
SIM_F(cudaMemcpyPeer, void *dst, int to, const void *src, int from, size_t bytes)
SIM_F(cudaMemcpyPeerAsync, void *dst, int to, const void *src, int from, size_t bytes,
      cudaStream_t stream)
SIM_FD(cudaMemset, void *p, int value, size_t bytes)
SIM_FZ(cudaMemsetAsync, void *p, int value, size_t bytes, cudaStream_t stream)

SIM_F(cudaStreamCreate, cudaStream_t *stream)
SIM_F(cudaStreamCreateWithFlags, cudaStream_t *stream, unsigned int flags)
SIM_F(cudaStreamCreateWithPriority, cudaStream_t *stream, unsigned int flags, int priority)
SIM_F(cudaStreamDestroy, cudaStream_t stream)
SIM_FZ(cudaStreamSynchronize, cudaStream_t stream)
SIM_FZ(cudaStreamQuery, cudaStream_t stream)
SIM_FZ(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned int flags)
SIM_FZ(cudaStreamBeginCapture, cudaStream_t stream, int mode)
SIM_FZ(cudaStreamEndCapture, cudaStream_t stream, cudaGraph_t *graph)
SIM_FZ(cudaStreamIsCapturing, cudaStream_t stream, int *status)
SIM_F(cudaEventCreate, cudaEvent_t *event)
SIM_F(cudaEventCreateWithFlags, cudaEvent_t *event, unsigned int flags)
SIM_FZ(cudaEventRecord, cudaEvent_t event, cudaStream_t stream)
SIM_FZ(cudaEventRecordWithFlags, cudaEvent_t event, cudaStream_t stream, unsigned int flags)
SIM_F(cudaEventQuery, cudaEvent_t event)
SIM_F(cudaEventSynchronize, cudaEvent_t event)
SIM_F(cudaEventDestroy, cudaEvent_t event)
SIM_F(cudaEventElapsedTime, float *ms, cudaEvent_t start, cudaEvent_t end)

SIM_FZ(cudaLaunchKernel, const void *func, dim3 grid, dim3 block, void **args, size_t shared,
       cudaStream_t stream)
SIM_FZ(cudaLaunchKernelExC, const struct sim_launch_config *config, const void *func, void **args)
SIM_FZ(cudaLaunchCooperativeKernel, const void *func, dim3 grid, dim3 block, void **args,
       size_t shared, cudaStream_t stream)
SIM_FZ(cudaLaunchHostFunc, cudaStream_t stream, CUhostFn fn, void *arg)
SIM_F(cudaFuncSetAttribute, const void *func, int attribute, int value)
SIM_F(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, const void *func,
      int block_threads, size_t dynamic_shared)

SIM_F(cudaGraphCreate, cudaGraph_t *graph, unsigned int flags)
SIM_F(cudaGraphAddKernelNode, cudaGraphNode_t *node, cudaGraph_t graph,
      const cudaGraphNode_t *after, size_t nr, const struct sim_kernel_node_params *params)
SIM_F(cudaGraphAddMemcpyNode1D, cudaGraphNode_t *node, cudaGraph_t graph,
      const cudaGraphNode_t *after, size_t nr, void *dst, const void *src, size_t bytes, int kind)
SIM_F(cudaGraphAddMemsetNode, cudaGraphNode_t *node, cudaGraph_t graph,
      const cudaGraphNode_t *after, size_t nr, const struct sim_memset_params *params)
SIM_F(cudaGraphAddHostNode, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
      size_t nr, const struct sim_host_node_params *params)
SIM_F(cudaGraphAddEmptyNode, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
      size_t nr)
SIM_F(cudaGraphGetNodes, cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *nr)
SIM_F(cudaGraphInstantiate, cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
SIM_F(cudaGraphInstantiateWithFlags, cudaGraphExec_t *exec, cudaGraph_t graph,
      unsigned long long flags)
SIM_FZ(cudaGraphUpload, cudaGraphExec_t exec, cudaStream_t stream)
SIM_FZ(cudaGraphLaunch, cudaGraphExec_t exec, cudaStream_t stream)
SIM_F(cudaGraphExecDestroy, cudaGraphExec_t exec)
SIM_F(cudaGraphDestroy, cudaGraph_t graph)

#undef SIM_F
#undef SIM_FZ
#undef SIM_FD
#ifdef __cplusplus
}
#endif
#endif
