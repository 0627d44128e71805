/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What nvcc would have made of a .cu file: host functions that stand for kernels, the "device code"
 * (the simulator's, see cuda_abi.h), and a constructor that registers them.
 */
#include "cudadriver.h"

static void scale(void **params, dim3 grid, dim3 block)
{
	float *x = *(float **)params[0];
	uint64_t n = *(uint64_t *)params[1];

	for (uint64_t i = 0; i < n; i++)
		x[i] *= 2;
}

static void add(void **params, dim3 grid, dim3 block)
{
	const float *a = *(float **)params[0], *b = *(float **)params[1];
	float *c = *(float **)params[2];
	uint64_t n = *(uint64_t *)params[3];

	for (uint64_t i = 0; i < n; i++)
		c[i] = a[i] + b[i];
}

static const struct sim_kernel_desc kernels[] = {
	{.name = "_Z5scalePfm", .registers = 24, .nr_params = 2, .fixed_ns = 4000, .body = scale},
	{.name = "_Z4spinm", .registers = 16, .nr_params = 1, .duration_param = 1},
	{.name = "_Z4tinyv", .registers = 8, .fixed_ns = 1000},
	{.name = "_Z3addPKfS0_Pfm",
	 .registers = 32,
	 .static_shared = 2048,
	 .nr_params = 4,
	 .body = add},
};
const struct sim_image cudadriver_image = {SIM_IMAGE_MAGIC, sizeof(kernels) / sizeof(kernels[0]),
					   kernels};
static struct sim_fatbin fatbin = {SIM_FATBIN_MAGIC, 1, &cudadriver_image, NULL};
static void **handle;

/* As nvcc's stubs: launch with the configuration of <<<…>>>. */
static void launch_stub(const void *func, void **args)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;

	if (!__cudaPopCallConfiguration(&grid, &block, &shared, &stream))
		cudaLaunchKernel(func, grid, block, args, shared, stream);
}

void _Z5scalePfm(float *x, uint64_t n)
{
	launch_stub((const void *)_Z5scalePfm, (void *[]){&x, &n});
}

void _Z4spinm(uint64_t ns)
{
	launch_stub((const void *)_Z4spinm, (void *[]){&ns});
}

void _Z4tinyv(void)
{
	launch_stub((const void *)_Z4tinyv, (void *[]){NULL});
}

void _Z3addPKfS0_Pfm(const float *a, const float *b, float *c, uint64_t n)
{
	launch_stub((const void *)_Z3addPKfS0_Pfm, (void *[]){&a, &b, &c, &n});
}

void never_registered(void)
{
}

__attribute__((constructor)) static void at_load(void)
{
	static const void *const hosts[] = {(const void *)_Z5scalePfm, (const void *)_Z4spinm,
					    (const void *)_Z4tinyv, (const void *)_Z3addPKfS0_Pfm};

	handle = __cudaRegisterFatBinary(&fatbin);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		__cudaRegisterFunction(handle, hosts[i], NULL, kernels[i].name, -1, NULL, NULL,
				       NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

__attribute__((destructor)) static void at_exit(void)
{
	__cudaUnregisterFatBinary(handle);
}
