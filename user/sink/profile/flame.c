// SPDX-License-Identifier: BSD-2-Clause
/*
 * A self-contained flame graph: an SVG that includes its style and its program (flame.css,
 * flame.js) and loads nothing from the network. The root is at the top. Siblings are sorted by
 * name, so that two graphs of one program look alike. The size of the file is bounded: frames that
 * are too narrow to see and, beyond FRAMES_MAX, those with the least time are drawn as part of
 * their callers, and the picture says how many. Above them, a strip shows when the samples
 * were taken; a part of the time can be chosen in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/profile/flame_impl.h"
#include "sink/sink.h"
#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

#include "sink/profile/flame.css.h"
#include "sink/profile/flame.js.h"

#define WIDTH 1200 /* fixed width, where the program does not run; with it, the picture scales */
#define SIDE 12
#define SPAN (WIDTH - 2 * SIDE)
#define STRIP_TOP 90
#define STRIP_HEIGHT 20
#define TOP 132
#define ROW 18
#define PAD 4
#define CHAR_WIDTH 7.0
#define MIN_WIDTH 0.08   /* one part in 15000 of the width */
#define FRAMES_MAX 12000 /* about 3 MB */
#define ROWS_MAX 1000
#define SHADES 3 /* of each colour, chosen by the name: the same in every graph */
/* Limits of texts that are shown on demand, in characters. */
#define NAME_MAX_COLUMNS 400
#define FILE_MAX_COLUMNS 200

struct flame {
	struct flame_facts facts;
	struct flame_heat *heat;
	struct stack_tree *tree;
	struct jsonw w;
	double *left;   /* by node: its left edge, 0 … 1 */
	uint8_t *drawn; /* by node: whether it is drawn */
	uint32_t nr_drawn, rows;
};

/* ---- what is drawn ---- */

static double share(const struct flame *f, uint64_t ns)
{
	uint64_t all = stack_tree__node(f->tree, 0)->total_ns;

	return all ? (double)ns / (double)all : 0;
}

/*
 * Sorts nodes by time, then depth. So a parent comes before its children: it has at least their
 * time and is less deep.
 */
static int by_time(const void *a, const void *b, void *ctx)
{
	const struct stack_node *x = stack_tree__node(ctx, *(const uint32_t *)a);
	const struct stack_node *y = stack_tree__node(ctx, *(const uint32_t *)b);

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static int choose(struct flame *f)
{
	uint32_t nr = stack_tree__nr_nodes(f->tree), candidates = 0;
	uint32_t *list = calloc(nr, sizeof(*list));

	f->left = calloc(nr, sizeof(*f->left));
	f->drawn = calloc(nr, sizeof(*f->drawn));
	if (!list || !f->left || !f->drawn) {
		free(list);
		return error_set(-ENOMEM, NULL, "no memory for a flame graph of %u frames", nr);
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct stack_node *n = stack_tree__node(f->tree, i);

		if (!i || (share(f, n->total_ns) * SPAN >= MIN_WIDTH && n->depth < ROWS_MAX))
			list[candidates++] = i;
	}
	if (candidates > FRAMES_MAX) {
		qsort_r(list, candidates, sizeof(*list), by_time, f->tree);
		candidates = FRAMES_MAX;
	}
	for (uint32_t i = 0; i < candidates; i++) {
		f->drawn[list[i]] = 1;
		if (stack_tree__node(f->tree, list[i])->depth >= f->rows)
			f->rows = stack_tree__node(f->tree, list[i])->depth + 1;
	}
	f->nr_drawn = candidates;
	f->facts.left_out = nr - candidates;
	free(list);
	return 0;
}

/* Places a node's children side by side, from the node's left edge on. */
static void place(struct flame *f, uint32_t i)
{
	const struct stack_node *n = stack_tree__node(f->tree, i);
	double at = f->left[i];

	for (uint32_t c = n->first_child; c;) {
		const struct stack_node *child = stack_tree__node(f->tree, c);

		f->left[c] = at;
		at += share(f, child->total_ns);
		c = child->next_sibling;
	}
}

/* ---- drawing ---- */

static void put_title(struct flame *f, const struct stack_node *n)
{
	const struct stack_symbol *symbol = n->symbol;
	struct jsonw *w = &f->w;

	jsonw__text(w, "<title>");
	text_xml(w, symbol->name, NAME_MAX_COLUMNS);
	if (strcmp(symbol->full, symbol->function) != 0) {
		jsonw__text(w, "\n");
		text_xml(w, symbol->full, NAME_MAX_COLUMNS);
	}
	if (*symbol->file) {
		jsonw__text(w, "\n");
		text_xml(w, symbol->file, FILE_MAX_COLUMNS);
	}
	if (*symbol->module) {
		jsonw__text(w, "\n");
		text_xml(w, symbol->module, FILE_MAX_COLUMNS);
	}
	jsonw__text(w, "\n");
	flame_put_time(w, n->total_ns);
	flame_printf(w, " (%.1f %%), ", 100 * share(f, n->total_ns));
	flame_put_count(w, n->samples);
	jsonw__text(w, f->facts.of_waits ? " wait" : " sample");
	jsonw__text(w, n->samples == 1 ? "; itself " : "s; itself ");
	flame_put_time(w, n->self_ns);
	flame_printf(w, " (%.1f %%)</title>", 100 * share(f, n->self_ns));
}

static void put_frame(struct flame *f, uint32_t i)
{
	static const char kinds[STACK_KINDS] = {
		[STACK_ROOT] = 'r',   [STACK_PROCESS] = 'r', [STACK_THREAD] = 'r',
		[STACK_PYTHON] = 'p', [STACK_NATIVE] = 'n',  [STACK_KERNEL] = 'k',
		[STACK_OP] = 'o',     [STACK_NOTE] = 'r'};
	const struct stack_node *n = stack_tree__node(f->tree, i);
	double x = SIDE + f->left[i] * SPAN, width = i ? share(f, n->total_ns) * SPAN : SPAN;
	unsigned int y = TOP + ROW * n->depth;
	int room = (int)((width - 2 * PAD) / CHAR_WIDTH);

	flame_printf(&f->w, "<g class=\"f %c%u\">", kinds[n->symbol->kind],
		     (unsigned int)(hash64_text(0, n->symbol->name) % SHADES));
	put_title(f, n);
	flame_printf(&f->w, "<rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%u\" rx=\"1.5\"/>",
		     x, y, width, ROW - 1);
	if (room >= 3) {
		flame_printf(&f->w, "<text x=\"%.2f\" y=\"%.1f\">", x + PAD, y + ROW - 5.5);
		text_xml(&f->w, n->symbol->name, (unsigned int)room);
		jsonw__text(&f->w, "</text>");
	}
	jsonw__text(&f->w, "</g>\n");
}

static void put_key(struct flame *f)
{
	static const struct {
		const char *name;
		char shade;
		enum stack_kind kind;
	} keys[] = {{"Python", 'p', STACK_PYTHON},
		    {"native", 'n', STACK_NATIVE},
		    {"kernel", 'k', STACK_KERNEL},
		    {"operator", 'o', STACK_OP}};
	unsigned int x = WIDTH - SIDE - 450;

	flame_printf(&f->w, "<g id=\"key\" class=\"key\">");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++, x += 115) {
		flame_printf(&f->w,
			     "<g class=\"%c0\"><rect x=\"%u\" y=\"62\" width=\"12\" height=\"12\" "
			     "rx=\"2\"/></g><text x=\"%u\" y=\"72\">%s",
			     keys[i].shade, x, x + 18, keys[i].name);
		/*
		 * The self time of an operator's entry is near zero and so not shown: the time is
		 * below it.
		 */
		if (keys[i].kind != STACK_OP)
			flame_printf(&f->w, " %.0f %%",
				     100 * share(f, f->facts.self_ns[keys[i].kind]));
		jsonw__text(&f->w, "</text>");
	}
	jsonw__text(&f->w, "</g>\n");
}

