// SPDX-License-Identifier: BSD-2-Clause
/* State that all files of the layer share. */
#include "gpu/opencl/opencl.h"

ocl_function ocl_next[OCL_ENTRIES];
bool ocl_loaded;
uint64_t ocl_types;
uint32_t ocl_session;
