/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal. What is put on it cannot harm it, whatever bytes it has. */
#ifndef KPROF_CMD_TOP_SCREEN_H
#define KPROF_CMD_TOP_SCREEN_H

#include <stdbool.h>

enum screen_style {
	SCREEN_PLAIN,
	SCREEN_BOLD,
	SCREEN_TITLE,  /* of a table */
	SCREEN_CHOSEN, /* the row on which keys act */
	SCREEN_PYTHON,
	SCREEN_NATIVE,
	SCREEN_KERNEL,
};

/* Smaller than this, nothing useful fits. */
#define SCREEN_LEAST_ROWS 8
#define SCREEN_LEAST_COLUMNS 40

/* Keys that are no characters. */
enum screen_key {
	SCREEN_NONE = -1,
	SCREEN_UP = 0x1000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_ENTER,
	SCREEN_ESCAPE,
	SCREEN_ERASE,
	SCREEN_RESIZED,
	SCREEN_GONE, /* the terminal, and with it all keys */
};

/* False: this terminal cannot do it, and is as it was. */
bool screen_begin(void);
/* Leaves the terminal as it was. */
void screen_end(void);
int screen_rows(void);
int screen_columns(void);
void screen_clear(void);
/*
 * Writes text into so many columns of a row, cut or filled with blanks. Control characters, invalid
 * UTF-8 and what has no place of its own become "?".
 */
void screen_put(int row, int column, int columns, enum screen_style style, const char *text);
/* The same, aligned to the right if it is not cut. */
void screen_put_right(int row, int column, int columns, enum screen_style style, const char *text);
/* Shows what was written since the last time. */
void screen_show(void);
/* The next key, within so many milliseconds; SCREEN_NONE: there was none. */
int screen_key(int timeout_ms);

#endif
