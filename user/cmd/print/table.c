// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "cmd/print/text.h"

#define GAP "  "

struct table {
	const struct table_column *columns;
	size_t nr_columns;
	char **cells; /* cells, row by row */
	size_t nr_rows, cap_rows;
	size_t width[];
};

struct table *table__new(const struct table_column *columns, size_t nr_columns)
{
	struct table *t = calloc(1, sizeof(*t) + nr_columns * sizeof(t->width[0]));

	if (!t)
		return NULL;
	t->columns = columns;
	t->nr_columns = nr_columns;
	for (size_t i = 0; i < nr_columns; i++)
		t->width[i] = text_columns(columns[i].title);
	return t;
}

/* Cuts a printable text to `most` columns, of which the last three are dots. */
static void cut(char *text, size_t most)
{
	char *at = text;

	if (!most || text_columns(text) <= most)
		return;
	for (size_t left = most - 3; left; left--)
		at += text_utf8(at);
	strcpy(at, "..."); /* there were at least four characters here */
}

bool table__add(struct table *t, const char *const *cells)
{
	char **row;

	if (t->nr_rows == t->cap_rows) {
		size_t cap = t->cap_rows ? t->cap_rows * 2 : 64;
		char **more = reallocarray(t->cells, cap * t->nr_columns, sizeof(*more));

		if (!more)
			return false;
		t->cells = more;
		t->cap_rows = cap;
	}
	row = &t->cells[t->nr_rows * t->nr_columns];
	for (size_t i = 0; i < t->nr_columns; i++) {
		row[i] = text_printable(cells[i]);
		if (!row[i]) {
			while (i--)
				free(row[i]);
			return false;
		}
		cut(row[i], t->columns[i].most);
		if (text_columns(row[i]) > t->width[i])
			t->width[i] = text_columns(row[i]);
	}
	t->nr_rows++;
	return true;
}

static void rule(const struct table *t, FILE *to)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		fputs(i ? GAP : "", to);
		for (size_t n = t->width[i]; n; n--)
			putc('-', to);
	}
	putc('\n', to);
}

static void print_row(const struct table *t, FILE *to, size_t row)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct table_column *c = &t->columns[i];
		const char *text = row == SIZE_MAX ? c->title : t->cells[row * t->nr_columns + i];
		int pad = (int)(t->width[i] - text_columns(text));
		bool last = i + 1 == t->nr_columns;

		fprintf(to, "%s%*s%s%*s", i ? GAP : "", c->right ? pad : 0, "", text,
			c->right || last ? 0 : pad, "");
	}
	putc('\n', to);
}

void table__print(const struct table *t, FILE *to, bool ruled)
{
	if (ruled)
		rule(t, to);
	print_row(t, to, SIZE_MAX);
	if (ruled)
		rule(t, to);
	for (size_t i = 0; i < t->nr_rows; i++)
		print_row(t, to, i);
	if (ruled)
		rule(t, to);
}

void table__free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_rows * t->nr_columns; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
