/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * user/sink/trace/occupancy.c against the occupancy calculator in NVIDIA's own header: every
 * compute capability that the header knows, and kernels of many shapes. Compiled and run by
 * tests/device.bats, once with each release's header. Prints how much was compared.
 */
#include <cuda_occupancy.h>
#include <stdio.h>

#include "sink/trace/occupancy.h"

/* Of the published technical specifications. */
static const struct device {
	int major, minor, threads_sm;
	size_t shared_sm, shared_optin;
} devices[] = {
	{5, 0, 2048, 64 << 10, 48 << 10},    {5, 2, 2048, 96 << 10, 48 << 10},
	{6, 0, 2048, 64 << 10, 48 << 10},    {6, 1, 2048, 96 << 10, 48 << 10},
	{7, 0, 2048, 96 << 10, 96 << 10},    {7, 5, 1024, 64 << 10, 64 << 10},
	{8, 0, 2048, 164 << 10, 163 << 10},  {8, 6, 1536, 100 << 10, 99 << 10},
	{8, 7, 1536, 164 << 10, 163 << 10},  {8, 9, 1536, 100 << 10, 99 << 10},
	{9, 0, 2048, 228 << 10, 227 << 10},  {10, 0, 2048, 228 << 10, 227 << 10},
	{10, 1, 1536, 228 << 10, 227 << 10}, {10, 3, 2048, 228 << 10, 227 << 10},
	{11, 0, 1536, 228 << 10, 227 << 10}, {12, 0, 1536, 100 << 10, 99 << 10},
	{12, 1, 1536, 100 << 10, 99 << 10},
};
static const int threads[] = {1, 32, 33, 64, 96, 128, 160, 256, 384, 512, 672, 1024};
static const size_t shared[] = {0,     1,        100,   1024,     3000,   8192,      16384,
				30000, 48 << 10, 60000, 96 << 10, 150000, 163 << 10, 227 << 10};

/* The properties' text, as the agent's record becomes one. */
static char properties[512];

const char *kprof_capture_meta(const struct kprof_capture *t, const char *key)
{
	return properties;
}

static cudaOccError nvidia(const struct device *d, int block, int registers, size_t shared_bytes,
			   cudaOccResult *out)
{
	const cudaOccDeviceProp device = {
		.computeMajor = d->major,
		.computeMinor = d->minor,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = d->threads_sm,
		.regsPerBlock = 65536,
		.regsPerMultiprocessor = 65536,
		.warpSize = 32,
		.sharedMemPerBlock = 48 << 10,
		.sharedMemPerMultiprocessor = d->shared_sm,
		.numSms = 100,
		.sharedMemPerBlockOptin = d->shared_optin,
		.reservedSharedMemPerBlock = d->major >= 8 ? 1024 : 0,
	};
	const cudaOccFuncAttributes kernel = {
		.maxThreadsPerBlock = INT_MAX,
		.numRegs = registers,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = shared_bytes,
	};
	const cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};

	memset(out, 0, sizeof(*out));
	return cudaOccMaxActiveBlocksPerMultiprocessor(out, &device, &kernel, &state, block,
						       shared_bytes);
}

/* Appends what Kineto makes of the calculator's answer; a limit that there is not is left out. */
static int put(char *text, size_t at, const char *key, long value)
{
	return value == INT_MAX ? 0 : sprintf(text + at, ",\"%s\":%ld", key, value);
}

static void expected(const cudaOccResult *r, char *text)
{
	const char *const names[] = {"WARPS", "REGS", "SMEM", "BLOCKS"};
	size_t at = (size_t)sprintf(text, "{\"activeBlocksPerMultiprocessor\":%d,",
				    r->activeBlocksPerMultiprocessor);
	const char *before = "";

	at += (size_t)sprintf(text + at, "\"limitingFactors\":\"");
	for (int i = 0; i < 4; i++) {
		if (!(r->limitingFactors & 1u << i))
			continue;
		at += (size_t)sprintf(text + at, "%s%s", before, names[i]);
		before = "|";
	}
	at += (size_t)sprintf(text + at, "\"");
	at += (size_t)put(text, at, "blockLimitRegs", r->blockLimitRegs);
	at += (size_t)put(text, at, "blockLimitSharedMem", r->blockLimitSharedMem);
	at += (size_t)put(text, at, "blockLimitWarps", r->blockLimitWarps);
	at += (size_t)put(text, at, "blockLimitBlocks", r->blockLimitBlocks);
	at += (size_t)put(text, at, "allocatedRegistersPerBlock", r->allocatedRegistersPerBlock);
	at += (size_t)put(text, at, "allocatedSharedMemPerBlock",
			  (long)r->allocatedSharedMemPerBlock);
	sprintf(text + at, "}");
}

static long compared, differ;

static void compare(const struct device *d, const struct device_props *p, int block, int registers,
		    size_t shared_bytes)
{
	const struct launch_shape shape = {.blocks = 1,
					   .threads = (uint32_t)block,
					   .registers = (uint32_t)registers,
					   .shared_bytes = shared_bytes};
	char ours[OCCUPANCY_JSON_BYTES], theirs[1024];
	cudaOccResult result;
	struct occupancy o;

	/* A shape that cannot run is in no capture. */
	if (nvidia(d, block, registers, shared_bytes, &result) != CUDA_OCC_SUCCESS ||
	    !result.activeBlocksPerMultiprocessor)
		return;
	compared++;
	expected(&result, theirs);
	if (device_occupancy(p, &shape, &o) && o.is_whole &&
	    !strcmp(occupancy__json(&o, ours), theirs))
		return;
	if (differ++ < 10)
		printf("%d.%d, %d threads, %d registers, %zu bytes:\n  %s\n  %s\n", d->major,
		       d->minor, block, registers, shared_bytes, o.is_whole ? ours : "", theirs);
}

int main(void)
{
	struct device_props p;
	int known = 0;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		const struct device *d = &devices[i];
		long before = compared;

		snprintf(properties, sizeof(properties),
			 "{\"computeMajor\":%d,\"computeMinor\":%d,\"numSms\":100,\"warpSize\":32,"
			 "\"maxThreadsPerMultiprocessor\":%d,\"regsPerMultiprocessor\":65536,"
			 "\"sharedMemPerMultiprocessor\":%zu}",
			 d->major, d->minor, d->threads_sm, d->shared_sm);
		device_props__read(NULL, 1, 0, &p);
		for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++)
			for (size_t s = 0; s < sizeof(shared) / sizeof(shared[0]); s++)
				for (int registers = 1; registers <= 255; registers++)
					compare(d, &p, threads[t], registers, shared[s]);
		known += compared > before;
	}
	printf("%d devices, %ld kernels, %ld differ\n", known, compared, differ);
	return differ || known < 8;
}
