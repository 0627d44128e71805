// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a capture's samples into rows. Samples of a block are first added up by stack; at the
 * block's end one pass over the stacks, inner ones first, gives each row its share. What a stack
 * adds to which rows is found once, by a walk over the tree of stacks. So the time it takes depends
 * on the number of stacks and samples, not on how deep stacks are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "store/store.h"
#include "util/error.h"

#define NO_ROW UINT32_MAX
/* Lines of a frame that can be told to be recursive; further inlined ones count each time. */
#define MASK_BITS 64

struct node { /* a stack; number 0 is the root, above all stacks without a caller */
	uint64_t own_ns, below_ns; /* in this block; below_ns: with all stacks further in */
	uint64_t own, below;       /* samples */
	uint64_t again;    /* bit i: the frame's row i is that of a frame further out, too */
	uint32_t self_row; /* row of the innermost function so far that has one */
	uint32_t first_child, next_sibling;
};

struct rows { /* a range of the list of rows */
	uint32_t first, nr;
};

struct reading {
	struct diff_table *table;
	struct kprof_capture *t;
	enum kprof_frames wanted;
	struct node *nodes; /* by id of the stack */
	uint32_t nr_nodes;
	struct rows *frames; /* by id - 1, outer functions first */
	struct vec lists;    /* uint32_t: rows */
	uint32_t *open;      /* by row: how often it occurs on the path to here */
	uint32_t *threads;   /* row by thread, plus one; by thread only */
	uint32_t block;
	uint64_t seen; /* samples in the block so far */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for samples");
}

/* ---- which rows a frame belongs to ---- */

static const char *kind_name(const struct tl_frame *f)
{
	switch (f->kind) {
	case TL_FRAME_PYTHON:
		return "python";
	case TL_FRAME_KERNEL:
		return "kernel";
	default:
		return "native";
	}
}

static const char *module_of(const struct tl_frame *f)
{
	return f->module ? f->module->path : "";
}

/*
 * The key of a function, and *made: what is to be freed of it. As in a report, the functions of a
 * module that have no name are one row.
 */
static int key_of_function(const struct tl_frame *f, const struct tl_line *l, struct diff_key *key,
			   char **made)
{
	const char *module = path_base(module_of(f));

	*key = (struct diff_key){kind_name(f), l->function,
				 f->kind == TL_FRAME_PYTHON ? l->file : module_of(f)};
	if (l->named || !*module)
		return 0;
	key->name = *made = xasprintf(*module == '[' ? "%s" : "[%s]", module);
	return *made ? 0 : no_memory();
}

static int key_of_line(const struct tl_frame *f, const struct tl_line *l, struct diff_key *key,
		       char **made)
{
	if (!*l->file || !l->line)
		return key_of_function(f, l, key, made);
	*made = xasprintf("%s:%u %s", path_base(l->file), l->line, l->function);
	*key = (struct diff_key){kind_name(f), *made, l->file};
	return *made ? 0 : no_memory();
}

static int key_of_module(const struct tl_frame *f, const struct tl_line *l, struct diff_key *key,
			 char **made)
{
	const char *where = f->kind == TL_FRAME_PYTHON ? l->file : module_of(f);

	*key = (struct diff_key){kind_name(f), *where ? path_base(where) : "[unknown]", where};
	return 0;
}

static int key_of_op(const struct tl_frame *f, const struct tl_line *l, struct diff_key *key,
		     char **made)
{
	*key = (struct diff_key){"cpu_op", f->op, ""};
	return 0;
}

/* Groupings of samples by what is in their stacks. */
static const struct grouping {
	int (*key)(const struct tl_frame *f, const struct tl_line *l, struct diff_key *key,
		   char **made);
	bool of_frame; /* a frame has one key, not each of its lines */
} groupings[] = {
	[KPROF_DIFF_BY_OP] = {key_of_op, true},
	[KPROF_DIFF_BY_FUNCTION] = {key_of_function, false},
	[KPROF_DIFF_BY_LINE] = {key_of_line, false},
	[KPROF_DIFF_BY_MODULE] = {key_of_module, true},
};

static bool is_wanted(const struct reading *r, const struct tl_frame *f)
{
	if (r->table->info.by == KPROF_DIFF_BY_OP)
		return *f->op;
	return r->wanted == KPROF_FRAMES_ALL ||
	       (r->wanted == KPROF_FRAMES_PYTHON) == (f->kind == TL_FRAME_PYTHON);
}

