/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test double, not PyTorch: operators with the shape of PyTorch's (at::_ops::NAME::call, in a
 * library called libtorch_cpu.so) that launch kernels on the simulated CUDA of tests/sim. Each
 * kernel is launched by one operator only, so that its name says which operator a profiler must
 * have found around it.
 */
#ifndef KPROF_TEST_GPUOPS_HPP
#define KPROF_TEST_GPUOPS_HPP

#include <cstdint>

#include "cuda_runtime.h"

#define GPUOPS_EXPORT __attribute__((visibility("default")))

namespace at
{
namespace _ops
{
struct GPUOPS_EXPORT gpu_copy_ { /* a copy to the device */
	static void call(float *dev, const float *host, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_mm { /* mm_kernel */
	static void call(float *x, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_add_Tensor { /* add_kernel */
	static void call(float *x, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_linear { /* mm, then add: two operators in one */
	static void call(float *x, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_relu_ { /* relu_kernel, by cudaLaunchKernelExC */
	static void call(float *x, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_zero_ { /* a memset */
	static void call(float *x, uint64_t n, cudaStream_t stream);
};
struct GPUOPS_EXPORT gpu_item { /* a copy to the host, waited for */
	static float call(const float *x, cudaStream_t stream);
};
} // namespace _ops
} // namespace at

enum gpuops_index {
	GPUOPS_COPY,
	GPUOPS_MM,
	GPUOPS_ADD,
	GPUOPS_LINEAR,
	GPUOPS_RELU,
	GPUOPS_ZERO,
	GPUOPS_ITEM,
	GPUOPS_NR
};

extern "C" {
GPUOPS_EXPORT uint64_t gpuops_count(int index);
GPUOPS_EXPORT const char *gpuops_name(int index); /* "aten::gpu_mm" */
GPUOPS_EXPORT void gpuops_optimizer_step(float *x, uint64_t n,
					 cudaStream_t stream); /* sgd_kernel; no operator */
}

#endif
