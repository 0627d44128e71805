// SPDX-License-Identifier: BSD-2-Clause
#include "sink/trace/occupancy.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#include "util/util.h"

#define MILLION 1000000ull

static uint64_t number(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble < 0x1p53))
		return 0;
	return (uint64_t)item->valuedouble;
}

static uint32_t small(const cJSON *o, const char *key)
{
	uint64_t v = number(o, key);

	return v > INT32_MAX ? 0 : (uint32_t)v;
}

/*
 * "Maximum number of resident blocks per SM", CUDA C++ Programming Guide, technical specifications.
 */
static uint32_t resident_blocks(uint32_t major, uint32_t minor)
{
	static const struct {
		uint32_t major, minor, blocks;
	} table[] = {
		{3, 0, 16}, {5, 0, 32}, {7, 0, 32}, {7, 5, 16},  {8, 0, 32},
		{8, 6, 16}, {8, 9, 24}, {9, 0, 32}, {12, 0, 24},
	};
	uint32_t blocks = 32;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (major > table[i].major || (major == table[i].major && minor >= table[i].minor))
			blocks = table[i].blocks;
	return blocks;
}

void device_props__read(const struct kprof_capture *t, pid_t pid, uint32_t ordinal,
			struct device_props *out)
{
	char key[48];
	const char *json;
	cJSON *o;

	*out = (struct device_props){0};
	snprintf(key, sizeof(key), "device.%u.%u", (unsigned int)pid, ordinal);
	json = kprof_capture_meta(t, key);
	o = json ? cJSON_Parse(json) : NULL;
	if (!o)
		return;
	out->compute_major = small(o, "computeMajor");
	out->compute_minor = small(o, "computeMinor");
	out->multiprocessors = small(o, "numSms");
	out->warp_size = small(o, "warpSize");
	out->threads_per_multiprocessor = small(o, "maxThreadsPerMultiprocessor");
	out->blocks_per_multiprocessor = small(o, "maxBlocksPerMultiprocessor");
	out->registers_per_multiprocessor = small(o, "regsPerMultiprocessor");
	out->shared_per_multiprocessor = number(o, "sharedMemPerMultiprocessor");
	if (!out->blocks_per_multiprocessor)
		out->blocks_per_multiprocessor =
			resident_blocks(out->compute_major, out->compute_minor);
	cJSON_Delete(o);
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static void limit(uint64_t *blocks, uint64_t most)
{
	if (most < *blocks)
		*blocks = most;
}

/*
 * How many blocks one multiprocessor holds at once. The limit is the scarcest of: threads; block
 * slots; registers, which a warp gets in units of 256 from the quarter of the multiprocessor that
 * runs it; shared memory, in units of 128 bytes, of which the system takes 1 KiB for each block
 * from compute capability 8 on. The rules are those of NVIDIA's cuda_occupancy.h, without its limit
 * for kernels that did not ask for more than 48 KiB: kernels in a capture did run.
 */
static uint64_t active_blocks(const struct device_props *p, const struct launch_shape *s)
{
	uint64_t warps = round_up(s->threads, p->warp_size) / p->warp_size;
	uint64_t blocks = p->threads_per_multiprocessor / p->warp_size / warps;
	uint64_t shared = s->shared_bytes + (p->compute_major >= 8 ? 1024 : 0);

	limit(&blocks, p->blocks_per_multiprocessor);
	if (s->registers && p->registers_per_multiprocessor) {
		uint64_t of_warp = round_up((uint64_t)s->registers * p->warp_size, 256);

		limit(&blocks, p->registers_per_multiprocessor / 4 / of_warp * 4 / warps);
	}
	shared = round_up(shared, p->compute_major >= 7 ? 128 : 256);
	if (shared && p->shared_per_multiprocessor)
		limit(&blocks, p->shared_per_multiprocessor / shared);
	return blocks;
}

bool device_occupancy(const struct device_props *p, const struct launch_shape *s,
		      struct occupancy *out)
{
	uint64_t blocks, percent;
	unsigned __int128 even;

	if (!p->multiprocessors || !p->warp_size || !p->threads_per_multiprocessor || !s->threads ||
	    !s->blocks || s->threads > 1 << 20 || s->shared_bytes > 1ull << 40)
		return false;
	even = (unsigned __int128)s->blocks * MILLION / p->multiprocessors;
	if (even > UINT64_MAX / s->threads)
		return false;
	out->blocks_millionths = (uint64_t)even;
	out->warps_millionths = (uint64_t)((unsigned __int128)s->blocks * s->threads * MILLION /
					   p->multiprocessors / p->warp_size);
	blocks = active_blocks(p, s) * MILLION;
	limit(&blocks, (uint64_t)even);
	percent =
		(blocks * s->threads * 100 / p->threads_per_multiprocessor + MILLION / 2) / MILLION;
	out->percent = percent > 100 ? 100 : (uint32_t)percent;
	return true;
}
