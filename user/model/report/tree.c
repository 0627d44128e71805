// SPDX-License-Identifier: BSD-2-Clause
/*
 * The call tree: spans merged by the path of names that leads to them, over all threads. Nothing
 * here recurses, since the file decides how deep a tree is.
 */
#include "kprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/timeline/timeline.h"
#include "model/report/groups.h"
#include "util/map64.h"
#include "util/error.h"

/* Distinct paths. Programs have about ten thousand; this many take about 400 MB to build. */
#define MAX_NODES (1u << 21)
/* Nodes are allocated in blocks and never move, since they point at each other. */
#define BLOCK_NODES 4096

struct node {
	struct kprof_node pub;
	uint32_t id;
};

struct kprof_tree {
	struct node *blocks[MAX_NODES / BLOCK_NODES];
	uint32_t nr; /* number of nodes; the root is number 0 */
	struct groups groups;
};

/* While the spans are read. */
struct build {
	struct kprof_tree *tree;
	struct map64 children; /* node's number, by parent's number << 32 | group */
};

static struct node *node_at(const struct kprof_tree *t, uint32_t id)
{
	return &t->blocks[id / BLOCK_NODES][id % BLOCK_NODES];
}

static struct node *add_node(struct kprof_tree *t, const char *name, struct node *parent)
{
	struct node **block = &t->blocks[t->nr / BLOCK_NODES];
	struct node *n;

	if (!*block)
		*block = calloc(BLOCK_NODES, sizeof(**block));
	if (!*block) {
		error_set(-ENOMEM, NULL, "out of memory for a call tree of %u nodes", t->nr);
		return NULL;
	}
	n = node_at(t, t->nr);
	n->id = t->nr++;
	n->pub.name = name;
	n->pub.parent = parent ? &parent->pub : NULL;
	return n;
}

static int begin_node(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct build *b = ctx;
	struct node *parent = parent_data ? parent_data : node_at(b->tree, 0);
	uint32_t group = b->tree->groups.of_what[s->description->id - 1];
	uint64_t *child = map64__at(&b->children, (uint64_t)parent->id << 32 | group);

	if (!child)
		return error_set(-ENOMEM, NULL, "out of memory for a call tree of %u nodes",
				 b->tree->nr);
	if (!*child) {
		struct node *n;

		if (b->tree->nr == MAX_NODES)
			return error_set(-E2BIG, NULL, "the call tree has more than %u nodes",
					 MAX_NODES);
		n = add_node(b->tree, b->tree->groups.groups[group].name, parent);
		if (!n)
			return -ENOMEM;
		*child = n->id;
	}
	*data = node_at(b->tree, (uint32_t)*child);
	return 0;
}

static int end_node(void *ctx, const struct tl_span *s, void *data)
{
	struct node *n = data;

	n->pub.calls += !(s->beyond & TL_BEFORE);
	if (s->flags & KPROF_EVENT_CLOSED) /* its duration is unknown */
		return 0;
	n->pub.total_ns += s->end_ns - s->start_ns;
	n->pub.self_ns += s->self_ns;
	return 0;
}

static int by_parent_total(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a;
	const struct node *y = *(const struct node *const *)b;
	const struct node *px = (const struct node *)x->pub.parent; /* pub comes first in a node */
	const struct node *py = (const struct node *)y->pub.parent;

	if (px != py)
		return px->id < py->id ? -1 : 1;
	if (x->pub.total_ns != y->pub.total_ns)
		return x->pub.total_ns > y->pub.total_ns ? -1 : 1;
	return strcmp(x->pub.name, y->pub.name);
}

/* Links every node to its parent; siblings by descending total, then by name. */
static int link_nodes(struct kprof_tree *t)
{
	struct node **sorted = calloc(t->nr, sizeof(*sorted));
	struct node *last = NULL;

	if (!sorted)
		return error_set(-ENOMEM, NULL, "out of memory for a call tree of %u nodes", t->nr);
	for (uint32_t i = 1; i < t->nr; i++)
		sorted[i - 1] = node_at(t, i);
	qsort(sorted, t->nr - 1, sizeof(*sorted), by_parent_total);
	for (uint32_t i = 0; i < t->nr - 1; i++) {
		struct node *n = sorted[i], *parent = (struct node *)n->pub.parent;

		if (last && last->pub.parent == n->pub.parent)
			last->pub.next_sibling = &n->pub;
		else
			parent->pub.first_child = &n->pub;
		if (!parent->id)
			parent->pub.total_ns += n->pub.total_ns;
		last = n;
	}
	free(sorted);
	return 0;
}

int kprof_tree_new(struct kprof_capture *c, struct kprof_tree **out)
{
	static const struct tl_walker walker = {.begin = begin_node, .end = end_node};
	struct build b = {0};
	int err;

	error_clear();
	*out = NULL;
	b.tree = calloc(1, sizeof(*b.tree));
	if (!b.tree)
		return error_set(-ENOMEM, NULL, "out of memory for a call tree");
	timeline__cut(c, true);
	err = groups__make(c, GROUPS_BY_NAME, &b.tree->groups);
	if (!err && !add_node(b.tree, "", NULL))
		err = -ENOMEM;
	if (!err)
		err = timeline__walk(c, &walker, &b);
	timeline__cut(c, false);
	if (!err)
		err = link_nodes(b.tree);
	map64__free(&b.children);
	if (err) {
		kprof_tree_free(b.tree);
		return err;
	}
	*out = b.tree;
	return 0;
}

const struct kprof_node *kprof_tree_root(const struct kprof_tree *t)
{
	return &node_at(t, 0)->pub;
}

void kprof_tree_free(struct kprof_tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < MAX_NODES / BLOCK_NODES && t->blocks[i]; i++)
		free(t->blocks[i]);
	groups__free(&t->groups);
	free(t);
}