static int add_row_of(struct reading *r, const struct tl_frame *f, const struct tl_line *l)
{
	uint32_t *slot = vec_push(&r->lists, sizeof(*slot));
	struct diff_key key;
	char *made = NULL;
	int err = slot ? groupings[r->table->info.by].key(f, l, &key, &made) : no_memory();

	if (!err)
		err = diff_table__row(r->table, &key, slot);
	free(made);
	return err;
}

static int find_rows(struct reading *r)
{
	const struct grouping *g = &groupings[r->table->info.by];
	size_t nr = timeline__nr_frames(r->t);
	int err = 0;

	r->frames = calloc(nr + 1, sizeof(*r->frames));
	if (!r->frames)
		return no_memory();
	for (uint32_t id = 1; id <= nr && !err; id++) {
		const struct tl_frame *f = timeline__frame(r->t, id);
		uint32_t lines = g->of_frame ? 1 : f->nr_lines;

		r->frames[id - 1].first = (uint32_t)r->lists.nr;
		for (uint32_t i = lines; is_wanted(r, f) && i-- > 0 && !err;)
			err = add_row_of(r, f, &f->lines[i]);
		r->frames[id - 1].nr = (uint32_t)r->lists.nr - r->frames[id - 1].first;
	}
	return err;
}

/* ---- the tree of stacks ---- */

static struct rows rows_of(const struct reading *r, uint32_t stack, const uint32_t **list)
{
	struct rows rows = r->frames[timeline__stack(r->t, stack)->frame->id - 1];

	*list = (const uint32_t *)r->lists.data + rows.first;
	return rows;
}

static void enter(struct reading *r, uint32_t id)
{
	struct node *n = &r->nodes[id];
	const uint32_t *list;
	struct rows rows = rows_of(r, id, &list);

	n->self_row = r->nodes[timeline__stack(r->t, id)->parent].self_row;
	for (uint32_t i = 0; i < rows.nr; i++) {
		if (r->open[list[i]]++ && i < MASK_BITS)
			n->again |= 1ull << i;
		n->self_row = list[i];
	}
}

static void leave(struct reading *r, uint32_t id)
{
	const uint32_t *list;
	struct rows rows = rows_of(r, id, &list);

	for (uint32_t i = 0; i < rows.nr; i++)
		r->open[list[i]]--;
}

/* Visits every stack, callers first; without recursion, since stacks may be arbitrarily deep. */
static void walk(struct reading *r)
{
	uint32_t at = r->nodes[0].first_child;

	while (at) {
		enter(r, at);
		if (r->nodes[at].first_child) {
			at = r->nodes[at].first_child;
			continue;
		}
		for (; at; at = timeline__stack(r->t, at)->parent) {
			leave(r, at);
			if (r->nodes[at].next_sibling) {
				at = r->nodes[at].next_sibling;
				break;
			}
		}
	}
}

/* The row of samples in which no frame has one. */
static int row_of_none(struct reading *r, uint32_t *row)
{
	static const char *const names[] = {
		[KPROF_FRAMES_ALL] = "[no stack]",
		[KPROF_FRAMES_NATIVE] = "[no native frame]",
		[KPROF_FRAMES_PYTHON] = "[no Python frame]",
	};
	bool ops = r->table->info.by == KPROF_DIFF_BY_OP;

	return diff_table__row(
		r->table,
		&(struct diff_key){"", ops ? "[outside of operators]" : names[r->wanted], ""}, row);
}

static int make_tree(struct reading *r)
{
	int err;

	r->nr_nodes = (uint32_t)timeline__nr_stacks(r->t) + 1;
	r->nodes = calloc(r->nr_nodes, sizeof(*r->nodes));
	if (!r->nodes)
		return no_memory();
	for (uint32_t id = r->nr_nodes; id-- > 1;) {
		struct node *parent = &r->nodes[timeline__stack(r->t, id)->parent];

		r->nodes[id].next_sibling = parent->first_child;
		parent->first_child = id;
	}
	err = row_of_none(r, &r->nodes[0].self_row);
	if (err)
		return err;
	r->open = calloc(r->table->entries.nr, sizeof(*r->open));
	if (!r->open)
		return no_memory();
	walk(r);
	return 0;
}

/* ---- counting ---- */

