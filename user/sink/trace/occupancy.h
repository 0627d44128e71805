/* SPDX-License-Identifier: BSD-2-Clause */
/* What a capture says of a device ("device.PID.ORDINAL"), and what follows from it for a kernel. */
#ifndef KPROF_TRACE_OCCUPANCY_H
#define KPROF_TRACE_OCCUPANCY_H

#include <stdbool.h>

#include "model/timeline/timeline.h"

struct device_props { /* 0: not known */
	uint32_t compute_major, compute_minor;
	uint32_t multiprocessors, warp_size;
	uint32_t threads_per_multiprocessor, blocks_per_multiprocessor;
	uint32_t registers_per_multiprocessor;
	uint64_t shared_per_multiprocessor; /* bytes */
};

/* All zero where the capture says nothing. */
void device_props__read(const struct timeline *t, pid_t pid, uint32_t ordinal,
			struct device_props *out);

struct launch_shape {
	uint64_t blocks;       /* of the grid */
	uint32_t threads;      /* of a block */
	uint32_t registers;    /* per thread */
	uint64_t shared_bytes; /* per block, static and dynamic */
};

/* Per multiprocessor, as if the grid were spread evenly; in millionths. */
struct occupancy {
	uint64_t blocks_millionths, warps_millionths;
	uint32_t percent; /* of the threads that a multiprocessor can hold */
};

/* False: the device is not known well enough. */
bool device_occupancy(const struct device_props *p, const struct launch_shape *shape,
		      struct occupancy *out);

#endif
