/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the screen, and its views. Each view draws itself, and takes keys. */
#ifndef KPROF_CMD_TOP_LIVE_H
#define KPROF_CMD_TOP_LIVE_H

#include <sys/types.h>

#include "cmd/top/child.h"
#include "cmd/top/look.h"
#include "cmd/top/screen.h"
#include "cmd/top/top.h"

enum view { VIEW_LIST, VIEW_PROCESS, VIEW_TEXT };

enum page {
	PAGE_THREADS,
	PAGE_FUNCTIONS,
	PAGE_LINES,
	PAGE_OPERATORS,
	PAGE_CALLS,
	PAGE_FLAME,
};

#define LIVE_FILTER_BYTES 64
#define LIVE_STATUS_BYTES 256

/* What a key asks of the loop, which alone begins and ends what takes long. */
enum wish {
	WISH_NOTHING,
	WISH_QUIT,
	WISH_LOOK,      /* at the chosen process */
	WISH_OPERATORS, /* of it, and its device calls */
	WISH_LEAVE,     /* it */
	WISH_STEPS,     /* of all, or no more */
	WISH_DUMP,
	WISH_RECORD,
	WISH_DRAW,
	WISH_HELP,
};

struct live {
	const struct top_opts *opts;
	struct kprof_top *top;
	struct top_steps *steps; /* NULL: not counted */
	enum view view, behind;  /* behind: the view that a text covers */
	bool paused;
	char status[LIVE_STATUS_BYTES]; /* what happened last */
	char trace[96];                 /* the file that is being recorded; "": none */

	/* the list */
	struct top_rows rows;
	enum top_sort sort;
	char filter[LIVE_FILTER_BYTES];
	bool typing; /* the filter */
	pid_t chosen;
	uint64_t chosen_start;
	size_t first; /* the first row that is shown */

	/* one process */
	struct look *look; /* NULL: none is looked at */
	enum page page;
	size_t line, most_line; /* of the page: the first line that is shown, and the last such */

	/* a text */
	const char *text; /* NULL: it is not there yet */
	const char *text_title;
	size_t text_line; /* the first that is shown */

	struct child dump, record;
};

/* ---- list.c ---- */
void list_draw(struct live *l);
enum wish list_key(struct live *l, int key);
/* The process that is chosen; NULL: there is none. */
const struct kprof_top_process *list_chosen(const struct live *l);

/* ---- process.c ---- */
void process_draw(struct live *l);
enum wish process_key(struct live *l, int key);

/* ---- flame.c ---- */
/*
 * Draws the stacks in these rows of the screen, roots above, from a depth on. Returns how deep they
 * are.
 */
size_t flame_draw(const struct look *l, int first_row, int rows, size_t depth);

/* ---- text.c ---- */
void text_draw(struct live *l);
enum wish text_key(struct live *l, int key);

/* ---- view.c ---- */

/* Moves a line or a page where the key says so, up to most. False: it is another key. */
bool view_scroll(size_t *line, size_t most, int page, int key);
/* What a key asks for in all views but a text. */
enum wish view_key(int key);
/* The last line: what happened, else what keys do. */
void view_foot(const struct live *l, const char *keys);

#endif
