/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encodes and decodes chunks of tables and of details: rows of numbers, as the table of records
 * says. In details, most numbers are the difference from the previous row of the same kind, and
 * attributes follow the numbers. The list of a row's keys and their types is written once per
 * chunk, for all kernels have the same keys. Each chunk can be read without the others.
 */
#ifndef KPROF_STORE_ROWS_H
#define KPROF_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/format.h"
#include "store/ids.h"
#include "store/records.h"

/* How many lists of keys are remembered in a chunk; a part of the format. */
#define ROWS_MAX_LISTS 128
/*
 * The most bytes that a row of details takes: type, length, ten numbers, the longest list of keys
 * and its values.
 */
#define ROWS_DETAIL_MAX_BYTES 2048

struct attr_list {
	uint32_t nr, hash;
	struct attr_key {
		uint32_t key, type;
	} at[STORE_MAX_ATTRS];
};

/* What is remembered of the previous rows of a chunk; the same in the writer and in the reader. */
struct rows_state {
	uint64_t cursors[RECORD_KINDS_MAX][RECORD_CURSORS];
	uint32_t nr_lists;
	struct attr_list lists[ROWS_MAX_LISTS];
};

struct rows_out {
	struct rows_state state;
	uint8_t slots[2 * ROWS_MAX_LISTS]; /* hash table: index of a list + 1; 0: free */
	uint8_t *bytes;                    /* malloc'ed by the owner: store_reserve() */
	size_t nr_bytes, cap;
	uint32_t records, samples;
};

/* Empties the buffer after its chunk was written. */
void rows_out__reset(struct rows_out *o);
/*
 * Adds a record and counts what it defines. False: the record refers to something undefined, or is
 * out of order; nothing has changed. The caller has seen to room for rows__max_bytes() (tables) or
 * ROWS_DETAIL_MAX_BYTES (details).
 */
bool rows_out__put(struct rows_out *o, struct store_ids *ids, const struct store_record *r);
/* The most bytes that a record takes, without its attributes. */
size_t rows__max_bytes(const struct store_record *r);

struct rows_in {
	struct rows_state state;
	struct store_attr attrs[STORE_MAX_ATTRS]; /* of the latest record */
	struct store_line lines[STORE_MAX_LINES];
	const uint8_t *at, *end;
	uint8_t chunk;    /* enum store_chunk_type */
	uint32_t records; /* delivered so far, and those of unknown kinds */
	uint32_t samples; /* SAMPLE records among those */
};

void rows_in__start(struct rows_in *in, enum store_chunk_type chunk, const uint8_t *raw,
		    uint32_t raw_bytes);
/*
 * 1: a record, which was checked and whose definitions were counted; 0: none left; -EBADMSG:
 * malformed.
 */
int rows_in__next(struct rows_in *in, struct store_ids *ids, struct store_record *out);

/* attrs.c: the attributes at the end of a row of details. */
uint8_t *rows_out__put_attrs(struct rows_out *o, uint8_t *to, const struct store_record *r);
bool rows_in__get_attrs(struct rows_in *in, const uint8_t **at, const uint8_t *end,
			struct store_record *out);

#endif
