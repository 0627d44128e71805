/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sets of captures, compared: tables (diff.c, by kprof/diff.h), and for the flame graph the
 * tree in which the stacks of both are merged.
 *
 * One capture is open at a time. What outlives it are names and, for each row and side, sums: the
 * memory depends on the number of different names, not on that of captures or on their length.
 */
#ifndef KPROF_MODEL_DIFF_H
#define KPROF_MODEL_DIFF_H

#include "kprof/diff.h"
#include "model/stacks/stacks.h"

enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

/*
 * A function on one path, in both sides. Functions are the same if kind, name and the base name of
 * their file or module are: addresses and folders differ from build to build.
 */
struct diff_node {
	uint32_t parent, first_child, next_sibling, depth;
	enum stack_kind kind;
	const char *name;  /* as struct stack_symbol has it */
	const char *where; /* file or module; "" unknown */
	/* Nanoseconds; of the node itself, and with all below it. */
	double self[DIFF_SIDES], total[DIFF_SIDES];
};

struct diff_tree;
/* Reads all samples of both sides. -ENODATA, with a hint, when a side has none. */
int diff_tree__new(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		   const struct kprof_diff_flame_opts *opts, struct diff_tree **out);
void diff_tree__free(struct diff_tree *t); /* NULL is fine */
uint32_t diff_tree__nr(const struct diff_tree *t);
/* Node 0 is the root; parents come before their children. */
const struct diff_node *diff_tree__node(const struct diff_tree *t, uint32_t i);
/* The node after i in a depth-first walk, siblings by name; 0: i was the last one. */
uint32_t diff_tree__next(const struct diff_tree *t, uint32_t i);
enum kprof_diff_per diff_tree__per(const struct diff_tree *t);
/* Steps, seconds or runs of a side. */
double diff_tree__units(const struct diff_tree *t, enum diff_side side);

#endif
