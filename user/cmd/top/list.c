// SPDX-License-Identifier: BSD-2-Clause
/* The first view: all processes. */
#include <stdio.h>
#include <string.h>

#include "cmd/print/text.h"
#include "cmd/top/live.h"

#define TABLE_ROW 2 /* of the screen: the table's title */
#define GAP 1

static const char *sort_name(enum top_sort sort)
{
	for (const struct option_choice *o = top_sorts; o->name; o++)
		if (o->value == (int)sort)
			return o->name;
	return "";
}

static int nr_shown(void)
{
	return screen_rows() - TABLE_ROW - 2;
}

/* The index of the chosen process; that of the first one if it is not there. */
static size_t chosen_at(const struct live *l)
{
	for (size_t i = 0; i < l->rows.nr; i++)
		if (l->rows.all[i].p->pid == l->chosen &&
		    l->rows.all[i].p->start_ticks == l->chosen_start)
			return i;
	return 0;
}

const struct kprof_top_process *list_chosen(const struct live *l)
{
	return l->rows.nr ? l->rows.all[chosen_at(l)].p : NULL;
}

static void choose(struct live *l, size_t i)
{
	if (i >= l->rows.nr)
		return;
	l->chosen = l->rows.all[i].p->pid;
	l->chosen_start = l->rows.all[i].p->start_ticks;
}

/* ---- drawing ---- */

/* Draws a row, or the titles if row is NULL. */
static void draw_row(const struct live *l, int y, const struct top_row *row,
		     enum screen_style style)
{
	bool gpu = kprof_top_info(l->top)->has_gpu;
	const struct top_column *column;
	int x = 0;

	screen_put(y, 0, screen_columns(), style, "");
	for (size_t i = 0; (column = top_column_at(i, gpu, l->steps)); i++) {
		int width = column->width ? (int)column->width : screen_columns() - x;
		char cell[TOP_CELL_BYTES], title[TOP_CELL_BYTES];
		const char *text = title;

		snprintf(title, sizeof(title), "%s%s", column->title,
			 column->sort == l->sort ? "*" : "");
		if (row)
			text = column->text(cell, row);
		if (column->right)
			screen_put_right(y, x, width, style, text);
		else
			screen_put(y, x, width, style, text);
		x += width + GAP;
	}
}

static void draw_head(const struct live *l)
{
	char line[320];

	top_headline(line, sizeof(line), l->top);
	screen_put(0, 0, screen_columns(), SCREEN_BOLD, line);
	snprintf(line, sizeof(line), "sorted by %s%s%s%s%s%s", sort_name(l->sort),
		 l->typing || l->filter[0] ? "   filter: " : "", l->filter, l->typing ? "_" : "",
		 l->paused ? "   PAUSED" : "",
		 l->steps ? "   steps are counted: probes at annotations" : "");
	screen_put(1, 0, screen_columns(), SCREEN_PLAIN, line);
}

void list_draw(struct live *l)
{
	size_t chosen = chosen_at(l), shown = (size_t)nr_shown();

	if (chosen < l->first)
		l->first = chosen;
	if (chosen >= l->first + shown)
		l->first = chosen - shown + 1;
	if (l->first + shown > l->rows.nr)
		l->first = l->rows.nr > shown ? l->rows.nr - shown : 0;
	draw_head(l);
	draw_row(l, TABLE_ROW, NULL, SCREEN_TITLE);
	for (size_t i = 0; i < shown && l->first + i < l->rows.nr; i++)
		draw_row(l, TABLE_ROW + 1 + (int)i, &l->rows.all[l->first + i],
			 l->first + i == chosen ? SCREEN_CHOSEN : SCREEN_PLAIN);
	view_foot(l, l->typing ? "Enter keeps the filter  Esc removes it"
			       : "Enter look  / filter  P M W S T sort  s steps  d dump  r record  "
				 "space pause  ? help  q quit");
}

/* ---- keys ---- */

static void erase_last(char *text)
{
	size_t n = strlen(text);

	while (n && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n ? n - 1 : 0] = '\0';
}

static enum wish filter_key(struct live *l, int key)
{
	size_t n = strlen(l->filter);

	if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
		l->typing = false;
		if (key == SCREEN_ESCAPE)
			l->filter[0] = '\0';
	} else if (key == SCREEN_ERASE) {
		erase_last(l->filter);
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof(l->filter)) {
		l->filter[n] = (char)key;
		l->filter[n + 1] = '\0';
	}
	return WISH_NOTHING;
}

/* The next order, or the one before, of those that are shown. */
static void next_sort(struct live *l, int step)
{
	bool gpu = kprof_top_info(l->top)->has_gpu;

	do
		l->sort = (enum top_sort)(((int)l->sort + step + TOP_NR_SORTS) % TOP_NR_SORTS);
	while ((l->sort == TOP_SORT_GPU && !gpu) || (l->sort == TOP_SORT_STEPS && !l->steps));
}

static bool sort_key(struct live *l, int key)
{
	static const struct {
		char key;
		enum top_sort sort;
	} sorts[] = {{'P', TOP_SORT_CPU}, {'M', TOP_SORT_RSS},   {'W', TOP_SORT_WAIT},
		     {'G', TOP_SORT_GPU}, {'S', TOP_SORT_STEPS}, {'T', TOP_SORT_THREADS},
		     {'N', TOP_SORT_PID}};

	if (key == '<' || key == '>' || key == SCREEN_LEFT || key == SCREEN_RIGHT) {
		next_sort(l, key == '<' || key == SCREEN_LEFT ? -1 : 1);
		return true;
	}
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		if (key != sorts[i].key)
			continue;
		l->sort = sorts[i].sort;
		return true;
	}
	return false;
}

enum wish list_key(struct live *l, int key)
{
	size_t at = chosen_at(l);

	if (l->typing)
		return filter_key(l, key);
	if (view_scroll(&at, l->rows.nr ? l->rows.nr - 1 : 0, nr_shown(), key)) {
		choose(l, at);
		return WISH_NOTHING;
	}
	if (sort_key(l, key))
		return WISH_NOTHING;
	switch (key) {
	case SCREEN_ENTER:
		choose(l, at);
		return WISH_LOOK;
	case SCREEN_ESCAPE:
		l->filter[0] = '\0';
		return WISH_NOTHING;
	case '/':
		l->typing = true;
		return WISH_NOTHING;
	case 's':
		return WISH_STEPS;
	default:
		return view_key(key);
	}
}
