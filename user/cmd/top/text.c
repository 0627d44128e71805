// SPDX-License-Identifier: BSD-2-Clause
/* A text that covers the screen: what dump prints, and help. */
#include <stdio.h>
#include <string.h>

#include "cmd/top/live.h"

static size_t nr_lines(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

void text_draw(struct live *l)
{
	const char *at = l->text ? l->text : "…\n";
	size_t shown = (size_t)screen_rows() - 2, skip = l->text_line;

	screen_put(0, 0, screen_columns(), SCREEN_BOLD, l->text_title);
	for (; skip && *at; skip--)
		at += strcspn(at, "\n") + (strchr(at, '\n') ? 1 : 0);
	for (size_t i = 0; i < shown && *at; i++) {
		size_t n = strcspn(at, "\n");
		char line[1024];

		snprintf(line, sizeof(line), "%.*s", (int)n, at);
		screen_put(1 + (int)i, 0, screen_columns(), SCREEN_PLAIN, line);
		at += n + (at[n] == '\n');
	}
	view_foot(l, "arrows, page up and down scroll  Esc back");
}

enum wish text_key(struct live *l, int key)
{
	size_t lines = l->text ? nr_lines(l->text) : 0, shown = (size_t)screen_rows() - 2;

	if (view_scroll(&l->text_line, lines > shown ? lines - shown : 0, (int)shown, key))
		return WISH_NOTHING;
	if (key == SCREEN_ESCAPE || key == 'q' || key == SCREEN_ENTER || key == '?')
		l->view = l->behind;
	return WISH_NOTHING;
}
