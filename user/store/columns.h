/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of the chunk that is being filled, as the columns that store/format.h describes. */
#ifndef KPROF_STORE_COLUMNS_H
#define KPROF_STORE_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/format.h"

/* The most bytes that one event adds to all columns: thread, step back, operation, time. */
#define COLUMNS_EVENT_MAX_BYTES 64

struct columns {
	uint8_t *control, *low, *high; /* buffers of STORE_CHUNK_TARGET_BYTES each */
	uint32_t control_bytes, low_bytes, high_bytes;
	uint64_t base_ns, time_ns, first_ns, last_ns;
	uint32_t thread;
	uint32_t records, begins;
};

int columns__init(struct columns *c);
void columns__free(struct columns *c);
/*
 * Empties the columns after their chunk was written. Time differences and the current thread start
 * anew.
 */
void columns__reset(struct columns *c);
/*
 * Adds a BEGIN or an END, whose references the caller has checked. Call it only while
 * columns__full() is false.
 */
void columns__put(struct columns *c, const struct store_record *r);

static inline uint32_t columns__raw_bytes(const struct columns *c)
{
	return STORE_EVENTS_HEAD_BYTES + c->control_bytes + c->low_bytes + c->high_bytes;
}

static inline bool columns__full(const struct columns *c)
{
	return columns__raw_bytes(c) > STORE_CHUNK_TARGET_BYTES - COLUMNS_EVENT_MAX_BYTES;
}

#endif
