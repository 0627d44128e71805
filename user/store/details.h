/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks of details, both directions: rows of numbers, most of them the difference from the row before of the same
 * type, then attributes. Which keys a row's attributes have, and of which types, is told once in a chunk: kernels all
 * have the same ones. Each chunk stands alone.
 */
#ifndef KPROF_STORE_DETAILS_H
#define KPROF_STORE_DETAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/format.h"

/* Lists of keys that a chunk remembers; part of the format. */
#define DETAILS_MAX_LISTS 128
/* The most that a record adds: type and length, ten numbers, the longest list and its values. */
#define DETAILS_RECORD_MAX_BYTES 2048

enum details_cursor {
	CURSOR_NONE,
	CURSOR_SPAN,
	CURSOR_ACTIVITY_NS,
	CURSOR_ACTIVITY_CORRELATION,
	CURSOR_API_NS,
	CURSOR_API_CORRELATION,
	CURSOR_INSTANT_NS,
	CURSOR_COUNTER_NS,
	CURSOR_SAMPLE_NS,
	CURSOR_SAMPLE_STACK,
	CURSORS,
};

struct details_list {
	uint32_t nr, hash;
	struct details_key {
		uint32_t key, type;
	} at[STORE_MAX_ATTRS];
};

/* What of the rows before is remembered; the same in writer and reader. */
struct details_state {
	uint64_t cursors[CURSORS];
	uint32_t nr_lists;
	struct details_list lists[DETAILS_MAX_LISTS];
};

struct details_out {
	struct details_state state;
	uint8_t slots[2 * DETAILS_MAX_LISTS]; /* by hash: index of a list + 1 */
	uint8_t *bytes;                       /* STORE_CHUNK_TARGET_BYTES long */
	uint32_t nr_bytes, records, samples;
};

int details_out__init(struct details_out *d);
void details_out__free(struct details_out *d);
/* After the chunk was written. */
void details_out__reset(struct details_out *d);
/* A record whose references were checked. There is room: !details_out__full(). */
void details_out__put(struct details_out *d, const struct store_record *r);

static inline bool details_out__full(const struct details_out *d)
{
	return d->nr_bytes > STORE_CHUNK_TARGET_BYTES - DETAILS_RECORD_MAX_BYTES;
}

struct details_in {
	struct details_state state;
	struct store_attr attrs[STORE_MAX_ATTRS]; /* of the latest record */
	const uint8_t *at, *end;
	uint32_t records; /* so far, unknown ones included */
	uint32_t samples; /* among them */
};

void details_in__start(struct details_in *d, const uint8_t *raw, uint32_t raw_bytes);
/* 1: a record, its references unchecked; 0: none left; -EBADMSG: malformed. */
int details_in__next(struct details_in *d, struct store_record *out);

#endif
