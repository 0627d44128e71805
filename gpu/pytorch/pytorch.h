/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's module for PyTorch's operators (observer.c). */
#ifndef KPROF_GPU_PYTORCH_H
#define KPROF_GPU_PYTORCH_H

#include "gpu/base/module.h"

extern const struct gpu_module gpu_pytorch;

#endif
