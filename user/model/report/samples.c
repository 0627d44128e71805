// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of samples. Stacks that begin alike share their outer frames, so stacks form a tree.
 * Samples are first added up by stack. Then the tree is walked once: a function's total is what
 * lies below its outermost frame on each path. This takes time proportional to the number of
 * stacks, however deep they are and however many samples there are.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/callers.h"
#include "model/stacks/stacks.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define NO_ROW UINT32_MAX
#define Z_95 1.959963984540054 /* quantile of the normal distribution: two-sided 95 % */

struct sum {
	uint64_t weight_ns, samples;
};

struct node { /* a stack; number 0 is the root, above all stacks without a caller */
	/* Samples of this very stack; those and the samples of all stacks further in. */
	struct sum own, below;
	/* The part of own whose native stack has all of its outer frames, and the rest. */
	struct sum whole, broken;
	uint32_t first_child, next_sibling;
	uint32_t self_row; /* row of the innermost function so far that has one */
	struct caller caller;
};

struct row_key {
	char *text;
	uint32_t row;
	UT_hash_handle hh;
};

struct tally {
	struct kprof_result *result;
	struct kprof_capture *t;
	const struct kprof_result_opts *opts;
	struct node *nodes; /* by id of the stack */
	uint32_t nr_nodes;
	struct row_key *keys;
	/* By row: how often it occurs on the path from the outermost frame to here. */
	uint32_t *open;
	size_t cap_open;
	double weights, squares; /* sum of all samples' weights, and of their squares */
	struct callers *callers; /* for tables by operator */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of samples");
}

static void add(struct sum *to, const struct sum *more)
{
	add_capped(&to->weight_ns, more->weight_ns);
	to->samples += more->samples;
}

/* ---- rows ---- */

static const char *const categories[] = {
	[TL_FRAME_NATIVE] = "native", [TL_FRAME_PYTHON] = "python", [TL_FRAME_KERNEL] = "kernel"};

static int add_row(struct tally *tally, char *name, const char *category, const char *where,
		   uint32_t *out)
{
	struct kprof_result *r = tally->result;
	struct kprof_row *row = result__row(r, name);

	if (!row)
		return -ENOMEM;
	row->category = category;
	row->caller = row->node = "";
	row->where = result__keep(r, where);
	if (!row->where)
		return -ENOMEM;
	*out = (uint32_t)(r->nr - 1);
	if (vec_grow((void **)&tally->open, &tally->cap_open, *out, sizeof(*tally->open)))
		return no_memory();
	tally->open[*out] = 0;
	return 0;
}

/* Finds or adds the row of this name, category and place. */
static int row_of(struct tally *tally, const char *name, const char *category, const char *where,
		  uint32_t *out)
{
	char *text = xasprintf("%s%c%s%c%s", category, '\1', where, '\1', name);
	struct row_key *k = NULL;
	int err;

	if (!text)
		return no_memory();
	HASH_FIND_STR(tally->keys, text, k);
	if (k) {
		free(text);
		*out = k->row;
		return 0;
	}
	err = add_row(tally, strdup(name), category, where, out);
	k = err ? NULL : calloc(1, sizeof(*k));
	if (!k) {
		free(text);
		return err ? err : no_memory();
	}
	k->text = text;
	k->row = *out;
	HASH_ADD_KEYPTR(hh, tally->keys, k->text, strlen(k->text), k);
	if (k->hh.tbl)
		return 0;
	free(k->text);
	free(k);
	return no_memory();
}

static int row_of_line(struct tally *tally, const struct tl_frame *f, const struct tl_line *l,
		       uint32_t *out)
{
	const char *category = categories[f->kind];
	const char *module = f->module ? f->module->path : "";
	bool by_line = tally->opts->by == KPROF_BY_LINE;
	char *name;
	int err;

	if (!by_line && !l->named && *module) /* a row for each address would say nothing */
		name = xasprintf(*path_base(module) == '[' ? "%s" : "[%s]", path_base(module));
	else if (by_line && *l->file && l->line)
		name = xasprintf("%s:%u %s", path_base(l->file), l->line, l->function);
	else
		return row_of(tally, l->function, category,
			      f->kind == TL_FRAME_PYTHON ? l->file : module, out);
	if (!name)
		return no_memory();
	err = row_of(tally, name, category, by_line ? l->file : module, out);
	free(name);
	return err;
}

/*
 * The row of samples in which no frame has a row. A broken stack may have lost its operator's
 * frame, which differs from being outside of all operators.
 */
