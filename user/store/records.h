/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the records of a capture consist of, as one table: a row a kind of record, with its fields
 * in the order of the file. Encoding and decoding (rows.c), acceptance (rows.c, ids.c), new numbers
 * in a copy (renumber.c) and the tables in docs/capture-format.md follow from it.
 */
#ifndef KPROF_STORE_RECORDS_H
#define KPROF_STORE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "store/store.h"

/* Room in the table: numbers of kinds are below. */
#define RECORD_KINDS_MAX 32
/* Of one record. More of them make more chunks, but not another format. */
#define RECORD_FIELDS_MAX 10
/* Values of earlier records of a kind that fields may be the difference from. */
#define RECORD_CURSORS 3

enum field_coding {
	FIELD_END,        /* no more fields */
	FIELD_PLAIN,      /* as it is */
	FIELD_SIGNED,     /* zigzag */
	FIELD_SINCE_LAST, /* zigzag of the difference from the cursor */
	FIELD_SINCE_PREV, /* zigzag of the difference from the field in front of it */
	FIELD_UNTIL_PREV, /* zigzag of how long before that field, + 1; 0 is 0: not known */
	FIELD_NUMBERS = FIELD_UNTIL_PREV, /* those up to here are a varint each */
	FIELD_TEXT,                       /* bytes and a NUL; a string in C */
	FIELD_NAME,                       /* the same, and not empty */
	FIELD_BYTES,                      /* of a STRING: the rest of the payload, without NUL */
	FIELD_LINES, /* of a FRAME: struct store_line, as many as the field in front of it says */
};

/* Beside what store.h lists, what a value may be limited to. */
enum { RECORD_OF_TIME63 = STORE_REFS, RECORD_OF_TEXT, RECORD_LIMITS };

struct record_field {
	uint8_t offset, bytes; /* in struct store_record */
	uint8_t coding;        /* enum field_coding */
	uint8_t cursor;        /* set to this field's value: 1 or 2; 0: none of them */
	uint8_t of;            /* enum store_ref: what it refers to */
	uint8_t defines;       /* enum store_ref: what it gives a number to */
	const char *name;      /* for docs/capture-format.md, like what follows */
	const char *note;
};

struct record_kind {
	const char *name;
	uint8_t chunk; /* enum store_chunk_type; 0: no such kind */
	uint8_t since; /* minor version of the format */
	struct record_field fields[RECORD_FIELDS_MAX + 1];
	const char *note;
};

/* Hidden: position-independent code would look up where they are each time. */
#define RECORD_TABLE extern __attribute__((visibility("hidden"))) const
RECORD_TABLE struct record_kind record_kinds[RECORD_KINDS_MAX];
/* Those of the lines that a FRAME has. */
RECORD_TABLE struct record_field record_line_fields[];

struct attr_kind {
	uint8_t of; /* enum store_ref */
	const char *note;
};
RECORD_TABLE struct attr_kind record_attrs[STORE_ATTR_STACK + 1]; /* by type; 0 is none */

/* NULL: a newer minor version's. */
static inline const struct record_kind *record_kind_of(uint64_t type)
{
	return type < RECORD_KINDS_MAX && record_kinds[type].chunk ? &record_kinds[type] : NULL;
}

static inline bool record_attr_known(uint32_t type)
{
	return type >= STORE_ATTR_U64 && type <= STORE_ATTR_STACK;
}

/* A number, from a record or from one of its lines. */
static inline uint64_t record_load(const void *record, const struct record_field *f)
{
	const uint8_t *at = (const uint8_t *)record + f->offset;
	uint64_t v64;
	uint32_t v32;

	if (f->bytes == sizeof(v32)) {
		memcpy(&v32, at, sizeof(v32));
		return v32;
	}
	memcpy(&v64, at, sizeof(v64));
	return v64;
}

static inline const char *record_text(const struct store_record *r, const struct record_field *f)
{
	const char *text;

	memcpy(&text, (const uint8_t *)r + f->offset, sizeof(text));
	return text;
}

/* False: it does not fit into the field. */
static inline bool record_save(void *record, const struct record_field *f, uint64_t v)
{
	uint8_t *to = (uint8_t *)record + f->offset;
	uint32_t v32 = (uint32_t)v;

	if (f->bytes == sizeof(v)) {
		memcpy(to, &v, sizeof(v));
		return true;
	}
	memcpy(to, &v32, sizeof(v32));
	return v == v32;
}

#endif
