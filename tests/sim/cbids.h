/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: the numbers by which CUPTI calls the functions
 * (CUpti_runtime_api_trace_cbid, CUpti_driver_api_trace_cbid), and when the runtime's came to be,
 * which is part of the names that CUPTI gives them. abi_check.c holds them against the real
 * headers.
 */
#ifndef SIM_CBIDS_H
#define SIM_CBIDS_H

/* X(function, number, version) */
#define SIM_RUNTIME_CBIDS(X)                                        \
	X(cudaDriverGetVersion, 1, 3020)                            \
	X(cudaRuntimeGetVersion, 2, 3020)                           \
	X(cudaGetDeviceCount, 3, 3020)                              \
	X(cudaGetLastError, 10, 3020)                               \
	X(cudaPeekAtLastError, 11, 3020)                            \
	X(cudaSetDevice, 16, 3020)                                  \
	X(cudaGetDevice, 17, 3020)                                  \
	X(cudaMalloc, 20, 3020)                                     \
	X(cudaFree, 22, 3020)                                       \
	X(cudaMallocHost, 25, 3020)                                 \
	X(cudaFreeHost, 26, 3020)                                   \
	X(cudaHostAlloc, 27, 3020)                                  \
	X(cudaMemGetInfo, 30, 3020)                                 \
	X(cudaMemcpy, 31, 3020)                                     \
	X(cudaMemcpyAsync, 41, 3020)                                \
	X(cudaMemset, 49, 3020)                                     \
	X(cudaMemsetAsync, 51, 3020)                                \
	X(cudaStreamCreate, 129, 3020)                              \
	X(cudaStreamSynchronize, 131, 3020)                         \
	X(cudaStreamQuery, 132, 3020)                               \
	X(cudaEventCreate, 133, 3020)                               \
	X(cudaEventCreateWithFlags, 134, 3020)                      \
	X(cudaEventRecord, 135, 3020)                               \
	X(cudaEventDestroy, 136, 3020)                              \
	X(cudaEventSynchronize, 137, 3020)                          \
	X(cudaEventQuery, 138, 3020)                                \
	X(cudaStreamWaitEvent, 147, 3020)                           \
	X(cudaPointerGetAttributes, 151, 4000)                      \
	X(cudaHostRegister, 152, 4000)                              \
	X(cudaHostUnregister, 153, 4000)                            \
	X(cudaDeviceCanAccessPeer, 154, 4000)                       \
	X(cudaDeviceEnablePeerAccess, 155, 4000)                    \
	X(cudaMemcpyPeer, 160, 4000)                                \
	X(cudaMemcpyPeerAsync, 161, 4000)                           \
	X(cudaDeviceReset, 164, 3020)                               \
	X(cudaDeviceSynchronize, 165, 3020)                         \
	X(cudaProfilerStart, 171, 4000)                             \
	X(cudaProfilerStop, 172, 4000)                              \
	X(cudaStreamCreateWithFlags, 198, 5000)                     \
	X(cudaDeviceGetAttribute, 200, 5000)                        \
	X(cudaStreamDestroy, 201, 5050)                             \
	X(cudaStreamCreateWithPriority, 202, 5050)                  \
	X(cudaDeviceGetStreamPriorityRange, 205, 5050)              \
	X(cudaMallocManaged, 206, 6000)                             \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 210, 6050) \
	X(cudaLaunchKernel, 211, 7000)                              \
	X(cudaLaunchKernel_ptsz, 214, 7000)                         \
	X(cudaMemcpy_ptds, 215, 7000)                               \
	X(cudaMemcpyAsync_ptsz, 225, 7000)                          \
	X(cudaMemset_ptds, 233, 7000)                               \
	X(cudaMemsetAsync_ptsz, 235, 7000)                          \
	X(cudaStreamSynchronize_ptsz, 239, 7000)                    \
	X(cudaStreamQuery_ptsz, 240, 7000)                          \
	X(cudaEventRecord_ptsz, 242, 7000)                          \
	X(cudaStreamWaitEvent_ptsz, 247, 7000)                      \
	X(cudaLaunchCooperativeKernel, 269, 9000)                   \
	X(cudaLaunchCooperativeKernel_ptsz, 270, 9000)              \
	X(cudaFuncSetAttribute, 273, 9000)                          \
	X(cudaLaunchHostFunc, 284, 10000)                           \
	X(cudaLaunchHostFunc_ptsz, 285, 10000)                      \
	X(cudaGraphCreate, 286, 10000)                              \
	X(cudaGraphAddKernelNode, 289, 10000)                       \
	X(cudaGraphAddMemsetNode, 293, 10000)                       \
	X(cudaGraphAddHostNode, 296, 10000)                         \
	X(cudaGraphAddEmptyNode, 300, 10000)                        \
	X(cudaGraphLaunch, 311, 10000)                              \
	X(cudaGraphLaunch_ptsz, 312, 10000)                         \
	X(cudaGraphExecDestroy, 313, 10000)                         \
	X(cudaGraphDestroy, 314, 10000)                             \
	X(cudaStreamBeginCapture, 315, 10000)                       \
	X(cudaStreamBeginCapture_ptsz, 316, 10000)                  \
	X(cudaStreamIsCapturing, 317, 10000)                        \
	X(cudaStreamIsCapturing_ptsz, 318, 10000)                   \
	X(cudaStreamEndCapture, 319, 10000)                         \
	X(cudaStreamEndCapture_ptsz, 320, 10000)                    \
	X(cudaGraphGetNodes, 322, 10000)                            \
	X(cudaGraphUpload, 348, 10000)                              \
	X(cudaGraphUpload_ptsz, 349, 10000)                         \
	X(cudaGraphAddMemcpyNode1D, 352, 11010)                     \
	X(cudaEventRecordWithFlags, 370, 11010)                     \
	X(cudaEventRecordWithFlags_ptsz, 371, 11010)                \
	X(cudaMallocAsync, 373, 11020)                              \
	X(cudaMallocAsync_ptsz, 374, 11020)                         \
	X(cudaFreeAsync, 375, 11020)                                \
	X(cudaFreeAsync_ptsz, 376, 11020)                           \
	X(cudaGraphInstantiateWithFlags, 418, 11040)                \
	X(cudaLaunchKernelExC, 430, 11060)                          \
	X(cudaLaunchKernelExC_ptsz, 431, 11060)                     \
	X(cudaGraphInstantiate, 443, 12000)                         \
