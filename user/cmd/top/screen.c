// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/top/screen.h"

/* Of ncurses, only wide characters are used: they are cells, and not bytes for the terminal. */
#define NCURSES_WIDECHAR 1
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

/* <term.h> makes macros of these words. */
#undef columns
#undef lines

#include "cmd/print/text.h"

#define MOST_COLUMNS 1024
#define ESCAPE 27
#define ESCAPE_MS 50 /* after which an escape is no key's first byte any more */

static SCREEN *terminal;

static bool can_move(void)
{
	int err;
	const char *move;

	if (setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return false;
	move = tigetstr("cup");
	return move && move != (const char *)-1;
}

static void begin_colours(void)
{
	if (!has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	init_pair(SCREEN_PYTHON, COLOR_BLACK, COLOR_GREEN);
	init_pair(SCREEN_NATIVE, COLOR_BLACK, COLOR_YELLOW);
	init_pair(SCREEN_KERNEL, COLOR_BLACK, COLOR_CYAN);
}

bool screen_begin(void)
{
	setlocale(LC_CTYPE, "");
	if (!can_move())
		return false;
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return false;
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	curs_set(0);
	begin_colours();
	return true;
}

void screen_end(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

int screen_rows(void)
{
	return LINES;
}

int screen_columns(void)
{
	return COLS;
}

void screen_clear(void)
{
	erase();
}

void screen_show(void)
{
	refresh();
}

/* ---- text ---- */

/* The next character of the text, which is moved behind it; '?' for what may not be shown. */
static wchar_t next_character(const char **text)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *t = (const unsigned char *)*text;
	size_t bytes = text_utf8(*text);
	wchar_t c;

	*text += bytes ? bytes : 1;
	if (!bytes)
		return L'?';
	c = t[0] & first_bits[bytes];
	for (size_t i = 1; i < bytes; i++)
		c = c << 6 | (t[i] & 0x3f);
	return iswprint((wint_t)c) && wcwidth(c) > 0 ? c : L'?';
}

/* Converts as much as fits; returns the number of columns. */
static int convert(wchar_t line[MOST_COLUMNS + 1], int columns, const char *text)
{
	int used = 0, n = 0;

	while (*text && used < columns) {
		wchar_t c = next_character(&text);

		if (used + wcwidth(c) > columns)
			break;
		line[n++] = c;
		used += wcwidth(c);
	}
	line[n] = L'\0';
	return used;
}

static attr_t attributes(enum screen_style style, short *pair)
{
	bool colours = has_colors();

	*pair = 0;
	switch (style) {
	case SCREEN_BOLD:
		return A_BOLD;
	case SCREEN_TITLE:
	case SCREEN_CHOSEN:
		return A_REVERSE;
	case SCREEN_PYTHON:
	case SCREEN_NATIVE:
	case SCREEN_KERNEL:
		if (colours)
			*pair = (short)style;
		return colours ? A_NORMAL : style == SCREEN_PYTHON ? A_REVERSE : A_NORMAL;
	default:
		return A_NORMAL;
	}
}

static void put(int row, int column, int columns, enum screen_style style, const char *text,
		bool right)
{
	wchar_t line[MOST_COLUMNS + 1];
	int left = COLS - column, used, blanks;
	short pair;
	attr_t attrs = attributes(style, &pair);

	if (row < 0 || row >= LINES || column < 0 || left <= 0 || columns <= 0)
		return;
	columns = columns < left ? columns : left;
	columns = columns < MOST_COLUMNS ? columns : MOST_COLUMNS;
	used = convert(line, columns, text);
	blanks = columns - used;
	attr_set(attrs, pair, NULL);
	for (int i = 0; i < columns; i++)
		mvaddch(row, column + i, ' ');
	mvaddwstr(row, column + (right ? blanks : 0), line);
	attr_set(A_NORMAL, 0, NULL);
}

void screen_put(int row, int column, int columns, enum screen_style style, const char *text)
{
	put(row, column, columns, style, text, false);
}

void screen_put_right(int row, int column, int columns, enum screen_style style, const char *text)
{
	put(row, column, columns, style, text, true);
}

/* ---- keys ---- */

static int special(int code)
{
	switch (code) {
	case KEY_UP:
		return SCREEN_UP;
	case KEY_DOWN:
		return SCREEN_DOWN;
	case KEY_LEFT:
		return SCREEN_LEFT;
	case KEY_RIGHT:
		return SCREEN_RIGHT;
	case KEY_PPAGE:
		return SCREEN_PAGE_UP;
	case KEY_NPAGE:
		return SCREEN_PAGE_DOWN;
	case KEY_HOME:
		return SCREEN_HOME;
	case KEY_END:
		return SCREEN_END;
	case KEY_ENTER:
		return SCREEN_ENTER;
	case KEY_BACKSPACE:
	case KEY_DC:
		return SCREEN_ERASE;
	case KEY_RESIZE:
		return SCREEN_RESIZED;
	default:
		return SCREEN_NONE;
	}
}

/* It may go away without a signal: with nohup, or where it is not the controlling terminal. */
static bool is_gone(void)
{
	struct pollfd p = {.fd = STDIN_FILENO};

	return poll(&p, 1, 0) > 0;
}

int screen_key(int timeout_ms)
{
	wint_t key;
	int kind;

	timeout(timeout_ms);
	kind = get_wch(&key);
	if (kind == KEY_CODE_YES)
		return special((int)key);
	if (kind != OK)
		return is_gone() ? SCREEN_GONE : SCREEN_NONE;
	switch (key) {
	case L'\r':
	case L'\n':
		return SCREEN_ENTER;
	case ESCAPE:
		return SCREEN_ESCAPE;
	case 8:
	case 127:
		return SCREEN_ERASE;
	default:
		return key < SCREEN_UP ? (int)key : SCREEN_NONE;
	}
}
