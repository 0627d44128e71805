/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where user/catalog/cuda.c reads, held against NVIDIA's own headers: compiled by tests/calls.bats,
 * never linked.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#define AT(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)

AT(cudaLaunchConfig_t, gridDim, 0);
AT(cudaLaunchConfig_t, blockDim, 12);
AT(cudaLaunchConfig_t, dynamicSmemBytes, 24);
AT(cudaLaunchConfig_t, stream, 32);
AT(CUlaunchConfig, gridDimX, 0);
AT(CUlaunchConfig, blockDimX, 12);
AT(CUlaunchConfig, sharedMemBytes, 24);
AT(CUlaunchConfig, hStream, 32);
AT(struct cudaMemcpy3DParms, extent, 128);
AT(struct cudaMemcpy3DParms, kind, 152);
AT(struct cudaMemcpy3DPeerParms, srcDevice, 64);
AT(struct cudaMemcpy3DPeerParms, dstDevice, 136);
AT(struct cudaMemcpy3DPeerParms, extent, 144);
AT(CUDA_MEMCPY2D, WidthInBytes, 112);
AT(CUDA_MEMCPY2D, Height, 120);
AT(CUDA_MEMCPY3D, WidthInBytes, 176);
AT(CUDA_MEMCPY3D, Depth, 192);
AT(CUDA_MEMCPY3D_PEER, WidthInBytes, 176);
AT(CUDA_MEMCPY3D_PEER, Depth, 192);
_Static_assert(sizeof(dim3) == 12, "two registers by value");
_Static_assert(sizeof(struct cudaPitchedPtr) == 32, "on the stack by value, before …");
_Static_assert(sizeof(struct cudaExtent) == 24, "… this");
_Static_assert(cudaMemcpyHostToHost == 0 && cudaMemcpyHostToDevice == 1 &&
		       cudaMemcpyDeviceToHost == 2 && cudaMemcpyDeviceToDevice == 3 &&
		       cudaMemcpyDefault == 4,
	       "names of kinds");
