// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent as a layer between an OpenCL program and its driver. The OpenCL loader (ocl-icd,
 * Khronos') opens what OPENCL_LAYERS names at the program's first call, and asks it for a dispatch
 * table, through which calls go before they reach the driver's. In a process that has made its
 * first call without the layer, it can no longer be added.
 */
#include <string.h>

#include "gpu/base/module.h"
#include "gpu/opencl/opencl.h"

#define EXPORTED __attribute__((visibility("default")))
#define LAYER_NAME "kprof"

static ocl_function layer[OCL_ENTRIES];

EXPORTED int32_t clGetLayerInfo(uint32_t what, size_t bytes, void *value, size_t *bytes_ret)
{
	uint32_t version = OCL_LAYER_API_VERSION_100;
	const void *answer = &version;
	size_t have = sizeof(version);

	if (what == OCL_LAYER_NAME) {
		answer = LAYER_NAME;
		have = sizeof(LAYER_NAME);
	} else if (what != OCL_LAYER_API_VERSION) {
		return OCL_INVALID_VALUE;
	}
	if (value && bytes < have)
		return OCL_INVALID_VALUE;
	if (value)
		memcpy(value, answer, have);
	if (bytes_ret)
		*bytes_ret = have;
	return OCL_SUCCESS;
}

static void wrap(const struct ocl_wrapper *w)
{
	for (; w->function; w++)
		if (ocl_next[w->entry])
			layer[w->entry] = w->function;
}

static void copy_table(ocl_function to[OCL_ENTRIES], const ocl_function *from, uint32_t nr)
{
	memcpy(to, from, (nr < OCL_ENTRIES ? nr : OCL_ENTRIES) * sizeof(*from));
}

EXPORTED int32_t clInitLayer(uint32_t entries, const ocl_function *target, uint32_t *entries_ret,
			     const ocl_function **dispatch)
{
	static ocl_function passing[OCL_ENTRIES];
	bool held;

	if (!target || !entries_ret || !dispatch)
		return OCL_INVALID_VALUE;
	*entries_ret = OCL_ENTRIES;
	if (ocl_loaded) { /* named twice in OPENCL_LAYERS: once is enough */
		copy_table(passing, target, entries);
		*dispatch = passing;
		return OCL_SUCCESS;
	}
	/* Without its memory file nothing can be recorded: the loader goes on without the layer. */
	if (gpu_start_in_runtime(&held))
		return OCL_OUT_OF_HOST_MEMORY;
	copy_table(ocl_next, target, entries);
	copy_table(layer, target, entries);
	wrap(ocl_queue_wrappers);
	wrap(ocl_call_wrappers);
	ocl_clock__read_hosts();
	__atomic_store_n(&ocl_loaded, true, __ATOMIC_RELEASE);
	*dispatch = layer;
	gpu_wait_for_session(held);
	return OCL_SUCCESS;
}
