// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collapsed stacks, as Brendan Gregg's flamegraph.pl and many other programs read them: one line
 * for each distinct stack, `thread;outer;…;inner NUMBER`. The number is in microseconds, not
 * samples, since samples have different weights; of memory that is allocated, in bytes. A kernel
 * frame ends in _[k], by which those programs colour it.
 */
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/write/write.h"
#include "sink/sink.h"

struct folded {
	struct stack_tree *tree;
	bool bytes; /* not time */
	struct jsonw w;
};

/*
 * `;` separates frames, so it is replaced; text_plain() replaces other bytes that a line can not
 * have.
 */
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
	const uint32_t *path;
	uint32_t nr;
	int err = stack_tree__path(f->tree, node, &path, &nr);

	if (err)
		return err;
	for (uint32_t i = 0; i < nr; i++) {
		n = stack_tree__node(f->tree, path[i]);
		put_name(&f->w, n->symbol->name);
		if (n->symbol->kind == STACK_KERNEL)
			jsonw__text(&f->w, "_[k]");
		jsonw__text(&f->w, i + 1 < nr ? ";" : " ");
	}
	n = stack_tree__node(f->tree, node);
	/* Rounded up, so that no stack has the number 0. */
	jsonw__u64(&f->w, f->bytes ? n->self_ns : n->self_ns / 1000 + (n->self_ns % 1000 != 0));
	jsonw__text(&f->w, "\n");
	return f->w.err;
}

/* Writes all nodes in the tree's order, by name, a node before its children; without recursion. */
static int put_all(struct folded *f)
{
	uint32_t at = 0;
	int err = 0;

	do {
		if (stack_tree__node(f->tree, at)->self_samples)
			err = put_stack(f, at);
		at = stack_tree__next(f->tree, at);
	} while (at && !err);
	return err;
}

static int folded_write(struct kprof_capture *t, const char *path,
			const struct kprof_export_opts *opts)
{
	struct folded f = {.bytes = timeline__has_blocks(t)};
	int err = stack_tree__new(t, false, &f.tree);

	if (!err)
		err = stack_tree__read(f.tree, opts->pid);
	if (!err)
		err = stack_tree__sum(f.tree);
	if (!err)
		err = stream__start(path, opts, false, &f.w);
	if (!err)
		err = stream__end(&f.w, put_all(&f));
	stack_tree__free(f.tree);
	return err;
}

const struct sink_ops sink_folded = {
	.name = "folded",
	.suffixes = {".folded"},
	.samples = true,
	.blocks = true,
	.write = folded_write,
};
