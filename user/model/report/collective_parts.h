/* SPDX-License-Identifier: BSD-2-Clause */
/* What single processes do for collectives, as a capture has it. */
#ifndef KPROF_MODEL_COLLECTIVE_PARTS_H
#define KPROF_MODEL_COLLECTIVE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/timeline/timeline.h"
#include "util/bulk.h"

struct collective_part {
	uint64_t number; /* of the collective in its group */
	uint64_t begin_ns, end_ns;
	/* the larger of what goes in and comes out */
	uint64_t bytes;
	uint32_t group, name; /* string ids */
	uint32_t size, rank;
	pid_t pid;
	uint32_t flags;
};
#define COLLECTIVE_BYTES_UNKNOWN UINT64_MAX
#define COLLECTIVE_BEGIN_UNKNOWN 1u /* it was before the recording */
#define COLLECTIVE_END_LATE 2u      /* at end_ns it was over: it may have been before */
#define COLLECTIVE_OPEN 4u          /* it was not over when the recording ended */

/*
 * Adds a struct collective_part for each to `parts`. `unmatched` counts those that do not say which
 * collective they belong to. -errno with the error set.
 */
int collective_parts__read(struct kprof_capture *t, struct bulk *parts, uint64_t *unmatched);
/* Does each rank need something of all others, so that none is done before all have begun? */
bool collective_part__of_all(const struct kprof_capture *t, const struct collective_part *p);

#endif
