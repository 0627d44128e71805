// SPDX-License-Identifier: BSD-2-Clause
/*
 * A differential flame graph: that of flame.c, but of two sides. A frame's width is its time on one
 * side, its colour how much that time has changed, by how much of all time (absolute) or of its own
 * (relative). The colours test nothing: kprof diff's table does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff.h"
#include "sink/profile/flame_impl.h"
#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

#include "sink/profile/flame.css.h"
#include "sink/profile/flame.js.h"
#include "sink/profile/flame_diff.css.h"

#define WIDTH 1200
#define SIDE 12
#define SPAN (WIDTH - 2 * SIDE)
#define TOP 92
#define ROW 18
#define PAD 4
#define CHAR_WIDTH 7.0
#define MIN_WIDTH 0.08
#define FRAMES_MAX 12000
#define ROWS_MAX 1000
#define NAME_MAX_COLUMNS 400
#define FILE_MAX_COLUMNS 200
#define SHADES 4

struct picture {
	struct diff_tree *tree;
	struct jsonw w;
	enum diff_side width; /* whose times are widths */
	bool relative;
	double *left; /* by node: its left edge, 0 … 1 */
	bool *drawn;  /* by node */
	uint32_t rows, left_out;
};

/* ---- times ---- */

/* Nanoseconds per step, second or run. */
static double per_unit(const struct picture *p, enum diff_side side, double ns)
{
	double units = diff_tree__units(p->tree, side);

	return units > 0 ? ns / units : 0;
}

static double total(const struct picture *p, uint32_t i, enum diff_side side)
{
	return per_unit(p, side, diff_tree__node(p->tree, i)->total[side]);
}

static double share(const struct picture *p, uint32_t i)
{
	double all = total(p, 0, p->width);

	return all > 0 ? total(p, i, p->width) / all : 0;
}

/* By how much a frame has changed: of all time, or of its own time before. */
static double change(const struct picture *p, uint32_t i)
{
	double before = total(p, i, DIFF_BEFORE), after = total(p, i, DIFF_AFTER);
	double of = p->relative ? before : fmax(total(p, 0, DIFF_BEFORE), total(p, 0, DIFF_AFTER));

	if (of > 0)
		return (after - before) / of;
	return after > 0 ? 1 : 0;
}

/* "m3": the class of a colour. */
static void put_shade(struct picture *p, double changed)
{
	static const double from[2][SHADES] = {{0.001, 0.005, 0.02, 0.05}, {0.02, 0.1, 0.3, 1}};
	int shade = 0;

	while (shade < SHADES && fabs(changed) >= from[p->relative][shade])
		shade++;
	flame_printf(&p->w, "%c%d", !shade ? 'z' : changed > 0 ? 'm' : 'l', shade);
}

/* ---- what is drawn ---- */

static int by_time(const void *a, const void *b, void *ctx)
{
	const struct picture *p = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	double x = total(p, i, p->width), y = total(p, j, p->width);
	uint32_t dx = diff_tree__node(p->tree, i)->depth, dy = diff_tree__node(p->tree, j)->depth;

	if (x != y)
		return x > y ? -1 : 1;
	if (dx != dy)
		return dx < dy ? -1 : 1;
	return i < j ? -1 : 1;
}

/* Those that are wide enough to see, and of too many the widest, parents before children. */
static int choose(struct picture *p)
{
	uint32_t nr = diff_tree__nr(p->tree), candidates = 0;
	uint32_t *list = calloc(nr, sizeof(*list));

	p->left = calloc(nr, sizeof(*p->left));
	p->drawn = calloc(nr, sizeof(*p->drawn));
	if (!list || !p->left || !p->drawn) {
		free(list);
		return error_set(-ENOMEM, NULL, "no memory for a flame graph of %u frames", nr);
	}
	for (uint32_t i = 0; i < nr; i++)
		if (!i || (share(p, i) * SPAN >= MIN_WIDTH &&
			   diff_tree__node(p->tree, i)->depth < ROWS_MAX))
			list[candidates++] = i;
	if (candidates > FRAMES_MAX) {
		qsort_r(list, candidates, sizeof(*list), by_time, p);
		candidates = FRAMES_MAX;
	}
	for (uint32_t i = 0; i < candidates; i++) {
		uint32_t depth = diff_tree__node(p->tree, list[i])->depth;

		p->drawn[list[i]] = true;
		p->rows = depth >= p->rows ? depth + 1 : p->rows;
	}
	p->left_out = nr - candidates;
	free(list);
	return 0;
}

