// SPDX-License-Identifier: BSD-2-Clause
/* What all views share: scrolling, and the last line. */
#include <stdio.h>

#include "cmd/top/live.h"

bool view_scroll(size_t *line, size_t most, int page, int key)
{
	size_t by = page > 1 ? (size_t)page : 1, to = *line;

	switch (key) {
	case SCREEN_UP:
	case 'k':
		to = to ? to - 1 : 0;
		break;
	case SCREEN_DOWN:
	case 'j':
		to++;
		break;
	case SCREEN_PAGE_UP:
		to = to > by ? to - by : 0;
		break;
	case SCREEN_PAGE_DOWN:
		to += by;
		break;
	case SCREEN_HOME:
		to = 0;
		break;
	case SCREEN_END:
		to = most;
		break;
	default:
		return false;
	}
	*line = to < most ? to : most;
	return true;
}

enum wish view_key(int key)
{
	switch (key) {
	case 'd':
		return WISH_DUMP;
	case 'r':
		return WISH_RECORD;
	case '?':
	case 'h':
		return WISH_HELP;
	case 'q':
		return WISH_QUIT;
	default:
		return WISH_NOTHING;
	}
}

void view_foot(const struct live *l, const char *keys)
{
	const char *text = l->status[0] ? l->status : keys;
	char line[160];

	if (l->trace[0] && !l->status[0]) {
		snprintf(line, sizeof(line), "recording for five seconds: %s", l->trace);
		text = line;
	}
	screen_put(screen_rows() - 1, 0, screen_columns(),
		   text == keys ? SCREEN_TITLE : SCREEN_BOLD, text);
}
