/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks of tables and of details, both directions: rows of numbers, as the table of records says.
 * In details most are the difference from the row before of the same kind, and attributes follow
 * them. Which keys a row's attributes have, and of which types, is written once in a chunk: kernels
 * all have the same ones. Each chunk stands alone.
 */
#ifndef KPROF_STORE_ROWS_H
#define KPROF_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/format.h"
#include "store/ids.h"
#include "store/records.h"

/* Lists of keys that a chunk remembers; part of the format. */
#define ROWS_MAX_LISTS 128
/*
 * The most that a row of details adds: type, length, ten numbers, the longest list and its values.
 */
#define ROWS_DETAIL_MAX_BYTES 2048

struct attr_list {
	uint32_t nr, hash;
	struct attr_key {
		uint32_t key, type;
	} at[STORE_MAX_ATTRS];
};

/* What of the rows before is remembered; the same in writer and reader. */
struct rows_state {
	uint64_t cursors[RECORD_KINDS_MAX][RECORD_CURSORS];
	uint32_t nr_lists;
	struct attr_list lists[ROWS_MAX_LISTS];
};

struct rows_out {
	struct rows_state state;
	uint8_t slots[2 * ROWS_MAX_LISTS]; /* by hash: index of a list + 1 */
	uint8_t *bytes;
	size_t nr_bytes, cap;
	uint32_t records, samples;
};

void rows_out__free(struct rows_out *o);
/* After the chunk was written. */
void rows_out__reset(struct rows_out *o);
/* Room for so many bytes in all. -ENOMEM. */
int rows_out__reserve(struct rows_out *o, size_t bytes);
/*
 * False: it refers to something undefined, or is out of order; nothing has changed. What it defines
 * is counted. There is room for rows__max_bytes(), or for ROWS_DETAIL_MAX_BYTES.
 */
bool rows_out__put(struct rows_out *o, struct store_ids *ids, const struct store_record *r);
/* The most that a record takes, without attributes. */
size_t rows__max_bytes(const struct store_record *r);

struct rows_in {
	struct rows_state state;
	struct store_attr attrs[STORE_MAX_ATTRS]; /* of the latest record */
	struct store_line lines[STORE_MAX_LINES];
	const uint8_t *at, *end;
	uint8_t chunk;    /* enum store_chunk_type */
	uint32_t records; /* so far, unknown ones included */
	uint32_t samples; /* among them */
};

void rows_in__start(struct rows_in *in, enum store_chunk_type chunk, const uint8_t *raw,
		    uint32_t raw_bytes);
/* 1: a record, checked, what it defines counted; 0: none left; -EBADMSG: malformed. */
int rows_in__next(struct rows_in *in, struct store_ids *ids, struct store_record *out);

/* attrs.c: the attributes at the end of a row of details. */
uint8_t *rows_out__put_attrs(struct rows_out *o, uint8_t *to, const struct store_record *r);
bool rows_in__get_attrs(struct rows_in *in, const uint8_t **at, const uint8_t *end,
			struct store_record *out);

#endif
