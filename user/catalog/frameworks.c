// SPDX-License-Identifier: BSD-2-Clause
/* Every framework and runtime that has rows. */
#include "catalog/catalog.h"

const struct catalog_framework *const catalog_frameworks[] = {
	&catalog_pytorch, &catalog_cuda, &catalog_opencl, &catalog_nvtx, NULL,
};
