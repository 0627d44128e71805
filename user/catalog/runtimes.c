// SPDX-License-Identifier: BSD-2-Clause
/* Device runtimes by the libraries they come in. */
#include "catalog/catalog.h"

static const char *const cuda[] = {"libcudart.so.*", "libcudart-*.so.*", "libcuda.so.*", NULL};
static const char *const hip[] = {"libamdhip64.so.*", NULL};
static const char *const opencl[] = {"libOpenCL.so.*", NULL};
static const char *const level_zero[] = {"libze_loader.so.*", NULL};

const struct catalog_runtime catalog_runtimes[] = {
	{"cuda", cuda}, {"hip", hip}, {"opencl", opencl}, {"level-zero", level_zero}, {NULL, NULL},
};
