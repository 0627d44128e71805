/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the records of a capture consist of, as one table: a row for each kind of record, with its
 * fields in the order in which the file has them. Encoding and decoding (rows.c), acceptance
 * (rows.c, ids.c), new numbers in a copy (renumber.c) and the tables in docs/capture-format.md
 * follow from it.
 */
#ifndef KPROF_STORE_RECORDS_H
#define KPROF_STORE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "store/store.h"

/* Size of the table: enum store_type is below this. */
#define RECORD_KINDS_MAX 32
/*
 * The most fields that one record has. Raising it makes chunks smaller, but does not change the
 * format.
 */
#define RECORD_FIELDS_MAX 15
/*
 * How many earlier values are kept per kind of record; a field may be stored as the difference from
 * one of them, its cursor.
 */
#define RECORD_CURSORS 3

enum field_coding {
	FIELD_END,        /* no more fields */
	FIELD_PLAIN,      /* the number itself */
	FIELD_SIGNED,     /* zigzag */
	FIELD_SINCE_LAST, /* zigzag of the difference from the kind's cursor */
	FIELD_SINCE_PREV, /* zigzag of the difference from the field before this one */
	/*
	 * the field before minus this one, as zigzag + 1; 0 means that this field is 0, not known
	 */
	FIELD_UNTIL_PREV,
	FIELD_NUMBERS = FIELD_UNTIL_PREV, /* the codings up to here are one varint each */
	FIELD_TEXT,                       /* bytes and a NUL: a C string */
	FIELD_NAME,                       /* like FIELD_TEXT, but not empty */
	FIELD_BYTES,                      /* of a STRING: the rest of the record, without a NUL */
	FIELD_LINES, /* of a FRAME: as many struct store_line as the field before says */
};

/* Further limits of a field's value, beside enum store_ref of store.h. */
enum { RECORD_OF_TIME63 = STORE_REFS, RECORD_OF_TEXT, RECORD_LIMITS };

struct record_field {
	uint8_t offset, bytes; /* in struct store_record */
	uint8_t coding;        /* enum field_coding */
	uint8_t cursor;        /* which cursor takes this field's value: 1 or 2; 0: none */
	uint8_t of;            /* enum store_ref or RECORD_OF_…: what its value refers to */
	uint8_t defines;       /* enum store_ref: what kind of number it defines */
	uint8_t time;          /* bool: a time of the monotonic clock */
	const char *name;      /* name and note are for docs/capture-format.md */
	const char *note;
};

struct record_kind {
	const char *name;
	uint8_t chunk; /* enum store_chunk_type; 0: no such kind */
	uint8_t since; /* minor version of the format that added it */
	struct record_field fields[RECORD_FIELDS_MAX + 1];
	const char *note;
};

/*
 * Hidden visibility, because position-independent code would otherwise look up the tables'
 * addresses at each use.
 */
#define RECORD_TABLE extern __attribute__((visibility("hidden"))) const
RECORD_TABLE struct record_kind record_kinds[RECORD_KINDS_MAX];
/* The fields of each line of a FRAME. */
RECORD_TABLE struct record_field record_line_fields[];

struct attr_kind {
	uint8_t of; /* enum store_ref */
	const char *note;
};
/* by enum store_attr_type; 0 is unused */
RECORD_TABLE struct attr_kind record_attrs[STORE_ATTR_COUNT + 1];

/* NULL: a kind of record that a newer minor version has added. */
static inline const struct record_kind *record_kind_of(uint64_t type)
{
	return type < RECORD_KINDS_MAX && record_kinds[type].chunk ? &record_kinds[type] : NULL;
}

static inline bool record_attr_known(uint32_t type)
{
	return type >= STORE_ATTR_U64 && type <= STORE_ATTR_COUNT;
}

/* Reads the field's number from a record, or from a line of a FRAME. */
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

/* Stores the field's number. False: it does not fit into the field. */
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
