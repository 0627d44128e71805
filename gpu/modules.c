// SPDX-License-Identifier: BSD-2-Clause
/*
 * All runtimes that the agent can observe: each has a line here, and a room beside this
 * file.
 */
#include <stddef.h>

#include "gpu/cupti/cupti.h"
#include "gpu/base/module.h"
#include "gpu/opencl/opencl.h"
#include "gpu/pytorch/pytorch.h"

const struct gpu_module *const gpu_modules[] = {&gpu_cuda, &gpu_opencl, &gpu_pytorch, NULL};
_Static_assert(sizeof(gpu_modules) / sizeof(gpu_modules[0]) <= GPU_MODULES_MAX + 1, "too many");
