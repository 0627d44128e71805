// SPDX-License-Identifier: BSD-2-Clause
/*
 * HIP's calls, on the real library. Where there is no device each of them fails, and HIP itself
 * names the error.
 *
 * link: -lamdhip64
 * needs: hip/hip_runtime_api.h
 * packages: libamdhip64-5 libamdhip64-dev
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "runtime.h"

static const char *error_of(long result)
{
	static char text[128];

	if (!result)
		return NULL;
	snprintf(text, sizeof(text), "%s (%ld)", hipGetErrorName((hipError_t)result), result);
	return text;
}

/* The host's side of a kernel, as hipcc leaves it in a program. */
__attribute__((noinline)) void stub(void) __asm__("__device_stub__scale_kernel");
void stub(void)
{
	__asm__ volatile("");
}

static void calls(void)
{
	hipStream_t stream = (hipStream_t)0x5000;
	hipEvent_t event = (hipEvent_t)0x6000;
	const dim3 grid = {7, 2, 3}, block = {64, 4, 1};
	void *p = NULL, *args[] = {&p};

	CALL(hipMalloc, (&p, 4096), "\"bytes\": 4096");
	CALL(hipHostMalloc, (&p, 12345, 0), "\"bytes\": 12345");
	CALL(hipMemcpy, (&p, args, 8, hipMemcpyDeviceToHost), "\"bytes\": 8, \"kind\": \"DtoH\"");
	CALL(hipMemcpyAsync, (&p, args, 16, hipMemcpyHostToDevice, stream),
	     "\"bytes\": 16, \"kind\": \"HtoD\", \"stream handle\": \"0x5000\"");
	CALL(hipMemsetAsync, (&p, 0, 8, stream), "\"bytes\": 8, \"stream handle\": \"0x5000\"");
	CALL(hipLaunchKernel, ((const void *)stub, grid, block, args, 512, stream),
	     "\"kernel\": \"scale_kernel\", \"grid\": [7, 2, 3], \"block\": [64, 4, 1], "
	     "\"shared memory\": 512, \"stream handle\": \"0x5000\"");
	CALL(hipModuleLaunchKernel, (NULL, 9, 8, 7, 6, 5, 4, 1024, stream, args, NULL),
	     "\"grid\": [9, 8, 7], \"block\": [6, 5, 4], \"shared memory\": 1024");
	CALL(hipEventRecord, (event, stream), "\"stream handle\": \"0x5000\"");
	CALL(hipStreamSynchronize, (stream), "\"stream handle\": \"0x5000\"");
	CALL(hipDeviceSynchronize, (), " ");
	CALL(hipFree, (&p), "\"address\": \"%p\"", (void *)&p);
}
