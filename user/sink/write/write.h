/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a format's bytes are made and where they go: a buffered writer of JSON and of other text
 * (jsonw.c), names of any bytes in texts that do not take any bytes (text.c), and the file,
 * compressed or not (stream.c).
 */
#ifndef KPROF_SINK_WRITE_H
#define KPROF_SINK_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof.h"
#include "util/outfile.h"

/*
 * ---- jsonw.c: JSON written fast: integers by hand, into a buffer, without a tree ----------------
 *
 * The writer keeps no state of objects and commas; its user writes those. An error of the flush
 * function sticks: what is written after it is dropped, and jsonw__flush() returns it.
 */

#define JSONW_BUFFER_BYTES (256 * 1024)
#define JSONW_INT_BYTES 20 /* the longest 64-bit integer, sign included */
#define JSONW_US_BYTES 24  /* the longest jsonw_put_us() */

struct jsonw {
	char *buf, *pos, *end;
	int (*write)(void *ctx, const void *data, size_t bytes);
	void *ctx;
	int err;
};

int jsonw__init(struct jsonw *w, int (*write)(void *ctx, const void *data, size_t bytes),
		void *ctx);
/* Hands on what is buffered; the first error of all writes so far. */
int jsonw__flush(struct jsonw *w);
void jsonw__fini(struct jsonw *w);

/* Room for bytes (at most JSONW_BUFFER_BYTES) in a row; the caller advances w->pos itself. */
static inline char *jsonw__reserve(struct jsonw *w, size_t bytes)
{
	if ((size_t)(w->end - w->pos) < bytes)
		jsonw__flush(w);
	return w->pos;
}

void jsonw__raw(struct jsonw *w, const char *data, size_t bytes);
void jsonw__text(struct jsonw *w, const char *text); /* raw, NUL-terminated */
/* A quoted string. Any bytes do: see jsonw_quote(). NULL is written as "". */
void jsonw__string(struct jsonw *w, const char *text);
void jsonw__u64(struct jsonw *w, uint64_t v);
void jsonw__i64(struct jsonw *w, int64_t v);
void jsonw__us(struct jsonw *w, int64_t ns); /* microseconds with three decimals */
/* A JSON text of unknown origin: as it is when it is valid, quoted as a string when it is not. */
void jsonw__json(struct jsonw *w, const char *json);

/*
 * A malloc'ed JSON string, quotes included, of any bytes. Valid UTF-8 stays; quotes, backslashes
 * and control characters are escaped; a byte that is no UTF-8 becomes the four characters \xNN, so
 * that it can still be read. NULL: no memory.
 */
char *jsonw_quote(const char *bytes, size_t len, size_t *out_len);

/* One whole JSON value and nothing else, as RFC 8259 has it, in UTF-8, nested 64 deep at most. */
bool jsonw_valid(const char *json);

/* Write at p, which has JSONW_INT_BYTES or JSONW_US_BYTES; the end is returned. No final NUL. */
char *jsonw_put_u64(char *p, uint64_t v);
char *jsonw_put_us(char *p, int64_t ns);

/*
 * ---- text.c: names of any bytes, in texts that do not take any bytes ----------------------------
 *
 * A byte that is not UTF-8, a control character, and a mark that reverses the direction of the text
 * after it become \xNN, so that they can still be read.
 */

/* The longest that one character becomes, the final NUL included. */
#define TEXT_CHAR_BYTES 24

struct text_char {
	char text[TEXT_CHAR_BYTES];
	unsigned int bytes;   /* of text */
	unsigned int columns; /* that it takes in type of one width */
};

/* The character at p as it is written; its length in the input. left ≥ 1. */
size_t text_char(const char *p, size_t left, struct text_char *out);
void text_plain(struct jsonw *w, const char *bytes, size_t len);
/*
 * The same as XML, of its first `columns` characters (0: all); one dropped becomes "…", which
 * counts too.
 */
void text_xml(struct jsonw *w, const char *name, unsigned int columns);
/* malloc'ed, NUL-terminated; NULL: no memory. */
char *text_copy(const char *name);

/* ---- stream.c: a file that appears whole (util/outfile.h), compressed on the way or not ---- */

struct outfile_opts stream_owner(const struct kprof_export_opts *opts);

struct stream;
int stream__open(const char *path, const struct kprof_export_opts *opts, bool gzip,
		 struct stream **out);
int stream__write(void *stream, const void *data, size_t bytes); /* void *: fits jsonw__init() */
/* Frees the stream whatever comes back; on error the file does not appear. */
int stream__commit(struct stream *s);
void stream__discard(struct stream *s); /* NULL is fine */
/* A stream with a writer in front of it. On error there is nothing to close. */
int stream__start(const char *path, const struct kprof_export_opts *opts, bool gzip,
		  struct stream **out, struct jsonw *w);
/*
 * Flushes and commits, or discards when err says that something failed before. Frees both; err or a
 * new one.
 */
int stream__end(struct stream *s, struct jsonw *w, int err);

#endif
