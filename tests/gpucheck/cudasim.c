// SPDX-License-Identifier: BSD-2-Clause
/* The kernels of cudawork.c as the tests' simulated driver takes them: functions of the host. */
#include <string.h>

#include "cudawork.h"
#include "tests/sim/cuda_abi.h"

static void add(void **params, struct sim_dim3 grid, struct sim_dim3 block)
{
	float *data;
	unsigned int nr;

	memcpy(&data, params[0], sizeof(data));
	memcpy(&nr, params[1], sizeof(nr));
	for (unsigned int i = 0; i < nr; i++)
		data[i] += 1;
}

static void spin(void **params, struct sim_dim3 grid, struct sim_dim3 block)
{
	uint64_t *step;

	memcpy(&step, params[1], sizeof(step));
	*step = 1; /* the simulated device's clock counts nanoseconds */
}

const void *work_simulated_image(void)
{
	static const struct sim_kernel_desc kernels[] = {
		{.name = "gpucheck_add", .registers = 8, .nr_params = 2, .body = add},
		/* it takes as long as its first parameter says */
		{.name = "gpucheck_spin",
		 .registers = 16,
		 .nr_params = 2,
		 .duration_param = 1,
		 .body = spin},
		{.name = "gpucheck_empty", .registers = 4, .fixed_ns = 1000},
	};
	static const struct sim_image image = {SIM_IMAGE_MAGIC,
					       sizeof(kernels) / sizeof(kernels[0]), kernels};

	return &image;
}
