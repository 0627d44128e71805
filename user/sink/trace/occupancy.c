// SPDX-License-Identifier: BSD-2-Clause
#include "sink/trace/occupancy.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>

#include "util/util.h"

#define MILLION 1000000ull

static unsigned __int128 rounded(unsigned __int128 of, unsigned __int128 by)
{
	return (of + by / 2) / by;
}

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
		{3, 0, 16},  {5, 0, 32},  {7, 0, 32},  {7, 5, 16},  {8, 0, 32},
		{8, 6, 16},  {8, 9, 24},  {9, 0, 32},  {10, 1, 24}, {10, 2, 32},
		{11, 0, 24}, {11, 1, 32}, {12, 0, 24},
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

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

/*
 * How many blocks one multiprocessor holds at once. The limit is the scarcest of: threads; block
 * slots; registers, which a warp gets in units of 256 from the part of the multiprocessor that runs
 * it; shared memory, in units of 128 or 256 bytes, of which the system takes 1 KiB for each block
 * from compute capability 8 on. tests/lib/cuda_occupancy.c holds it against NVIDIA's
 * cuda_occupancy.h. Of that it is without the limit for kernels that did not ask for more than
 * 48 KiB, as kernels in a capture did run, and without barriers, which no record tells.
 */
static void find_limits(const struct device_props *p, const struct launch_shape *s,
			struct occupancy *o)
{
	uint64_t warps = round_up(s->threads, p->warp_size) / p->warp_size;
	uint64_t of_warp = round_up((uint64_t)s->registers * p->warp_size, 256);
	uint64_t shared = s->shared_bytes + (p->compute_major >= 8 ? 1024 : 0);
	uint64_t parts = p->compute_major == 6 && !p->compute_minor ? 2 : 4;

	for (int i = 0; i < OCCUPANCY_LIMITS; i++)
		o->limit[i] = UINT64_MAX;
	o->limit[OCCUPANCY_WARPS] = p->threads_per_multiprocessor / p->warp_size / warps;
	o->limit[OCCUPANCY_BLOCKS] = p->blocks_per_multiprocessor;
	if (s->registers && p->registers_per_multiprocessor)
		o->limit[OCCUPANCY_REGISTERS] =
			p->registers_per_multiprocessor / parts / of_warp * parts / warps;
	o->allocated_registers = of_warp * warps;
	o->allocated_shared_bytes = round_up(shared, p->compute_major >= 8 ? 128 : 256);
	if (o->allocated_shared_bytes && p->shared_per_multiprocessor)
		o->limit[OCCUPANCY_SHARED_MEMORY] =
			p->shared_per_multiprocessor / o->allocated_shared_bytes;
	o->active_blocks = UINT64_MAX;
	for (int i = 0; i < OCCUPANCY_LIMITS; i++)
		o->active_blocks = least(o->active_blocks, o->limit[i]);
	o->is_whole = p->compute_major && p->registers_per_multiprocessor &&
		      p->shared_per_multiprocessor && s->registers;
}

bool device_occupancy(const struct device_props *p, const struct launch_shape *s,
		      struct occupancy *out)
{
	uint64_t blocks, percent;
	unsigned __int128 even;

	if (!p->multiprocessors || !p->warp_size || !p->threads_per_multiprocessor || !s->threads ||
	    !s->blocks || s->threads > 1 << 20 || s->shared_bytes > 1ull << 40)
		return false;
	even = rounded((unsigned __int128)s->blocks * MILLION, p->multiprocessors);
	if (even > UINT64_MAX / s->threads)
		return false;
	out->blocks_millionths = (uint64_t)even;
	out->warps_millionths =
		(uint64_t)rounded((unsigned __int128)s->blocks * s->threads * MILLION,
				  (unsigned __int128)p->multiprocessors * p->warp_size);
	find_limits(p, s, out);
	blocks = least(out->active_blocks * MILLION, (uint64_t)even);
	percent =
		(blocks * s->threads * 100 / p->threads_per_multiprocessor + MILLION / 2) / MILLION;
	out->percent = percent > 100 ? 100 : (uint32_t)percent;
	return true;
}

/* "WARPS|REGS": all that are as scarce as the scarcest. */
static void name_scarcest(const struct occupancy *o, char *text, size_t bytes)
{
	static const char *const names[OCCUPANCY_LIMITS] = {"WARPS", "REGS", "SMEM", "BLOCKS"};
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < OCCUPANCY_LIMITS; i++)
		if (o->limit[i] == o->active_blocks)
			at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? "|" : "",
					       names[i]);
}

const char *occupancy__json(const struct occupancy *o, char text[OCCUPANCY_JSON_BYTES])
{
	static const struct {
		enum occupancy_limit limit;
		const char *key;
	} limits[] = {
		{OCCUPANCY_REGISTERS, "blockLimitRegs"},
		{OCCUPANCY_SHARED_MEMORY, "blockLimitSharedMem"},
		{OCCUPANCY_WARPS, "blockLimitWarps"},
		{OCCUPANCY_BLOCKS, "blockLimitBlocks"},
	};
	char scarcest[32];
	int at;

	name_scarcest(o, scarcest, sizeof(scarcest));
	at = snprintf(text, OCCUPANCY_JSON_BYTES,
		      "{\"activeBlocksPerMultiprocessor\":%" PRIu64 ",\"limitingFactors\":\"%s\"",
		      o->active_blocks, scarcest);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (o->limit[limits[i].limit] != UINT64_MAX)
			at += snprintf(text + at, OCCUPANCY_JSON_BYTES - (size_t)at,
				       ",\"%s\":%" PRIu64, limits[i].key,
				       o->limit[limits[i].limit]);
	snprintf(text + at, OCCUPANCY_JSON_BYTES - (size_t)at,
		 ",\"allocatedRegistersPerBlock\":%" PRIu64
		 ",\"allocatedSharedMemPerBlock\":%" PRIu64 "}",
		 o->allocated_registers, o->allocated_shared_bytes);
	return text;
}
