// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collapsed stacks, as Brendan Gregg's flamegraph.pl reads them and many others do: a line for each stack that
 * differs, `thread;outer;…;inner NUMBER`. The number is of microseconds, not of samples: what a sample stands for is
 * not the same for all of them. A kernel's frame ends in _[k], the mark that those programs colour it by.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/write/write.h"
#include "sink/sink.h"
#include "util/error.h"

struct folded {
	struct stack_tree *tree;
	struct jsonw w;
	uint32_t *path; /* from a node to the root */
	size_t cap_path;
};

/* `;` is what stands between frames; the others that a line cannot have, text_plain() takes. */
static void put_name(struct jsonw *w, const char *name)
{
	size_t len;

	for (; *name; name += len) {
		len = strcspn(name, ";");
		text_plain(w, name, len);
		if (name[len] == ';') {
			jsonw__text(w, ":");
			len++;
		}
	}
}

static int put_stack(struct folded *f, uint32_t node)
{
	const struct stack_node *n;
	size_t nr = 0;

	for (uint32_t i = node; i; i = stack_tree__node(f->tree, i)->parent)
		f->path[nr++] = i;
	while (nr) {
		n = stack_tree__node(f->tree, f->path[--nr]);
		put_name(&f->w, n->symbol->name);
		if (n->symbol->kind == STACK_KERNEL)
			jsonw__text(&f->w, "_[k]");
		jsonw__text(&f->w, nr ? ";" : " ");
	}
	n = stack_tree__node(f->tree, node);
	/* Up, so that no stack is left without a number. */
	jsonw__u64(&f->w, n->self_ns / 1000 + (n->self_ns % 1000 != 0));
	jsonw__text(&f->w, "\n");
	return f->w.err;
}

/* In the order of the tree's names: a node before its children, without recursion. */
static int put_all(struct folded *f)
{
	const struct stack_node *n;
	uint32_t at = 0, depth = 0;
	int err = 0;

	for (uint32_t i = 0; i < stack_tree__nr_nodes(f->tree); i++)
		if (stack_tree__node(f->tree, i)->depth > depth)
			depth = stack_tree__node(f->tree, i)->depth;
	f->path = calloc((size_t)depth + 1, sizeof(*f->path));
	if (!f->path)
		return error_set(-ENOMEM, NULL, "out of memory for a stack of %u frames", depth);
	do {
		n = stack_tree__node(f->tree, at);
		if (n->self_samples)
			err = put_stack(f, at);
		at = stack_tree__next(f->tree, at);
	} while (at && !err);
	return err;
}

static int folded_write(struct timeline *t, const char *path, const struct kprof_export_opts *opts)
{
	struct folded f = {0};
	struct stream *stream;
	int err = stack_tree__new(t, &f.tree);

	if (!err)
		err = stack_tree__read(f.tree, opts);
	if (!err)
		err = stack_tree__sum(f.tree);
	if (!err)
		err = stream__start(path, opts, false, &stream, &f.w);
	if (!err)
		err = stream__end(stream, &f.w, put_all(&f));
	stack_tree__free(f.tree);
	free(f.path);
	return err;
}

static const char *const suffixes[] = {".folded", NULL};

const struct sink_ops sink_folded = {
	.name = "folded",
	.suffixes = suffixes,
	.samples = true,
	.write = folded_write,
};
