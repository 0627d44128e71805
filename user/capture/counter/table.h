/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters by name, as perf names them. */
#ifndef KPROF_CAPTURE_COUNTER_TABLE_H
#define KPROF_CAPTURE_COUNTER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTER_NAME_BYTES 64

struct counter {
	char name[COUNTER_NAME_BYTES]; /* as it was asked for */
	uint8_t source;                /* enum kprof_wire_counter */
	/* of an event of perf (perf_event_open(2)): */
	uint32_t type;
	uint64_t config;
	bool exclude_user, exclude_kernel;
};

/* The i-th counter that has a name; false past the end. */
bool counter_at(size_t i, struct counter *out, const char **what);
/*
 * Fills in the counters of a list of names, with their modifiers: "cycles:u,page-faults,r01c2".
 * Returns how many, at most KPROF_WIRE_MAX_COUNTERS, or -EINVAL with the error set.
 */
int counters_parse(const char *names, struct counter *out);

/* ---- events.c ---- */

/* Opens the event on a CPU. Returns its descriptor, or -errno; -ENOSPC: there is no room for it. */
int counter_open(const struct counter *c, int cpu);
/* Tries the counter on the CPU that this runs on. 0 or -errno. */
int counter_try(const struct counter *c);

#endif