static void place(struct picture *p, uint32_t i)
{
	double at = p->left[i];

	for (uint32_t c = diff_tree__node(p->tree, i)->first_child; c;) {
		p->left[c] = at;
		at += share(p, c);
		c = diff_tree__node(p->tree, c)->next_sibling;
	}
}

/* ---- drawing ---- */

static void put_time(struct picture *p, double ns)
{
	flame_put_time(&p->w, ns > 0 ? (uint64_t)fmin(ns + 0.5, 1e19) : 0);
}

/* "1.20 s before, 1.45 s after (+20.8 %, +2.1 % of all); itself 0.20 s before, 0.30 s after" */
static void put_numbers(struct picture *p, uint32_t i)
{
	const struct diff_node *n = diff_tree__node(p->tree, i);
	double before = total(p, i, DIFF_BEFORE), after = total(p, i, DIFF_AFTER);
	double all = fmax(total(p, 0, DIFF_BEFORE), total(p, 0, DIFF_AFTER));

	put_time(p, before);
	jsonw__text(&p->w, " before, ");
	put_time(p, after);
	jsonw__text(&p->w, " after (");
	if (before > 0)
		flame_printf(&p->w, "%+.1f %%, ", 100 * fmin((after - before) / before, 1e6));
	flame_printf(&p->w, "%+.2f %% of all); itself ",
		     all > 0 ? 100 * (after - before) / all : 0.0);
	put_time(p, per_unit(p, DIFF_BEFORE, n->self[DIFF_BEFORE]));
	jsonw__text(&p->w, " before, ");
	put_time(p, per_unit(p, DIFF_AFTER, n->self[DIFF_AFTER]));
	jsonw__text(&p->w, " after");
}

static void put_frame(struct picture *p, uint32_t i)
{
	const struct diff_node *n = diff_tree__node(p->tree, i);
	double x = SIDE + p->left[i] * SPAN, width = i ? share(p, i) * SPAN : SPAN;
	unsigned int y = TOP + ROW * n->depth;
	int room = (int)((width - 2 * PAD) / CHAR_WIDTH);

	jsonw__text(&p->w, "<g class=\"f ");
	put_shade(p, change(p, i));
	jsonw__text(&p->w, "\"><title>");
	text_xml(&p->w, n->name, NAME_MAX_COLUMNS);
	if (*n->where) {
		jsonw__text(&p->w, "\n");
		text_xml(&p->w, n->where, FILE_MAX_COLUMNS);
	}
	jsonw__text(&p->w, "\n");
	put_numbers(p, i);
	flame_printf(&p->w,
		     "</title><rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%u\" rx=\"1.5\"/>",
		     x, y, width, ROW - 1);
	if (room >= 3) {
		flame_printf(&p->w, "<text x=\"%.2f\" y=\"%.1f\">", x + PAD, y + ROW - 5.5);
		text_xml(&p->w, n->name, (unsigned int)room);
		jsonw__text(&p->w, "</text>");
	}
	jsonw__text(&p->w, "</g>\n");
}

static void put_key(struct picture *p)
{
	static const struct {
		double change; /* of either kind that has this shade */
		const char *text;
	} keys[] = {{1, "more"}, {0, "the same"}, {-1, "less"}};
	unsigned int x = WIDTH - SIDE - 250;

	jsonw__text(&p->w, "<g id=\"key\" class=\"key\">");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++, x += 85) {
		jsonw__text(&p->w, "<g class=\"");
		put_shade(p, keys[i].change);
		flame_printf(&p->w,
			     "\"><rect x=\"%u\" y=\"62\" width=\"12\" height=\"12\" rx=\"2\"/></g>"
			     "<text x=\"%u\" y=\"72\">%s</text>",
			     x, x + 18, keys[i].text);
	}
	jsonw__text(&p->w, "</g>\n");
}

