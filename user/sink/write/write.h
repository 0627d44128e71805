/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the output of a format is written: a buffered writer of JSON and other text (jsonw.c), names
 * of arbitrary bytes in formats that do not allow all bytes (text.c), and the file, compressed or
 * not (stream.c).
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
/* Passes the buffered bytes on. Returns the first error of all writes so far. */
int jsonw__flush(struct jsonw *w);
void jsonw__fini(struct jsonw *w);

/*
 * Returns room for `bytes` contiguous bytes (at most JSONW_BUFFER_BYTES); the caller advances
 * w->pos itself.
 */
static inline char *jsonw__reserve(struct jsonw *w, size_t bytes)
{
	if ((size_t)(w->end - w->pos) < bytes)
		jsonw__flush(w);
	return w->pos;
}

void jsonw__raw(struct jsonw *w, const char *data, size_t bytes);
void jsonw__text(struct jsonw *w, const char *text); /* NUL-terminated text, written as it is */
/* A quoted string of arbitrary bytes: see jsonw_quote(). NULL is written as "". */
void jsonw__string(struct jsonw *w, const char *text);
void jsonw__u64(struct jsonw *w, uint64_t v);
void jsonw__i64(struct jsonw *w, int64_t v);
void jsonw__us(struct jsonw *w, int64_t ns); /* as jsonw_put_us() */
/* A text as it is, such as `,"pid":`, and the value after it. */
void jsonw__text_u64(struct jsonw *w, const char *text, uint64_t v);
void jsonw__text_i64(struct jsonw *w, const char *text, int64_t v);
void jsonw__text_us(struct jsonw *w, const char *text, int64_t ns);
void jsonw__text_string(struct jsonw *w, const char *text, const char *value);
/* A JSON text of unknown origin: written as it is if valid, else quoted as a string. */
void jsonw__json(struct jsonw *w, const char *json);

/*
 * A malloc'ed JSON string with its quotes, made of arbitrary bytes. Valid UTF-8 is kept; quotes,
 * backslashes and control characters are escaped; a byte that is not valid UTF-8 becomes the four
 * characters \xNN, so that it can still be read. NULL: out of memory.
 */
char *jsonw_quote(const char *bytes, size_t len, size_t *out_len);

/*
 * Write a number at p, which has room for JSONW_INT_BYTES or JSONW_US_BYTES, and return the end. No
 * final NUL. Microseconds have three decimals, and a fourth, 2, where a reader that computes with
 * doubles would otherwise lose a nanosecond: whether it cuts or rounds, it gets the right one.
 */
char *jsonw_put_u64(char *p, uint64_t v);
char *jsonw_put_us(char *p, int64_t ns);

/*
 * ---- text.c: names of any bytes, in texts that do not take any bytes ----------------------------
 *
 * A byte that is not UTF-8, a control character, and a mark that reverses the direction of the text
 * after it become \xNN, so that they can still be read.
 */

/* The most bytes that one character can become, including the final NUL. */
#define TEXT_CHAR_BYTES 24

struct text_char {
	char text[TEXT_CHAR_BYTES];
	unsigned int bytes;   /* length of text */
	unsigned int columns; /* columns that it takes in a fixed-width font */
};

/* Converts the character at p; returns its length in the input, in bytes. left ≥ 1. */
size_t text_char(const char *p, size_t left, struct text_char *out);
void text_plain(struct jsonw *w, const char *bytes, size_t len);
/*
 * Writes a name as XML. Only its first `columns` columns are written (0: all); if some are dropped,
 * the last one is "…".
 */
void text_xml(struct jsonw *w, const char *name, unsigned int columns);
/* The converted name, malloc'ed and NUL-terminated; NULL: out of memory. */
char *text_copy(const char *name);

/* ---- stream.c: a file that appears whole (util/outfile.h), compressed on the way or not ---- */

struct outfile_opts stream_owner(const struct kprof_export_opts *opts);

/* Opens a file with a writer in front of it. On error there is nothing to close. */
int stream__start(const char *path, const struct kprof_export_opts *opts, bool gzip,
		  struct jsonw *w);
/*
 * Flushes and makes the file appear, or discards it if err is an earlier failure. Frees both.
 * Returns err, or else a new error.
 */
int stream__end(struct jsonw *w, int err);

#endif
