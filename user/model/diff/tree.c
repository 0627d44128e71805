// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stacks of two sets of captures in one tree. Each capture is read into a tree of its own
 * (model/stacks/), which is then merged by names into the common one; so only names outlive a
 * capture. Threads are left out: their numbers and often their names differ from run to run.
 * Nothing here recurses, since the files decide how deep stacks are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "store/store.h"
#include "util/error.h"
#include "util/order.h"

/* As many as one capture's tree may have (model/stacks/tree.c). */
#define MAX_NODES (1u << 22)

struct symbol {
	enum stack_kind kind;
	char *name, *where;
};

struct diff_tree {
	struct vec nodes;      /* struct diff_node */
	struct vec symbols;    /* struct symbol */
	struct map64 children; /* node, by parent << 32 | symbol */
	struct map64 by_hash;  /* symbol + 1, by hash; equal hashes take the following keys */
	enum kprof_diff_per per;
	double units[DIFF_SIDES];
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a tree of stacks");
}

/* ---- nodes ---- */

static struct diff_node *node_at(const struct diff_tree *t, uint32_t i)
{
	return (struct diff_node *)t->nodes.data + i;
}

static struct symbol *symbol_at(const struct diff_tree *t, size_t i)
{
	return (struct symbol *)t->symbols.data + i;
}

static int add_symbol(struct diff_tree *t, enum stack_kind kind, const char *name,
		      const char *where)
{
	struct symbol *s = vec_push(&t->symbols, sizeof(*s));

	if (!s)
		return no_memory();
	*s = (struct symbol){kind, strdup(name), strdup(where)};
	return s->name && s->where ? 0 : no_memory();
}

static int intern(struct diff_tree *t, enum stack_kind kind, const char *name, const char *where,
		  uint32_t *out)
{
	uint64_t hash = hash64_text(hash64_text(kind, name), path_base(where)) >> 1;
	const struct symbol *known;
	uint64_t *slot;
	int err;

	for (;; hash++) {
		slot = map64__at(&t->by_hash, hash);
		if (!slot)
			return no_memory();
		if (!*slot)
			break;
		*out = (uint32_t)*slot - 1;
		known = symbol_at(t, *out);
		if (known->kind == kind && !strcmp(known->name, name) &&
		    !strcmp(path_base(known->where), path_base(where)))
			return 0;
	}
	err = add_symbol(t, kind, name, where);
	if (err)
		return err;
	*slot = t->symbols.nr;
	*out = (uint32_t)t->symbols.nr - 1;
	return 0;
}

/* Finds or adds a child; the root is its own parent. */
static int child(struct diff_tree *t, uint32_t parent, enum stack_kind kind, const char *name,
		 const char *where, uint32_t *out)
{
	struct diff_node *n;
	uint32_t symbol = 0;
	uint64_t *slot;
	int err = intern(t, kind, name, where, &symbol);

	if (err)
		return err;
	slot = map64__at(&t->children, (uint64_t)parent << 32 | symbol);
	if (!slot)
		return no_memory();
	*out = (uint32_t)*slot;
	if (*slot)
		return 0;
	if (t->nodes.nr == MAX_NODES)
		return error_set(-E2BIG, NULL, "the stacks make a tree of more than %u nodes",
				 MAX_NODES);
	n = vec_push(&t->nodes, sizeof(*n));
	if (!n)
		return no_memory();
	*n = (struct diff_node){.parent = parent,
				.depth = t->nodes.nr > 1 ? node_at(t, parent)->depth + 1 : 0,
				.kind = kind,
				.name = symbol_at(t, symbol)->name,
				.where = symbol_at(t, symbol)->where};
	*slot = t->nodes.nr - 1;
	*out = (uint32_t)*slot;
	return 0;
}

/* ---- one capture ---- */

struct part { /* of a node of the capture's own tree */
	uint64_t self_ns, below_ns;
	uint32_t merged; /* its node in the common tree; 0: none */
};