/* Those that differ by the major version. */
#define SIM_RUNTIME_CBIDS_12(X)             \
	X(cudaGetDeviceProperties, 4, 3020) \
	X(cudaEventElapsedTime, 139, 3020)  \
	X(cudaGetDeviceProperties_v2, 440, 12000)
#define SIM_RUNTIME_CBIDS_13(X)                \
	X(cudaGetDeviceProperties, 440, 12000) \
	X(cudaEventElapsedTime, 486, 12080)
#if defined(SIM_MAJOR) && SIM_MAJOR == 12
#define SIM_RUNTIME_CBIDS_MAJOR SIM_RUNTIME_CBIDS_12
#else
#define SIM_RUNTIME_CBIDS_MAJOR SIM_RUNTIME_CBIDS_13
#endif

/* X(function, number) */
#define SIM_DRIVER_CBIDS(X)                                 \
	X(cuInit, 1)                                        \
	X(cuDriverGetVersion, 2)                            \
	X(cuDeviceGet, 3)                                   \
	X(cuDeviceGetCount, 4)                              \
	X(cuDeviceGetName, 5)                               \
	X(cuDeviceGetAttribute, 9)                          \
	X(cuCtxGetDevice, 16)                               \
	X(cuCtxSynchronize, 17)                             \
	X(cuModuleLoadData, 19)                             \
	X(cuModuleLoadDataEx, 20)                           \
	X(cuModuleLoadFatBinary, 21)                        \
	X(cuModuleUnload, 22)                               \
	X(cuModuleGetFunction, 23)                          \
	X(cuMemFreeHost, 38)                                \
	X(cuMemHostAlloc, 39)                               \
	X(cuFuncGetAttribute, 85)                           \
	X(cuEventCreate, 118)                               \
	X(cuEventRecord, 119)                               \
	X(cuEventQuery, 120)                                \
	X(cuEventSynchronize, 121)                          \
	X(cuEventElapsedTime, 123)                          \
	X(cuStreamCreate, 124)                              \
	X(cuStreamQuery, 125)                               \
	X(cuStreamSynchronize, 126)                         \
	X(cuGetExportTable, 135)                            \
	X(cuMemsetD8Async, 216)                             \
	X(cuMemsetD32Async, 220)                            \
	X(cuCtxCreate_v2, 235)                              \
	X(cuMemGetInfo_v2, 242)                             \
	X(cuMemAlloc_v2, 243)                               \
	X(cuMemFree_v2, 245)                                \
	X(cuMemsetD8_v2, 249)                               \
	X(cuMemsetD32_v2, 251)                              \
	X(cuDeviceTotalMem_v2, 259)                         \
	X(cuMemcpyHtoD_v2, 276)                             \
	X(cuMemcpyHtoDAsync_v2, 277)                        \
	X(cuMemcpyDtoH_v2, 278)                             \
	X(cuMemcpyDtoHAsync_v2, 279)                        \
	X(cuMemcpyDtoD_v2, 280)                             \
	X(cuMemcpyDtoDAsync_v2, 281)                        \
	X(cuMemAllocHost_v2, 294)                           \
	X(cuStreamWaitEvent, 295)                           \
	X(cuCtxGetApiVersion, 296)                          \
	X(cuMemHostUnregister, 302)                         \
	X(cuCtxSetCurrent, 303)                             \
	X(cuCtxGetCurrent, 304)                             \
	X(cuMemcpy, 305)                                    \
	X(cuMemcpyAsync, 306)                               \
	X(cuLaunchKernel, 307)                              \
	X(cuProfilerStart, 308)                             \
	X(cuProfilerStop, 309)                              \
	X(cuPointerGetAttribute, 310)                       \
	X(cuDeviceCanAccessPeer, 312)                       \
	X(cuCtxEnablePeerAccess, 313)                       \
	X(cuMemcpyPeer, 318)                                \
	X(cuMemcpyPeerAsync, 319)                           \
	X(cuCtxDestroy_v2, 322)                             \
	X(cuCtxPushCurrent_v2, 323)                         \
	X(cuCtxPopCurrent_v2, 324)                          \
	X(cuEventDestroy_v2, 325)                           \
	X(cuStreamDestroy_v2, 326)                          \
	X(cuStreamCreateWithPriority, 367)                  \
	X(cuCtxGetStreamPriorityRange, 370)                 \
	X(cuMemAllocManaged, 371)                           \
	X(cuGetErrorString, 372)                            \
	X(cuGetErrorName, 373)                              \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 374) \
	X(cuMemHostRegister_v2, 379)                        \
	X(cuDevicePrimaryCtxRetain, 386)                    \
	X(cuDevicePrimaryCtxRelease, 387)                   \
	X(cuDevicePrimaryCtxReset, 389)                     \
	X(cuDevicePrimaryCtxGetState, 392)                  \
	X(cuMemcpyHtoD_v2_ptds, 397)                        \
	X(cuMemcpyDtoH_v2_ptds, 398)                        \
	X(cuMemcpyDtoD_v2_ptds, 399)                        \
	X(cuMemcpy_ptds, 408)                               \
	X(cuMemcpyPeer_ptds, 409)                           \
	X(cuMemsetD8_v2_ptds, 411)                          \
	X(cuMemsetD32_v2_ptds, 413)                         \
	X(cuMemcpyAsync_ptsz, 418)                          \
	X(cuMemcpyHtoDAsync_v2_ptsz, 421)                   \
	X(cuMemcpyDtoHAsync_v2_ptsz, 422)                   \
	X(cuMemcpyDtoDAsync_v2_ptsz, 423)                   \
	X(cuMemcpyPeerAsync_ptsz, 426)                      \
	X(cuMemsetD8Async_ptsz, 428)                        \
	X(cuMemsetD32Async_ptsz, 430)                       \
	X(cuStreamWaitEvent_ptsz, 436)                      \
	X(cuStreamQuery_ptsz, 439)                          \
	X(cuStreamSynchronize_ptsz, 440)                    \
	X(cuEventRecord_ptsz, 441)                          \
	X(cuLaunchKernel_ptsz, 442)                         \
	X(cuLaunchCooperativeKernel, 477)                   \
	X(cuLaunchCooperativeKernel_ptsz, 478)              \
	X(cuFuncSetAttribute, 481)                          \
	X(cuDeviceGetUuid, 482)                             \
	X(cuStreamEndCapture, 497)                          \
	X(cuStreamEndCapture_ptsz, 498)                     \
	X(cuStreamIsCapturing, 499)                         \
	X(cuStreamIsCapturing_ptsz, 500)                    \
	X(cuGraphCreate, 501)                               \
	X(cuGraphAddMemcpyNode, 504)                        \
	X(cuGraphAddMemsetNode, 506)                        \
	X(cuGraphLaunch, 514)                               \
	X(cuGraphLaunch_ptsz, 515)                          \
	X(cuGraphExecDestroy, 516)                          \
	X(cuGraphDestroy, 517)                              \
	X(cuGraphAddEmptyNode, 526)                         \
	X(cuLaunchHostFunc, 527)                            \
	X(cuLaunchHostFunc_ptsz, 528)                       \
	X(cuGraphAddHostNode, 530)                          \
	X(cuGraphGetNodes, 534)                             \
	X(cuStreamBeginCapture_v2, 539)                     \
	X(cuStreamBeginCapture_v2_ptsz, 540)                \
	X(cuDevicePrimaryCtxRelease_v2, 544)                \
	X(cuDevicePrimaryCtxReset_v2, 545)                  \
	X(cuDevicePrimaryCtxSetFlags_v2, 546)               \
	X(cuGraphUpload, 580)                               \
	X(cuGraphUpload_ptsz, 581)                          \
	X(cuEventRecordWithFlags, 587)                      \
	X(cuEventRecordWithFlags_ptsz, 588)                 \
	X(cuMemAllocAsync, 598)                             \
	X(cuMemAllocAsync_ptsz, 599)                        \
	X(cuMemFreeAsync, 600)                              \
	X(cuMemFreeAsync_ptsz, 601)                         \
	X(cuGetProcAddress, 626)                            \
	X(cuGraphInstantiateWithFlags, 643)                 \
	X(cuDeviceGetUuid_v2, 647)                          \
	X(cuLaunchKernelEx, 652)                            \
	X(cuLaunchKernelEx_ptsz, 653)                       \
	X(cuGetProcAddress_v2, 677)                         \
	X(cuGraphAddKernelNode_v2, 689)                     \
	X(cuCtxGetId, 695)                                  \
/* Not known to CUPTI 12.1 yet. */
#define SIM_DRIVER_CBIDS_LATER(X) X(cuFuncGetName, 718) X(cuEventElapsedTime_v2, 780)

#define SIM_ENUM_RUNTIME(name, number, version) SIM_CBID_##name = (number),
#define SIM_ENUM_DRIVER(name, number) SIM_CBID_##name = (number),
enum sim_runtime_cbid {
	SIM_RUNTIME_CBIDS(SIM_ENUM_RUNTIME) SIM_RUNTIME_CBIDS_MAJOR(SIM_ENUM_RUNTIME)
};
enum sim_driver_cbid { SIM_DRIVER_CBIDS(SIM_ENUM_DRIVER) SIM_DRIVER_CBIDS_LATER(SIM_ENUM_DRIVER) };

#endif