static int row_of_none(struct tally *tally, bool broken, uint32_t *out)
{
	static const char *const names[] = {
		[KPROF_FRAMES_ALL] = "[no stack]",
		[KPROF_FRAMES_NATIVE] = "[no native frame]",
		[KPROF_FRAMES_PYTHON] = "[no Python frame]",
	};

	static const char *const ops[] = {"[outside of operators]", "[incomplete stack]"};

	return row_of(tally,
		      tally->opts->by == KPROF_BY_OP ? ops[broken] : names[tally->opts->frames], "",
		      "", out);
}

static void count_self(struct kprof_row *row, const struct sum *s)
{
	add_capped(&row->self_ns, s->weight_ns);
	row->self_samples += s->samples;
}

static void count_total(struct kprof_row *row, const struct sum *s)
{
	add_capped(&row->total_ns, s->weight_ns);
	row->calls += s->samples;
}

static int count_none(struct tally *tally, const struct sum *s, bool broken)
{
	uint32_t index;
	int err;

	if (!s->samples)
		return 0;
	err = row_of_none(tally, broken, &index);
	if (err)
		return err;
	count_self(&tally->result->entries[index].row, s);
	count_total(&tally->result->entries[index].row, s);
	return 0;
}

/* Counts the samples of a stack in which no frame has a row. */
static int count_rowless(struct tally *tally, const struct node *n)
{
	int err;

	if (tally->opts->by != KPROF_BY_OP)
		return count_none(tally, &n->own, false);
	err = count_none(tally, &n->whole, false);
	return err ? err : count_none(tally, &n->broken, true);
}

/* ---- samples by stack ---- */

static void add_weight(struct tally *tally, uint64_t weight_ns)
{
	tally->weights += (double)weight_ns;
	tally->squares += (double)weight_ns * (double)weight_ns;
}

static int count_sample(void *ctx, const struct store_record *r)
{
	const struct sum one = {r->sample.weight_ns, 1};
	bool broken = stack_reach_of(r->sample.flags) == STACK_INCOMPLETE;
	struct tally *tally = ctx;
	struct node *n = &tally->nodes[r->sample.stack];

	add(&n->own, &one);
	add(broken ? &n->broken : &n->whole, &one);
	add_weight(tally, r->sample.weight_ns);
	return 0;
}

/* Links each stack below its caller's; a caller's stack has the smaller id. */
static void make_tree(struct tally *tally)
{
	struct node *nodes = tally->nodes;

	for (uint32_t id = tally->nr_nodes; id-- > 1;) {
		uint32_t parent = timeline__stack(tally->t, id)->parent;

		add(&nodes[id].below, &nodes[id].own);
		add(&nodes[parent].below, &nodes[id].below);
		nodes[id].next_sibling = nodes[parent].first_child;
		nodes[parent].first_child = id;
	}
	nodes[0].self_row = NO_ROW;
}

/* ---- the walk ---- */

static bool wanted(const struct tally *tally, const struct tl_frame *f)
{
	switch (tally->opts->frames) {
	case KPROF_FRAMES_NATIVE:
		return f->kind != TL_FRAME_PYTHON;
	case KPROF_FRAMES_PYTHON:
		return f->kind == TL_FRAME_PYTHON;
	default:
		return true;
	}
}

/* The i-th row that a frame belongs to, outer ones first; false: there are no more. */
static bool frame_row(struct tally *tally, const struct tl_frame *f, uint32_t i, uint32_t *row,
		      int *err)
{
	if (tally->opts->by == KPROF_BY_OP) {
		if (i || !*f->op)
			return false;
		*err = row_of(tally, f->op, "cpu_op", "", row);
		return true;
	}
	if (i >= f->nr_lines || !wanted(tally, f))
		return false;
	*err = row_of_line(tally, f, &f->lines[f->nr_lines - 1 - i], row);
	return true;
}

static int enter(struct tally *tally, uint32_t id)
{
	const struct tl_stack *s = timeline__stack(tally->t, id);
	struct node *n = &tally->nodes[id];
	uint32_t index;
	int err = 0;

	n->self_row = tally->nodes[s->parent].self_row;
	n->caller = tally->nodes[s->parent].caller;
	caller_step(&n->caller, s->frame);
	for (uint32_t i = 0; !err && frame_row(tally, s->frame, i, &index, &err) && !err; i++) {
		n->self_row = index;
		if (tally->open[index]++)
			continue;
		count_total(&tally->result->entries[index].row, &n->below);
		if (tally->opts->by == KPROF_BY_OP)
			err = callers__add(&tally->callers, index, &n->caller, n->below.weight_ns);
	}
	if (err)
		return err;
	if (n->self_row == NO_ROW)
		return count_rowless(tally, n);
	count_self(&tally->result->entries[n->self_row].row, &n->own);
	return 0;
}

static int leave(struct tally *tally, uint32_t id)
{
	const struct tl_stack *s = timeline__stack(tally->t, id);
	uint32_t index;
	int err = 0;

	for (uint32_t i = 0; frame_row(tally, s->frame, i, &index, &err) && !err; i++)
		tally->open[index]--;
	return err;
}

