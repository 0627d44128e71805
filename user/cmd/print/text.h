/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints text for people: names that can not harm a terminal, numbers with units, tables. */
#ifndef KPROF_CMD_PRINT_TEXT_H
#define KPROF_CMD_PRINT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_NUMBER_BYTES 32

/* Length in bytes of the valid UTF-8 character at text (NUL-terminated); 0: there is none. */
size_t text_utf8(const char *text);
/*
 * Replaces by '?' what may not go to a terminal: control characters, those that change the
 * direction of text, and what is no UTF-8.
 */
void text_defuse(char *text);
/* Writes text; what may harm a terminal, and invalid UTF-8, as \xNN. */
void text_print(FILE *to, const char *text);
/* The same into a new string; NULL: out of memory. */
char *text_printable(const char *text);
/* The part after the last slash; the whole path if nothing follows that. */
const char *text_base(const char *path);
/* For a first look whether texts are the same. */
uint64_t text_hash(const char *text);
/* Number of columns of a printable text: one for each character. */
size_t text_columns(const char *text);

/* "870ns", "12.345us", "1.234ms", "5.000s" */
const char *text_time(char buf[TEXT_NUMBER_BYTES], uint64_t ns);
/* "640 B", "64.0 MiB" */
const char *text_bytes(char buf[TEXT_NUMBER_BYTES], uint64_t bytes);

/* ---- tables ---- */

struct table_column {
	const char *title;
	bool right;  /* for numbers: aligned to the right */
	size_t most; /* width at most: longer texts are cut and end with "..."; 0: no limit */
};

struct table;

/* Makes a table. columns is kept, not copied. NULL: out of memory. */
struct table *table__new(const struct table_column *columns, size_t nr_columns);
/*
 * Adds a row with a text for each column, which is copied and made harmless to a terminal. False:
 * out of memory.
 */
bool table__add(struct table *t, const char *const *cells);
/* ruled: with lines around the title and at the end */
void table__print(const struct table *t, FILE *to, bool ruled);
void table__free(struct table *t);

#endif
