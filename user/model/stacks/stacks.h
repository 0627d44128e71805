/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks merged into a tree: how many samples each function and its callees account for. A node is
 * a function reached on one path. Inlined functions are nodes of their own, and a frame that is an
 * operator's entry has an extra node for the operator above it. All functions of a module that have
 * no name share one node.
 *
 * Nodes are numbered in the order in which samples mention them, parents before their children. The
 * same capture always gives the same tree.
 */
#ifndef KPROF_STACKS_H
#define KPROF_STACKS_H

#include "model/timeline/timeline.h"

enum stack_kind {
	STACK_ROOT,
	STACK_PROCESS,
	STACK_THREAD,
	STACK_PYTHON,
	STACK_NATIVE,
	STACK_KERNEL,
	STACK_OP,   /* an operator: "aten::add" */
	STACK_NOTE, /* a remark by kprof: "[incomplete]" */
	STACK_KINDS,
};

/*
 * What nodes are merged by: the function and the file or module that it belongs to. Lives as long
 * as the tree.
 */
struct stack_symbol {
	uint32_t id; /* dense from 0, by first appearance */
	enum stack_kind kind;
	/* The name as lists show it: "forward (model.py)", "at::native::add", "python3 (4242)". */
	const char *name;
	const char *function; /* the name without the file: "forward" */
	/* The name with template arguments, if they are the same in all of its frames. */
	const char *full;
	const char *file;   /* source file; "" unknown */
	const char *module; /* path of the ELF file; "" none */
	/*
	 * The PID or TID of a process or thread, 0 of short-lived processes of one name; with
	 * python_lines the line of a Python function; else 0.
	 */
	uint64_t number;
	bool nameless; /* all functions of a module that have no name: "[libx.so]" */
};

struct stack_node {
	const struct stack_symbol *symbol;
	uint32_t parent; /* the root's is 0, itself */
	/* 0: none. Set by stack_tree__sum(), siblings in order of their names. */
	uint32_t first_child, next_sibling;
	uint32_t depth;                 /* distance from the root; the root's is 0 */
	uint64_t self_samples, self_ns; /* of samples whose innermost frame this is */
	uint64_t samples, total_ns; /* of this node and all below it; set by stack_tree__sum() */
};

struct stack_counts {
	uint64_t samples, weight_ns;
	/* Samples whose stack reaches the thread's first function, with no frame cut. */
	uint64_t whole;
	uint64_t walked;     /* samples whose native stack was to be walked */
	uint64_t off_cpu_ns; /* the part of the weight that was spent off a CPU */
};

/* What a capture says about its sampling as a whole, not by process. */
struct stack_rate {
	double hz;     /* samples a second; 0: unknown */
	uint64_t lost; /* samples that were due but not recorded */
};

struct stack_tree;
/*
 * Makes a tree that has only a root. python_lines: a Python function has a node for each executed
 * line. Functions that add to the tree return -E2BIG when it would take too much memory. Errors are
 * set.
 */
int stack_tree__new(struct kprof_capture *t, bool python_lines, struct stack_tree **out);
void stack_tree__free(struct stack_tree *s); /* NULL is fine */
/*
 * Adds the samples of process pid, or of all (0). Below the root there is a node for each process
 * if the capture has several, then one for each thread. Where all processes of a machine were
 * recorded, those that began and ended meanwhile share a node by name. -ENODATA, with a hint, when
 * there are no samples.
 */
int stack_tree__read(struct stack_tree *s, pid_t pid);
/*
 * Streams the samples that stack_tree__read() has added, again, each with its node. fn may return
 * non-zero to stop; that value is returned.
 */
int stack_tree__samples(struct stack_tree *s, pid_t pid,
			int (*fn)(void *ctx, const struct store_record *r, uint32_t node),
			void *ctx);
/*
 * Finds or adds the node of a stack (timeline__stack()) below the node root. For stack 0 this is
 * root itself.
 */
int stack_tree__leaf(struct stack_tree *s, uint32_t root, uint32_t stack, uint32_t *node);
/*
 * Goes on from a sample's leaf to the node that says what the thread waited for. Samples that are
 * no wait have none.
 */
int stack_tree__reason(struct stack_tree *s, const struct store_record *r, uint32_t *node);
/* Fills in totals and children, in a stable order. Nothing may be added afterwards. */
int stack_tree__sum(struct stack_tree *s);

uint32_t stack_tree__nr_nodes(const struct stack_tree *s);
/*
 * The nodes on the path from the root, which is left out, to a node, outermost first. *nr: the
 * node's depth. Valid until the next call.
 */
int stack_tree__path(struct stack_tree *s, uint32_t node, const uint32_t **path, uint32_t *nr);
/* Valid until the next call that adds a node. */
const struct stack_node *stack_tree__node(const struct stack_tree *s, uint32_t i);
/*
 * The node after i in a depth-first walk, parents first; 0: i was the last one. Needs
 * stack_tree__sum().
 */
uint32_t stack_tree__next(const struct stack_tree *s, uint32_t i);
uint32_t stack_tree__nr_symbols(const struct stack_tree *s);
const struct stack_symbol *stack_tree__symbol(const struct stack_tree *s, uint32_t i);
const struct stack_counts *stack_tree__counts(const struct stack_tree *s);

/* ---- about samples, without a tree (info.c) ---- */

/* Sets the error for a capture without samples, with a hint on how to take some. */
int stack_no_samples(const struct kprof_capture *t, pid_t pid);
struct stack_rate stack_rate_of(const struct kprof_capture *t);
/* How far a sample's stack goes, by the sample's flags. */
enum stack_reach {
	STACK_WHOLE,      /* the stack goes to the thread's first function */
	STACK_NOT_WALKED, /* there was no native stack to walk */
	STACK_INCOMPLETE, /* the walk ended early, or frames were cut */
};
enum stack_reach stack_reach_of(uint32_t flags);
bool stack_off_cpu(uint32_t flags);

#endif
