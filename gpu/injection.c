// SPDX-License-Identifier: BSD-2-Clause
/* The function by which CUDA's driver starts the agent. */
#include "gpu/base/module.h"

/* Called by libcuda at its first use, in the library that CUDA_INJECTION64_PATH names. */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	bool held;

	if (!gpu_start_in_runtime(&held)) /* else the process goes on, unobserved */
		gpu_wait_for_session(held);
	return 1;
}
