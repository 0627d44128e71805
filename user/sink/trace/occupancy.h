/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties of a device from a capture's metadata ("device.PID.ORDINAL"), and the occupancy of a
 * kernel that follows from them.
 */
#ifndef KPROF_TRACE_OCCUPANCY_H
#define KPROF_TRACE_OCCUPANCY_H

#include <stdbool.h>

#include "model/timeline/timeline.h"

struct device_props { /* 0: unknown */
	uint32_t compute_major, compute_minor;
	uint32_t multiprocessors, warp_size;
	uint32_t threads_per_multiprocessor, blocks_per_multiprocessor;
	uint32_t registers_per_multiprocessor;
	uint64_t shared_per_multiprocessor; /* bytes */
};

/* Reads a device's properties; all zero if the capture has none. */
void device_props__read(const struct kprof_capture *t, pid_t pid, uint32_t ordinal,
			struct device_props *out);

struct launch_shape {
	uint64_t blocks;       /* blocks of the grid */
	uint32_t threads;      /* threads of a block */
	uint32_t registers;    /* per thread */
	uint64_t shared_bytes; /* per block, static and dynamic */
};

/* What a multiprocessor can run out of, in the order in which traces name it. */
enum occupancy_limit {
	OCCUPANCY_WARPS,
	OCCUPANCY_REGISTERS,
	OCCUPANCY_SHARED_MEMORY,
	OCCUPANCY_BLOCKS,
	OCCUPANCY_LIMITS,
};

/* Per multiprocessor, as if the grid were spread evenly over them; in millionths. */
struct occupancy {
	uint64_t blocks_millionths, warps_millionths;
	uint32_t percent; /* resident threads, as a percentage of what a multiprocessor can hold */
	/* How many blocks of the kernel there would be room for; UINT64_MAX: any number. */
	uint64_t limit[OCCUPANCY_LIMITS];
	uint64_t active_blocks; /* the least of them */
	/* What a block gets, in the units in which it is handed out. */
	uint64_t allocated_registers, allocated_shared_bytes;
	bool is_whole; /* nothing that the limits follow from was unknown */
};

/* Computes the occupancy. False: the device's properties are not known well enough. */
bool device_occupancy(const struct device_props *p, const struct launch_shape *shape,
		      struct occupancy *out);
/* The limits as a JSON object, with the names of Kineto. Returns `text`. */
#define OCCUPANCY_JSON_BYTES 384
const char *occupancy__json(const struct occupancy *o, char text[OCCUPANCY_JSON_BYTES]);

#endif