struct reading {
	struct diff_tree *tree;
	struct kprof_capture *t;
	struct stack_tree *stacks;
	struct diff_blocks blocks;
	enum diff_side side;
	struct part *parts[2]; /* by node: of stacks that are whole, and of the others */
	size_t cap;
	uint64_t samples;
};

static int make_room(struct reading *r, uint32_t node)
{
	size_t cap = r->cap ? r->cap : 1024;
	struct part *more;

	while (cap <= node)
		cap *= 2;
	if (cap == r->cap)
		return 0;
	for (int i = 0; i < 2; i++) {
		more = reallocarray(r->parts[i], cap, sizeof(*more));
		if (!more)
			return no_memory();
		memset(more + r->cap, 0, (cap - r->cap) * sizeof(*more));
		r->parts[i] = more;
	}
	r->cap = cap;
	return 0;
}

static int add_sample(void *ctx, const struct store_record *rec)
{
	struct reading *r = ctx;
	bool broken = stack_reach_of(rec->sample.flags) == STACK_INCOMPLETE;
	uint32_t node;
	int err;

	if (diff_blocks__of(&r->blocks, rec->sample.time_ns) == DIFF_MAX_BLOCKS)
		return 0;
	err = stack_tree__leaf(r->stacks, 0, rec->sample.stack, &node);
	if (!err)
		err = make_room(r, node);
	if (err)
		return err;
	add_capped(&r->parts[broken][node].self_ns, rec->sample.weight_ns);
	r->samples++;
	return 0;
}

static int merge_node(struct reading *r, struct part *parts, uint32_t node, uint32_t root)
{
	const struct stack_node *n = stack_tree__node(r->stacks, node);
	uint32_t parent = n->parent ? parts[n->parent].merged : root;
	const struct stack_symbol *s = n->symbol;
	int err = child(r->tree, parent, s->kind, s->name,
			s->kind == STACK_PYTHON ? s->file : s->module, &parts[node].merged);

	if (!err)
		node_at(r->tree, parts[node].merged)->self[r->side] += (double)parts[node].self_ns;
	return err;
}

static int merge(struct reading *r, struct part *parts, const char *note)
{
	uint32_t nr = stack_tree__nr_nodes(r->stacks), root = 0, none;
	int err = 0;

	for (uint32_t i = nr; i-- > 0;) {
		add_capped(&parts[i].below_ns, parts[i].self_ns);
		if (i)
			add_capped(&parts[stack_tree__node(r->stacks, i)->parent].below_ns,
				   parts[i].below_ns);
	}
	if (parts[0].below_ns && note)
		err = child(r->tree, 0, STACK_NOTE, note, "", &root);
	if (!err && parts[0].self_ns) {
		err = child(r->tree, root, STACK_NOTE, "[no stack]", "", &none);
		if (!err)
			node_at(r->tree, none)->self[r->side] += (double)parts[0].self_ns;
	}
	for (uint32_t i = 1; i < nr && !err; i++)
		if (parts[i].below_ns)
			err = merge_node(r, parts, i, root);
	return err;
}

static int read_stacks(struct reading *r, const char *step)
{
	int err = diff_blocks__make(r->t, r->tree->per, step, &r->blocks);

	if (!err)
		err = stack_tree__new(r->t, false, &r->stacks);
	if (!err)
		err = timeline__samples(r->t, 0, add_sample, r);
	if (!err && !r->samples)
		err = stack_no_samples(r->t, 0);
	if (!err)
		err = make_room(r, stack_tree__nr_nodes(r->stacks));
	if (!err)
		err = merge(r, r->parts[0], NULL);
	if (!err)
		err = merge(r, r->parts[1], "[incomplete]");
	if (err)
		return err;
	r->tree->units[r->side] +=
		r->tree->per == KPROF_DIFF_PER_SHARE
			? ((double)r->parts[0][0].below_ns + (double)r->parts[1][0].below_ns) /
				  NSEC_PER_SEC
			: r->blocks.units * r->blocks.nr;
	return 0;
}