static void count_stack(struct reading *r, uint32_t id)
{
	struct node *n = &r->nodes[id];
	const uint32_t *list;
	struct rows rows = id ? rows_of(r, id, &list) : (struct rows){0};

	for (uint32_t i = 0; i < rows.nr; i++) {
		/* The same inlined function twice in one frame counts once. */
		if (i < MASK_BITS && n->again & 1ull << i)
			continue;
		diff_table__add(r->table, list[i], r->block, 0, (double)n->below_ns,
				(double)n->below);
	}
	/* Samples without a row of their own are in the root's, with all their time. */
	if (n->self_row == r->nodes[0].self_row)
		diff_table__add(r->table, n->self_row, r->block, (double)n->own_ns,
				(double)n->own_ns, (double)n->own);
	else
		diff_table__add(r->table, n->self_row, r->block, (double)n->own_ns, 0, 0);
}

/* Ends a block: gives rows what was added up by stack. */
static void flush(struct reading *r)
{
	struct node *nodes = r->nodes;
	uint64_t whole_ns = 0;

	if (!r->seen)
		return;
	for (uint32_t id = r->nr_nodes; id-- > 0;) {
		struct node *n = &nodes[id];

		add_capped(&whole_ns, n->own_ns);
		add_capped(&n->below_ns, n->own_ns);
		n->below += n->own;
		if (id) {
			uint32_t parent = timeline__stack(r->t, id)->parent;

			add_capped(&nodes[parent].below_ns, n->below_ns);
			nodes[parent].below += n->below;
		}
		if (n->below)
			count_stack(r, id);
		n->own_ns = n->below_ns = n->own = n->below = 0;
	}
	diff_table__add(r->table, DIFF_ROW_WHOLE, r->block, (double)whole_ns, (double)whole_ns,
			(double)r->seen);
	r->seen = 0;
}

/*
 * Samples come roughly in order of time: one that comes after later ones counts in their block, so
 * that there are only as many flushes as blocks whatever the file says.
 */
static int count_sample(void *ctx, const struct store_record *rec)
{
	struct reading *r = ctx;
	struct node *n = &r->nodes[rec->sample.stack];
	uint32_t block = diff_blocks__of(&r->table->blocks, rec->sample.time_ns);

	if (block == DIFF_MAX_BLOCKS)
		return 0;
	if (block > r->block) {
		flush(r);
		r->block = block;
	}
	add_capped(&n->own_ns, rec->sample.weight_ns);
	r->table->whole_var += (double)rec->sample.weight_ns * (double)rec->sample.weight_ns;
	n->own++;
	r->seen++;
	return 0;
}

static int by_stack(struct reading *r)
{
	int err = find_rows(r);

	if (!err)
		err = make_tree(r);
	if (!err)
		err = timeline__samples(r->t, 0, count_sample, r);
	if (!err)
		flush(r);
	return err;
}

/* ---- by thread ---- */

/* The row of a thread: by its name, since numbers differ from run to run. */
static int thread_row(struct reading *r, uint32_t thread, uint32_t *row)
{
	const struct tl_thread *th = timeline__thread(r->t, thread);
	int err;

	*row = r->threads[thread] - 1;
	if (r->threads[thread])
		return 0;
	err = diff_table__row(r->table, &(struct diff_key){"thread", th->title, ""}, row);
	r->threads[thread] = *row + 1;
	return err;
}

static int count_thread(void *ctx, const struct store_record *rec)
{
	struct reading *r = ctx;
	uint32_t block = diff_blocks__of(&r->table->blocks, rec->sample.time_ns), row;
	double ns = (double)rec->sample.weight_ns;
	int err;

	if (block == DIFF_MAX_BLOCKS)
		return 0;
	err = thread_row(r, rec->sample.thread, &row);
	if (err)
		return err;
	r->table->whole_var += ns * ns;
	diff_table__add(r->table, row, block, ns, ns, 1);
	diff_table__add(r->table, DIFF_ROW_WHOLE, block, ns, ns, 1);
	return 0;
}

static int by_thread(struct reading *r)
{
	r->threads = calloc(kprof_capture_info(r->t)->nr_threads + 1, sizeof(*r->threads));
	return r->threads ? timeline__samples(r->t, 0, count_thread, r) : no_memory();
}

int diff_read_samples(struct diff_table *table, struct kprof_capture *t, enum kprof_frames frames)
{
	struct reading r = {.table = table, .t = t, .wanted = frames};
	int err = table->info.by == KPROF_DIFF_BY_THREAD ? by_thread(&r) : by_stack(&r);

	free(r.nodes);
	free(r.frames);
	free(r.lists.data);
	free(r.open);
	free(r.threads);
	return err;
}
