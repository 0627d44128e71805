// SPDX-License-Identifier: BSD-2-Clause
/* The second view: one process, of which a page is shown. */
#include <stdio.h>
#include <string.h>

#include "cmd/print/text.h"
#include "cmd/top/live.h"

#define TABLE_ROW 3

static const char *const page_names[] = {
	[PAGE_THREADS] = "t threads",    [PAGE_FUNCTIONS] = "u functions",
	[PAGE_LINES] = "l lines",        [PAGE_OPERATORS] = "o operators",
	[PAGE_CALLS] = "c device calls", [PAGE_FLAME] = "f flame",
};

static int nr_shown(void)
{
	return screen_rows() - TABLE_ROW - 2;
}

/* ---- tables ---- */

static void cells(int y, enum screen_style style, const char *a, const char *b, const char *c,
		  const char *name, const char *where)
{
	int columns = screen_columns(), x = 29, name_columns = columns - x;

	if (where[0] && name_columns > 60)
		name_columns = name_columns * 2 / 3;
	screen_put(y, 0, columns, style, "");
	screen_put_right(y, 0, 8, style, a);
	screen_put_right(y, 9, 8, style, b);
	screen_put_right(y, 18, 9, style, c);
	screen_put(y, x, name_columns, style, name);
	if (name_columns < columns - x)
		screen_put(y, x + name_columns + 1, columns - x - name_columns - 1, style, where);
}

static void average_text(char *buf, const struct look_row *row)
{
	if (row->average_ns)
		text_time(buf, row->average_ns);
	else
		snprintf(buf, TEXT_NUMBER_BYTES, "-");
}

static size_t draw_rows(const struct live *l, const struct look_table *t, bool operators)
{
	cells(TABLE_ROW, SCREEN_TITLE, "SELF%", "TOTAL%", operators ? "AVERAGE" : "SAMPLES",
	      operators ? "OPERATOR" : "FUNCTION", operators ? "CALLS" : "WHERE");
	for (size_t i = 0; i < (size_t)nr_shown() && l->line + i < t->nr; i++) {
		const struct look_row *row = &t->rows[l->line + i];
		char self[TOP_CELL_BYTES], total[TOP_CELL_BYTES], third[TEXT_NUMBER_BYTES],
			calls[TEXT_NUMBER_BYTES];

		snprintf(third, sizeof(third), "%llu", (unsigned long long)row->calls);
		snprintf(calls, sizeof(calls), "%llu", (unsigned long long)row->calls);
		if (operators)
			average_text(third, row);
		cells(TABLE_ROW + 1 + (int)i, SCREEN_PLAIN, top_percent(self, row->self),
		      top_percent(total, row->total), third, row->name,
		      operators ? calls : text_base(row->where));
	}
	return t->nr;
}

/* Shares and rates are those of the part that is shown. */
static size_t draw_calls(const struct live *l)
{
	const struct look_table *t = &l->look->tables[LOOK_CALLS];
	double window_ns = (double)l->look->window_ns;

	cells(TABLE_ROW, SCREEN_TITLE, "TIME%", "CALLS/s", "AVERAGE", "DEVICE CALL", "CALLS");
	for (size_t i = 0; i < (size_t)nr_shown() && l->line + i < t->nr; i++) {
		const struct look_row *row = &t->rows[l->line + i];
		char share[TOP_CELL_BYTES], rate[TEXT_NUMBER_BYTES], average[TEXT_NUMBER_BYTES],
			calls[TEXT_NUMBER_BYTES];

		snprintf(rate, sizeof(rate), "%.1f", (double)row->calls * 1e9 / window_ns);
		snprintf(calls, sizeof(calls), "%llu", (unsigned long long)row->calls);
		average_text(average, row);
		cells(TABLE_ROW + 1 + (int)i, SCREEN_PLAIN,
		      top_percent(share, row->average_ns ? (double)row->total_ns / window_ns : -1),
		      rate, average, row->name, calls);
	}
	return t->nr;
}

static size_t draw_threads(const struct live *l)
{
	const struct look *k = l->look;
	int columns = screen_columns();
	const char *title = "    TID    CPU%   RUNQ%   WAIT%  S  THREAD           NOW";

	screen_put(TABLE_ROW, 0, columns, SCREEN_TITLE, title);
	for (size_t i = 0; i < (size_t)nr_shown() && l->line + i < k->nr_threads; i++) {
		const struct look_thread *th = &k->threads[l->line + i];
		char cpu[TOP_CELL_BYTES], run[TOP_CELL_BYTES], wait[TOP_CELL_BYTES], line[128];
		int y = TABLE_ROW + 1 + (int)i;

		snprintf(line, sizeof(line), "%7d  %6s  %6s  %6s  %c", (int)th->tid,
			 top_percent(cpu, th->cpu), top_percent(run, th->runnable),
			 top_percent(wait, th->blocked), th->state);
		screen_put(y, 0, columns, SCREEN_PLAIN, line);
		screen_put(y, 36, 16, SCREEN_PLAIN, th->name);
		screen_put(y, 53, columns - 53, SCREEN_PLAIN, th->now ? th->now : "-");
	}
	return k->nr_threads;
}

