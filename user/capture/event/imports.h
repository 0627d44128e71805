/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to look whether a process's interpreter has begun, or has imported something: soon after it
 * has mapped a library, then less and less often.
 */
#ifndef KPROF_CAPTURE_IMPORTS_H
#define KPROF_CAPTURE_IMPORTS_H

#include "capture/target/target.h"
#include "util/util.h"

#define IMPORTS_FIRST_WAIT_NS (20 * NSEC_PER_MSEC)
#define IMPORTS_LAST_WAIT_NS (2 * NSEC_PER_SEC)

struct imports { /* of one process; zeroed at first */
	uint64_t next_ns, wait_ns;
	uint64_t maps_ns; /* of the mappings when it was last looked at */
};

/* Is it time to look? Then the next time is later. */
static inline bool imports__due(struct imports *i, const struct target *t, uint64_t now_ns)
{
	if (i->maps_ns != t->maps_ns) { /* it imports something */
		i->maps_ns = t->maps_ns;
		i->wait_ns = IMPORTS_FIRST_WAIT_NS;
		if (i->next_ns > now_ns + IMPORTS_FIRST_WAIT_NS)
			i->next_ns = now_ns + IMPORTS_FIRST_WAIT_NS;
	}
	if (now_ns < i->next_ns)
		return false;
	i->next_ns = now_ns + i->wait_ns;
	if (i->wait_ns < IMPORTS_LAST_WAIT_NS)
		i->wait_ns += i->wait_ns / 4;
	return true;
}

#endif
