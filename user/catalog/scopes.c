// SPDX-License-Identifier: BSD-2-Clause
/* The scopes of PyTorch's calls (at::RecordScope), and which of them probes see. */
#include "catalog/catalog.h"
#include "kprof/options.h"

static const char *const names[KPROF_SCOPES] = {
	[KPROF_SCOPE_FUNCTION] = "FUNCTION",
	[KPROF_SCOPE_BACKWARD_FUNCTION] = "BACKWARD_FUNCTION",
	[KPROF_SCOPE_TORCHSCRIPT_FUNCTION] = "TORCHSCRIPT_FUNCTION",
	[KPROF_SCOPE_KERNEL_FUNCTION_DTYPE] = "KERNEL_FUNCTION_DTYPE",
	[KPROF_SCOPE_CUSTOM_CLASS] = "CUSTOM_CLASS",
	[KPROF_SCOPE_BUILD_FEATURE] = "BUILD_FEATURE",
	[KPROF_SCOPE_LITE_INTERPRETER] = "LITE_INTERPRETER",
	[KPROF_SCOPE_USER_SCOPE] = "USER_SCOPE",
	[KPROF_SCOPE_STATIC_RUNTIME_OP] = "STATIC_RUNTIME_OP",
	[KPROF_SCOPE_STATIC_RUNTIME_MODEL] = "STATIC_RUNTIME_MODEL",
};

const char *kprof_scope_name(size_t i)
{
	return i < KPROF_SCOPES ? names[i] : NULL;
}

uint32_t catalog_scopes(void)
{
	uint32_t scopes = 0;

	for (size_t i = 0; catalog_frameworks[i]; i++)
		for (size_t k = 0; k < catalog_frameworks[i]->nr_rows; k++)
			scopes |= catalog_frameworks[i]->rows[k].scope;
	return scopes;
}