/* ---- the whole ---- */

static void draw_head(const struct live *l)
{
	const struct look *k = l->look;
	char line[320];

	snprintf(line, sizeof(line), "process %d: %s", (int)k->pid, k->command);
	screen_put(0, 0, screen_columns(), SCREEN_BOLD, line);
	snprintf(line, sizeof(line), "%llu samples, %.2f s of CPU time in the last %.1f s%s%s%s%s",
		 (unsigned long long)k->samples, (double)k->sampled_ns / 1e9,
		 (double)k->window_ns / 1e9,
		 k->operators
			 ? "   operators and device calls are recorded: probes are placed in it"
			 : "",
		 l->page == PAGE_FLAME && k->nodes_full ? "   only its first functions are shown"
							: "",
		 k->ended ? "   THE PROCESS HAS ENDED" : "", l->paused ? "   PAUSED" : "");
	screen_put(1, 0, screen_columns(), SCREEN_PLAIN, line);
}

static void draw_pages(const struct live *l)
{
	int x = 0;

	screen_put(2, 0, screen_columns(), SCREEN_PLAIN, "");
	for (size_t i = 0; i < sizeof(page_names) / sizeof(page_names[0]); i++) {
		int width = (int)strlen(page_names[i]) + 2;
		char text[32];

		snprintf(text, sizeof(text), " %s ", page_names[i]);
		screen_put(2, x, width, i == l->page ? SCREEN_CHOSEN : SCREEN_PLAIN, text);
		x += width + 1;
	}
}

/* Returns how many lines the page has. */
static size_t draw_page(const struct live *l)
{
	const struct look *k = l->look;

	switch (l->page) {
	case PAGE_THREADS:
		return draw_threads(l);
	case PAGE_FUNCTIONS:
		return draw_rows(l, &k->tables[LOOK_FUNCTIONS], false);
	case PAGE_LINES:
		return draw_rows(l, &k->tables[LOOK_LINES], false);
	case PAGE_OPERATORS:
		return draw_rows(l, &k->tables[LOOK_OPERATORS], true);
	case PAGE_CALLS:
		return draw_calls(l);
	default:
		return flame_draw(k, TABLE_ROW, nr_shown() + 1, l->line);
	}
}

static const char *why_empty(const struct live *l)
{
	bool unasked = !l->look->operators;

	if (l->page == PAGE_OPERATORS && unasked)
		return "no operators: o records them, which places probes";
	if (l->page == PAGE_CALLS && unasked)
		return "no device calls: c records them, which places probes";
	if (l->page == PAGE_CALLS && l->look->no_runtime)
		return "the process has no device runtime: CUDA, HIP, OpenCL or another";
	return "nothing in the last ten seconds";
}

void process_draw(struct live *l)
{
	size_t nr, shown = (size_t)nr_shown();

	draw_head(l);
	draw_pages(l);
	nr = draw_page(l);
	l->most_line = nr > shown ? nr - shown : 0;
	if (l->line && nr <= l->line) { /* there were more: nothing was drawn */
		l->line = l->most_line;
		draw_page(l);
	}
	if (!nr)
		screen_put(TABLE_ROW + 2, 2, screen_columns() - 2, SCREEN_PLAIN, why_empty(l));
	view_foot(l, "t u l o c f pages  F flame graph to a file  d dump  r record  space pause  "
		     "? help  Esc back  q quit");
}

static bool page_key(struct live *l, int key)
{
	static const char keys[] = "tulocf";
	const char *at = key > 0 && key < 127 ? strchr(keys, key) : NULL;

	if (!at)
		return false;
	l->page = (enum page)(at - keys);
	l->line = 0;
	return true;
}

enum wish process_key(struct live *l, int key)
{
	if (view_scroll(&l->line, l->most_line, nr_shown(), key))
		return WISH_NOTHING;
	if (page_key(l, key))
		return (l->page == PAGE_OPERATORS || l->page == PAGE_CALLS) && !l->look->operators
			       ? WISH_OPERATORS
			       : WISH_NOTHING;
	switch (key) {
	case SCREEN_ESCAPE:
	case SCREEN_LEFT:
		return WISH_LEAVE;
	case 'F':
		return WISH_DRAW;
	default:
		return view_key(key);
	}
}