static int read_capture(struct diff_tree *tree, const char *path, enum diff_side side,
			const struct kprof_diff_flame_opts *opts)
{
	struct reading r = {.tree = tree, .side = side};
	int err = kprof_capture_open(path, &r.t);

	if (err)
		return err;
	kprof_capture_show_interpreter(r.t, opts->interpreter);
	err = read_stacks(&r, opts->step);
	stack_tree__free(r.stacks);
	free(r.parts[0]);
	free(r.parts[1]);
	kprof_capture_close(r.t);
	return err;
}

/* ---- the common tree ---- */

static int by_parent_name(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct diff_node *p = node_at(ctx, x), *q = node_at(ctx, y);
	int order = order_u64(p->parent, q->parent);

	if (!order)
		order = strcmp(p->name, q->name);
	return order ? order : order_u64(x, y);
}

/* Fills in totals and children. */
static int sum(struct diff_tree *t)
{
	uint32_t nr = (uint32_t)t->nodes.nr, last = 0;
	uint32_t *sorted = calloc(nr, sizeof(*sorted));

	if (!sorted)
		return no_memory();
	for (uint32_t i = nr; i-- > 0;) {
		struct diff_node *n = node_at(t, i);

		sorted[i] = i;
		for (int side = 0; side < DIFF_SIDES; side++) {
			n->total[side] += n->self[side];
			if (i)
				node_at(t, n->parent)->total[side] += n->total[side];
		}
	}
	qsort_r(sorted + 1, nr - 1, sizeof(*sorted), by_parent_name, t);
	for (uint32_t i = 1; i < nr; i++) {
		struct diff_node *n = node_at(t, sorted[i]);

		if (last && node_at(t, last)->parent == n->parent)
			node_at(t, last)->next_sibling = sorted[i];
		else
			node_at(t, n->parent)->first_child = sorted[i];
		last = sorted[i];
	}
	free(sorted);
	return 0;
}

static int read_sets(struct diff_tree *t, const struct kprof_diff_set *const sets[DIFF_SIDES],
		     const struct kprof_diff_flame_opts *opts)
{
	uint32_t root;
	int err = child(t, 0, STACK_ROOT, "all", "", &root);

	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0; i < sets[side]->nr && !err; i++)
			err = read_capture(t, sets[side]->paths[i], (enum diff_side)side, opts);
	return err ? err : sum(t);
}

int diff_tree__new(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		   const struct kprof_diff_flame_opts *opts, struct diff_tree **out)
{
	const struct kprof_diff_set *const sets[DIFF_SIDES] = {before, after};
	struct diff_tree *t = calloc(1, sizeof(*t));
	int err;

	*out = NULL;
	if (!t)
		return no_memory();
	t->per = opts->per == KPROF_DIFF_PER_AUTO ? KPROF_DIFF_PER_SECOND : opts->per;
	err = read_sets(t, sets, opts);
	if (err) {
		diff_tree__free(t);
		return err;
	}
	*out = t;
	return 0;
}

void diff_tree__free(struct diff_tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->symbols.nr; i++) {
		free(symbol_at(t, i)->name);
		free(symbol_at(t, i)->where);
	}
	free(t->symbols.data);
	free(t->nodes.data);
	map64__free(&t->children);
	map64__free(&t->by_hash);
	free(t);
}

uint32_t diff_tree__nr(const struct diff_tree *t)
{
	return (uint32_t)t->nodes.nr;
}

const struct diff_node *diff_tree__node(const struct diff_tree *t, uint32_t i)
{
	return node_at(t, i);
}

uint32_t diff_tree__next(const struct diff_tree *t, uint32_t i)
{
	if (node_at(t, i)->first_child)
		return node_at(t, i)->first_child;
	while (i && !node_at(t, i)->next_sibling)
		i = node_at(t, i)->parent;
	return node_at(t, i)->next_sibling;
}

enum kprof_diff_per diff_tree__per(const struct diff_tree *t)
{
	return t->per;
}

double diff_tree__units(const struct diff_tree *t, enum diff_side side)
{
	return t->units[side];
}
