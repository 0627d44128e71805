/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of any bytes, in texts that do not take any bytes. A byte that is no UTF-8, a control character, and what turns
 * around the direction of the text behind it, become \xNN, so that they can still be read.
 */
#ifndef KPROF_SINK_TEXT_H
#define KPROF_SINK_TEXT_H

#include "sink/jsonw.h"

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
/* The same as XML, of its first `columns` characters (0: all); one dropped becomes "…", which counts too. */
void text_xml(struct jsonw *w, const char *name, unsigned int columns);
/* malloc'ed, NUL-terminated; NULL: no memory. */
char *text_copy(const char *name);

#endif
