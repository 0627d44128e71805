// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/device_role.h"

#include "catalog/catalog.h"
#include "util/util.h"

/*
 * CUDA's, from its programming guide's chapters on streams and "API synchronization behavior". The first match counts.
 * A set returns before it is done, whatever its name; a copy without Async in its name does not, but for small ones to
 * the device.
 */
static const struct {
	const char *calls; /* globs */
	enum device_role role;
} roles[] = {
	{"cudaLaunchKernel* cudaLaunchCooperative* cuLaunchKernel* cuLaunchCooperative*",
	 DEVICE_ROLE_LAUNCH},
	{"cudaGraphLaunch cuGraphLaunch", DEVICE_ROLE_LAUNCH},
	{"cudaMemcpy*Async cuMemcpy*Async cudaMemPrefetchAsync cuMemPrefetchAsync",
	 DEVICE_ROLE_COPY},
	{"cudaMemcpy* cuMemcpy*", DEVICE_ROLE_COPY_AND_WAIT},
	{"cudaMemset* cuMemset*", DEVICE_ROLE_SET},
	{"cudaEventRecord* cuEventRecord*", DEVICE_ROLE_RECORD},
	{"cudaStreamSynchronize cuStreamSynchronize", DEVICE_ROLE_WAIT_STREAM},
	{"cudaEventSynchronize cuEventSynchronize", DEVICE_ROLE_WAIT_EVENT},
	{"cudaDeviceSynchronize cudaThreadSynchronize cuCtxSynchronize", DEVICE_ROLE_WAIT_DEVICE},
};

enum device_role device_role_of(const char *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (catalog_match(roles[i].calls, call))
			return roles[i].role;
	return DEVICE_ROLE_NONE;
}
