// SPDX-License-Identifier: BSD-2-Clause
/* A flame graph of characters: each row is a depth, each width a share of the samples' time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/live.h"

struct drawing {
	int first_row, rows;
	size_t depth, deepest; /* the first that is drawn; the number of those that are there */
	double columns_per_ns;
};

static int by_name(const void *pa, const void *pb)
{
	const struct look_node *const *a = pa, *const *b = pb;

	return strcmp((*a)->name, (*b)->name);
}

/* The children in the order of their names, so that they stay where they are. NULL: none. */
static const struct look_node **sorted(const struct look_node *parent, size_t *nr)
{
	const struct look_node **all;
	size_t n = 0;

	for (const struct look_node *c = parent->child; c; c = c->next)
		n++;
	*nr = n;
	all = n ? calloc(n, sizeof(const struct look_node *)) : NULL;
	n = 0;
	for (const struct look_node *c = parent->child; all && c; c = c->next)
		all[n++] = c;
	if (all)
		qsort(all, n, sizeof(const struct look_node *), by_name);
	return all;
}

static enum screen_style style_of(const struct look_node *node)
{
	return node->kind == KPROF_FRAME_PYTHON   ? SCREEN_PYTHON
	       : node->kind == KPROF_FRAME_KERNEL ? SCREEN_KERNEL
						  : SCREEN_NATIVE;
}

static void draw_node(const struct look_node *node, int row, double from, double to)
{
	int x = (int)(from + 0.5), columns = (int)(to + 0.5) - x;
	char text[256];

	snprintf(text, sizeof(text), "|%s", node->name);
	screen_put(row, x, columns, style_of(node), text);
}

static void draw_children(struct drawing *d, const struct look_node *parent, size_t depth,
			  double from)
{
	size_t nr;
	const struct look_node **all = sorted(parent, &nr);

	for (size_t i = 0; all && i < nr; i++) {
		double to = from + (double)all[i]->weight_ns * d->columns_per_ns;

		if ((int)(to + 0.5) > (int)(from + 0.5)) { /* at least a column */
			if (depth >= d->depth && depth < d->depth + (size_t)d->rows)
				draw_node(all[i], d->first_row + (int)(depth - d->depth), from, to);
			if (depth >= d->deepest)
				d->deepest = depth + 1;
			draw_children(d, all[i], depth + 1, from);
		}
		from = to;
	}
	free(all);
}

size_t flame_draw(const struct look *l, int first_row, int rows, size_t depth)
{
	struct drawing d = {.first_row = first_row, .rows = rows, .depth = depth};

	if (!l->root.weight_ns)
		return 0;
	d.columns_per_ns = screen_columns() / (double)l->root.weight_ns;
	draw_children(&d, &l->root, 0, 0);
	return d.deepest;
}
