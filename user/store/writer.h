/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the writer: sheet.c writes chunks to a file, lasting.c has those that the next file
 * begins with, too, writer.c takes records; rotate.c goes on in another file.
 */
#ifndef KPROF_STORE_WRITER_H
#define KPROF_STORE_WRITER_H

#include <zstd.h>

#include "store/columns.h"
#include "store/format.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/strings.h"
#include "util/map64.h"
#include "util/outfile.h"
#include "util/util.h"

/* A chunk of tables that the next file begins with, too. */
struct kept_chunk {
	uint64_t at; /* offset of its head in the file */
	uint32_t stored_bytes, raw_bytes, records;
	uint32_t codec;
};

/* A file that is being written. */
struct sheet {
	char *path;
	struct outfile *file;
	uint64_t whole; /* file offset after the last whole chunk */
	uint32_t seq;
	int err;         /* why a chunk could not be written, after which nothing is; 0 */
	struct vec kept; /* struct kept_chunk */
	uint64_t kept_bytes;
};

struct store_writer {
	struct sheet now;
	struct store_ids ids;
	struct strings strings;
	struct columns events;
	struct rows_out tables, details;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* a chunk's head and payload, for one write */
	size_t out_cap;
	/* For going on in another file: */
	bool rotates;          /* store_writer__may_rotate() */
	bool closing;          /* what is put is about the window that ends */
	struct rows_out notes; /* with it: tables that are about the window alone */
	struct sheet next;     /* .file NULL: none is open */
	struct rows_out rest;  /* tables that `next` does not have yet, in front of `tables` */
	/* spans of the files before; of those, the ones that go on in this one → their number */
	uint64_t span_base;
	struct map64 continued;
	uint64_t unstored;  /* records that were not stored, because of an error */
	uint64_t late_args; /* attributes of spans that have ended in a file before */
};

int store_no_memory(const struct store_writer *w);

/* ---- sheet.c ---- */

int sheet__open(struct sheet *to, const char *path, const struct outfile_opts *owner);
/* Not its file, which the caller has kept or discarded. */
void sheet__free(struct sheet *to);

struct chunk_part {
	const uint8_t *bytes;
	size_t nr;
};
/* lasting: the next file begins with it, too. */
int sheet__write(struct store_writer *w, struct sheet *to, struct store_chunk_head *h,
		 const struct chunk_part *parts, int nr_parts, bool lasting);
/* Appends the chunk whose payload is in w->out, behind the room for its head. */
int store_writer_append(struct store_writer *w, struct sheet *to, struct store_chunk_head *h,
			bool lasting);
int store_writer_rows(struct store_writer *w, struct sheet *to, const struct rows_out *rows,
		      enum store_chunk_type type, bool lasting);

/* ---- lasting.c ---- */

/* Is the record one that the next file begins with, too? */
bool store_writer_lasts(const struct store_writer *w, const struct store_record *r);
/* Writes the tables that last. */
int store_writer_tables(struct store_writer *w);
/* Writes these rows; those that cannot be written stay. */
int store_write_lasting(struct store_writer *w, struct sheet *to, struct rows_out *rows);
/* -ENOMEM or 0 */
int store_add_rows(struct rows_out *to, const uint8_t *bytes, size_t nr_bytes, uint32_t records);
/* After an error: is it to be gone on without storing anything, until the next rotation? */
bool store_writer_goes_on(const struct store_writer *w);
/* A span's number in this file. False: it has ended in one before. */
bool store_writer_span_here(const struct store_writer *w, uint64_t *span);

/* ---- writer.c ---- */

/* Flushes, and writes the end. */
int store_writer_end(struct store_writer *w, uint64_t end_mono_ns);

#endif