static int put_svg(struct flame *f)
{
	unsigned int height = TOP + ROW * f->rows + SIDE;
	struct jsonw *w = &f->w;
	uint32_t at = 0;

	flame_printf(w,
		     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		     "viewBox=\"0 0 %u %u\">\n<title>",
		     WIDTH, height, WIDTH, height);
	text_xml(w, f->facts.command, 120);
	jsonw__text(w, f->facts.of_waits ? " – off the CPU" : "");
	jsonw__text(w, " – kprof</title>\n<style>\n");
	jsonw__text(w, flame_css);
	jsonw__text(w, "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
	flame_put_facts(w, &f->facts, SIDE);
	put_key(f);
	flame_put_heat(w, f->heat, SIDE, STRIP_TOP, SPAN, STRIP_HEIGHT);
	flame_printf(w,
		     "<g id=\"frames\" data-top=\"%u\" data-row=\"%u\" data-width=\"%u\" "
		     "data-side=\"%u\">\n",
		     TOP, ROW, SPAN, SIDE);
	do {
		place(f, at);
		if (f->drawn[at])
			put_frame(f, at);
		at = stack_tree__next(f->tree, at);
	} while (at && !w->err);
	jsonw__text(w, "</g>\n<script><![CDATA[\n");
	jsonw__text(w, flame_js);
	jsonw__text(w, "]]></script>\n</svg>\n");
	return w->err;
}

static int draw(struct kprof_capture *t, struct flame *f, const char *path,
		const struct kprof_export_opts *opts)
{
	int err = stack_tree__read(f->tree, opts->pid);

	if (!err)
		err = stack_tree__sum(f->tree);
	if (!err && !stack_tree__node(f->tree, 0)->total_ns)
		err = error_set(-ENODATA, "`kprof report --by function` counts them",
				"the samples in %s stand for no time at all", timeline__path(t));
	if (!err)
		err = choose(f);
	if (!err)
		err = flame_heat__read(f->heat, t, f->tree, f->drawn, opts->pid);
	if (!err)
		err = flame_facts__read(&f->facts, t, f->tree, opts);
	if (!err)
		err = stream__start(path, opts, false, &f->w);
	return err ? err : stream__end(&f->w, put_svg(f));
}

static int flame_write(struct kprof_capture *t, const char *path,
		       const struct kprof_export_opts *opts)
{
	struct flame_heat heat = {0};
	struct flame f = {.heat = &heat};
	int err = stack_tree__new(t, false, &f.tree);

	if (!err)
		err = draw(t, &f, path, opts);
	flame_facts__free(&f.facts);
	flame_heat__free(&heat);
	stack_tree__free(f.tree);
	free(f.left);
	free(f.drawn);
	return err;
}

const struct sink_ops sink_flame = {
	.name = "flame",
	.suffixes = {".svg"},
	.samples = true,
	.write = flame_write,
};