static const char *unit_name(const struct picture *p)
{
	switch (diff_tree__per(p->tree)) {
	case KPROF_DIFF_PER_STEP:
		return "step";
	case KPROF_DIFF_PER_RUN:
		return "run";
	case KPROF_DIFF_PER_SHARE:
		return "second of all samples";
	default:
		return "second";
	}
}

static void put_head(struct picture *p, const struct kprof_diff_set *before,
		     const struct kprof_diff_set *after)
{
	struct jsonw *w = &p->w;

	flame_printf(w, "<text class=\"title fit\" x=\"%d\" y=\"24\">", SIDE);
	text_xml(w, before->paths[0], 60);
	flame_printf(w, "%s → ", before->nr > 1 ? " …" : "");
	text_xml(w, after->paths[0], 60);
	flame_printf(w, "%s</text>\n<text class=\"facts fit\" x=\"%d\" y=\"43\">",
		     after->nr > 1 ? " …" : "", SIDE);
	put_time(p, total(p, 0, DIFF_BEFORE));
	flame_printf(w, " of samples per %s before, ", unit_name(p));
	put_time(p, total(p, 0, DIFF_AFTER));
	flame_printf(w, " after · width: %s · colour: change as a share of %s",
		     p->width == DIFF_AFTER ? "after" : "before",
		     p->relative ? "the frame's own time before" : "all time");
	if (p->left_out) {
		jsonw__text(w, " · ");
		flame_put_count(w, p->left_out);
		jsonw__text(w, " frames too narrow to draw");
	}
	jsonw__text(w, "</text>\n");
}

static int put_svg(struct picture *p, const struct kprof_diff_set *before,
		   const struct kprof_diff_set *after)
{
	unsigned int height = TOP + ROW * p->rows + SIDE;
	struct jsonw *w = &p->w;
	uint32_t at = 0;

	flame_printf(w,
		     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		     "viewBox=\"0 0 %u %u\">\n<title>difference – kprof</title>\n<style>\n",
		     WIDTH, height, WIDTH, height);
	jsonw__text(w, flame_css);
	jsonw__text(w, flame_diff_css);
	jsonw__text(w, "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
	put_head(p, before, after);
	put_key(p);
	flame_printf(w,
		     "<g id=\"frames\" data-top=\"%d\" data-row=\"%d\" data-width=\"%d\" "
		     "data-side=\"%d\">\n",
		     TOP, ROW, SPAN, SIDE);
	do {
		place(p, at);
		if (p->drawn[at])
			put_frame(p, at);
		at = diff_tree__next(p->tree, at);
	} while (at && !w->err);
	jsonw__text(w, "</g>\n<script><![CDATA[\n");
	jsonw__text(w, flame_js);
	jsonw__text(w, "]]></script>\n</svg>\n");
	return w->err;
}

static int draw(struct picture *p, const struct kprof_diff_set *before,
		const struct kprof_diff_set *after, const struct kprof_diff_flame_opts *opts)
{
	const struct kprof_export_opts owner = {
		.uid = opts->uid, .gid = opts->gid, .set_owner = opts->set_owner};
	int err;

	if (total(p, 0, p->width) <= 0)
		return error_set(-ENODATA, NULL, "the samples in %s stand for no time at all",
				 (p->width == DIFF_AFTER ? after : before)->paths[0]);
	err = choose(p);
	if (!err)
		err = stream__start(opts->path, &owner, false, &p->w);
	return err ? err : stream__end(&p->w, put_svg(p, before, after));
}

int kprof_diff_flame(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		     const struct kprof_diff_flame_opts *user)
{
	struct kprof_diff_flame_opts opts = {0};
	struct picture p = {0};
	int err;

	error_clear();
	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	if (!before->nr || !after->nr || !opts.path || !*opts.path)
		return error_set_usage(-EINVAL, NULL,
				       "a comparison takes captures of two sides, and an output");
	if (opts.per >= KPROF_DIFF_PER_CALL)
		return error_set_usage(-EINVAL, NULL, "no such unit of samples (%u)", opts.per);
	p.relative = opts.relative;
	p.width = opts.width_before ? DIFF_BEFORE : DIFF_AFTER;
	err = diff_tree__new(before, after, &opts, &p.tree);
	if (!err)
		err = draw(&p, before, after, &opts);
	diff_tree__free(p.tree);
	free(p.left);
	free(p.drawn);
	return err;
}
