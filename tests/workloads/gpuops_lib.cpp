/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built as libtorch_cpu.so: A TEST DOUBLE THAT ONLY LOOKS LIKE PYTORCH'S LIBRARY OF THAT NAME; see
 * gpuops.hpp.
 */
#include "gpuops.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static std::atomic<uint64_t> calls[GPUOPS_NR];

static inline void count(enum gpuops_index i)
{
	std::atomic<uint64_t> *c = &calls[i];

	asm volatile(""
		     : "+r"(c)); /* no "lock add" at an entry, where the kernel allows no probe */
	c->fetch_add(1, std::memory_order_relaxed);
}

/* As PyTorch keeps them: a plain string per operator in .rodata, without the namespace. */
static const struct {
	const char *name;
	const char *schema;
} ops[GPUOPS_NR] = {
	{"aten::gpu_copy_",
	 "gpu_copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"},
	{"aten::gpu_mm", "gpu_mm(Tensor self, Tensor mat2) -> Tensor"},
	{"aten::gpu_add", "gpu_add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"},
	{"aten::gpu_linear",
	 "gpu_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"},
	{"aten::gpu_relu_", "gpu_relu_(Tensor(a!) self) -> Tensor(a!)"},
	{"aten::gpu_zero_", "gpu_zero_(Tensor(a!) self) -> Tensor(a!)"},
	{"aten::gpu_item", "gpu_item(Tensor self) -> Scalar"},
};

/* ---- kernels: see cudadriver_kernels.c ---- */

extern "C" {
GPUOPS_EXPORT void _Z9mm_kernelPfm(float *, uint64_t);
GPUOPS_EXPORT void _Z10add_kernelPfm(float *, uint64_t);
GPUOPS_EXPORT void _Z11relu_kernelPfm(float *, uint64_t);
GPUOPS_EXPORT void _Z10sgd_kernelPfm(float *, uint64_t);
void _Z9mm_kernelPfm(float *, uint64_t)
{
}
void _Z10add_kernelPfm(float *, uint64_t)
{
}
void _Z11relu_kernelPfm(float *, uint64_t)
{
}
void _Z10sgd_kernelPfm(float *, uint64_t)
{
}
}

template <int op> static void body(void **params, dim3, dim3)
{
	float *x = *static_cast<float **>(params[0]);
	uint64_t n = *static_cast<uint64_t *>(params[1]);

	for (uint64_t i = 0; i < n; i++)
		x[i] = op == 0   ? x[i] * 2
		       : op == 1 ? x[i] + 1
		       : op == 2 ? (x[i] > 0 ? x[i] : 0)
				 : x[i] - 1;
}

/* name, registers, static shared, local, parameters, duration parameter, ns, body */
static const struct sim_kernel_desc kernels[] = {
	{"_Z9mm_kernelPfm", 128, 32768, 0, 2, 0, 60000, body<0>},
	{"_Z10add_kernelPfm", 16, 0, 0, 2, 0, 8000, body<1>},
	{"_Z11relu_kernelPfm", 20, 0, 0, 2, 0, 5000, body<2>},
	{"_Z10sgd_kernelPfm", 40, 0, 0, 2, 0, 12000, body<3>},
};
static const void *const hosts[] = {(const void *)_Z9mm_kernelPfm, (const void *)_Z10add_kernelPfm,
				    (const void *)_Z11relu_kernelPfm,
				    (const void *)_Z10sgd_kernelPfm};
static const struct sim_image image = {SIM_IMAGE_MAGIC, 4, kernels};
static struct sim_fatbin fatbin = {SIM_FATBIN_MAGIC, 1, &image, nullptr};

__attribute__((constructor)) static void register_kernels()
{
	void **handle = __cudaRegisterFatBinary(&fatbin);

	for (int i = 0; i < 4; i++)
		__cudaRegisterFunction(handle, static_cast<const char *>(hosts[i]), nullptr,
				       kernels[i].name, -1, nullptr, nullptr, nullptr, nullptr,
				       nullptr);
	__cudaRegisterFatBinaryEnd(handle);
}

static void check(cudaError_t err)
{
	if (!err)
		return;
	fprintf(stderr, "gpuops: %s\n", cudaGetErrorString(err));
	exit(1);
}

static void launch(int kernel, float *x, uint64_t n, cudaStream_t stream)
{
	void *args[] = {&x, &n};

	check(cudaLaunchKernel(hosts[kernel], {unsigned(n + 127) / 128, 1, 1}, {128, 1, 1}, args, 0,
			       stream));
}

/* ---- operators ---- */

namespace at
{
namespace _ops
{
NOINLINE void gpu_copy_::call(float *dev, const float *host, uint64_t n, cudaStream_t stream)
{
	count(GPUOPS_COPY);
	check(cudaMemcpyAsync(dev, host, n * sizeof(float), SIM_HOST_TO_DEVICE, stream));
}

NOINLINE void gpu_mm::call(float *x, uint64_t n, cudaStream_t stream)
{
	count(GPUOPS_MM);
	launch(0, x, n, stream);
}

NOINLINE void gpu_add_Tensor::call(float *x, uint64_t n, cudaStream_t stream)
{
	count(GPUOPS_ADD);
	launch(1, x, n, stream);
}

NOINLINE void gpu_linear::call(float *x, uint64_t n, cudaStream_t stream)
{
	count(GPUOPS_LINEAR);
	gpu_mm::call(x, n, stream);
	gpu_add_Tensor::call(x, n, stream);
	asm volatile("" ::: "memory"); /* no jump instead of the last call */
}

NOINLINE void gpu_relu_::call(float *x, uint64_t n, cudaStream_t stream)
{
	struct sim_launch_config config = {};
	void *args[] = {&x, &n};

	count(GPUOPS_RELU);
	config.grid = {unsigned(n + 255) / 256, 1, 1};
	config.block = {256, 1, 1};
	config.stream = stream;
	check(cudaLaunchKernelExC(&config, hosts[2], args));
}

NOINLINE void gpu_zero_::call(float *x, uint64_t n, cudaStream_t stream)
{
	count(GPUOPS_ZERO);
	check(cudaMemsetAsync(x, 0, n * sizeof(float), stream));
}

NOINLINE float gpu_item::call(const float *x, cudaStream_t stream)
{
	float value;

	count(GPUOPS_ITEM);
	check(cudaMemcpyAsync(&value, x, sizeof(value), SIM_DEVICE_TO_HOST, stream));
	check(cudaStreamSynchronize(stream));
	return value;
}
} // namespace _ops
} // namespace at

uint64_t gpuops_count(int index)
{
	return calls[index].load(std::memory_order_relaxed);
}

const char *gpuops_name(int index)
{
	asm volatile("" ::"r"(ops[index].schema)); /* the strings stay */
	return ops[index].name;
}

NOINLINE void gpuops_optimizer_step(float *x, uint64_t n, cudaStream_t stream)
{
	launch(3, x, n, stream);
}