/*
 * Visits every stack that samples were seen in, callers first. There is no recursion, since stacks
 * may be arbitrarily deep.
 */
static int walk(struct tally *tally)
{
	const struct node *nodes = tally->nodes;
	uint32_t at = nodes[0].first_child;
	int err = 0;

	while (at && !err) {
		bool dead = !nodes[at].below.samples;

		if (!dead)
			err = enter(tally, at);
		if (!dead && nodes[at].first_child) {
			at = nodes[at].first_child;
			continue;
		}
		for (; at && !err; at = timeline__stack(tally->t, at)->parent) {
			if (nodes[at].below.samples)
				err = leave(tally, at);
			if (nodes[at].next_sibling) {
				at = nodes[at].next_sibling;
				break;
			}
		}
	}
	return err;
}

/* ---- by thread ---- */

static int count_thread(void *ctx, const struct store_record *r)
{
	struct tally *tally = ctx;
	struct kprof_row *row = &tally->result->entries[r->sample.thread].row;

	row->calls++;
	row->self_samples++;
	add_capped(&row->self_ns, r->sample.weight_ns);
	row->total_ns = row->self_ns;
	if (r->sample.flags & KPROF_SAMPLE_GIL)
		add_capped(&row->gil_ns, r->sample.weight_ns);
	if (r->sample.flags & KPROF_SAMPLE_GIL_WAIT)
		add_capped(&row->gil_wait_ns, r->sample.weight_ns);
	add_weight(tally, r->sample.weight_ns);
	return 0;
}

/* ---- errors ---- */

static double clamp(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

/*
 * Wilson's score interval (1927): bounds of a share, when p was observed in n independent samples.
 */
static void wilson(double p, double n, double *low, double *high)
{
	double z2 = Z_95 * Z_95, middle, half;

	*low = 0;
	*high = 1;
	if (n <= 0)
		return;
	middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
	*low = clamp(middle - half);
	*high = clamp(middle + half);
}

/*
 * Computes how many samples of equal weight the samples are worth (Kish 1965): (sum of weights)² /
 * sum of squares.
 */
static void estimate(struct tally *tally)
{
	struct kprof_result *r = tally->result;
	double n = tally->squares > 0 ? tally->weights * tally->weights / tally->squares : 0;

	for (size_t i = 0; i < r->nr && tally->weights > 0; i++) {
		struct kprof_row *row = &r->entries[i].row;

		row->total_share = clamp((double)row->total_ns / tally->weights);
		wilson(row->total_share, n, &row->total_low, &row->total_high);
		wilson(clamp((double)row->self_ns / tally->weights), n, &row->self_low,
		       &row->self_high);
	}
}

/* ---- the whole ---- */

bool result__has_op_spans(const struct kprof_capture *t)
{
	const struct tl_description *description;

	for (size_t i = 0;
	     kprof_capture_info(t)->events && (description = timeline__description(t, i)); i++)
		if (!strcmp(description->category, "cpu_op"))
			return true;
	return false;
}

static void tally__free(struct tally *tally)
{
	struct row_key *k, *next;

	HASH_ITER (hh, tally->keys, k, next) {
		HASH_DEL(tally->keys, k);
		free(k->text);
		free(k);
	}
	callers__free(tally->callers);
	free(tally->nodes);
	free(tally->open);
}

static int by_stack(struct tally *tally)
{
	int err;

	tally->nr_nodes = (uint32_t)timeline__nr_stacks(tally->t) + 1;
	tally->nodes = calloc(tally->nr_nodes, sizeof(*tally->nodes));
	if (!tally->nodes)
		return no_memory();
	err = timeline__samples(tally->t, 0, count_sample, tally);
	if (err)
		return err;
	make_tree(tally);
	err = walk(tally);
	return err ? err : count_rowless(tally, &tally->nodes[0]);
}

int result__by_samples(struct kprof_result *r, struct kprof_capture *t,
		       const struct kprof_result_opts *opts)
{
	struct tally tally = {.result = r, .t = t, .opts = opts};
	int err;

	r->of_samples = true;
	if (opts->sort == KPROF_SORT_AVG)
		return error_set_usage(-EINVAL, "sort by self, total, count or name",
				       "samples have no average");
	if (opts->by == KPROF_BY_THREAD) {
		err = result__thread_rows(r, t);
		if (!err)
			err = timeline__samples(t, 0, count_thread, &tally);
	} else {
		err = by_stack(&tally);
		if (!err)
			err = callers__tell(tally.callers, r);
	}
	if (!err)
		estimate(&tally);
	tally__free(&tally);
	return err;
}
