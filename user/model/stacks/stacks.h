/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks merged into a tree: what each function did, and what it had done. A node is a function
 * reached on one path; inlined functions are nodes of their own, and a frame that is an operator's
 * entry has a node for the operator in front of it. Functions without a name are one a module.
 *
 * Nodes are numbered in the order in which the samples bring them up, parents before their
 * children. The same capture always gives the same tree.
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
	STACK_NOTE, /* said by kprof: "[incomplete]" */
	STACK_KINDS,
};

/* What nodes are merged by: the function and where it is at home. Lives as long as the tree. */
struct stack_symbol {
	uint32_t id; /* dense from 0, by first appearance */
	enum stack_kind kind;
	/* As lists show it: "forward (model.py)", "at::native::add", "python3 (4242)". */
	const char *name;
	const char *function; /* without the file: "forward" */
	const char *full; /* with all template arguments, where they are the same in all of them */
	const char *file; /* of the source; "" not known */
	const char *module; /* the ELF file's path; "" none */
	/* A process's or a thread's; the line by stack_tree__python_lines(); else 0. */
	uint64_t number;
	bool nameless; /* a module's functions without names: "[libx.so]" */
};

struct stack_node {
	const struct stack_symbol *symbol;
	uint32_t parent; /* of the root: itself, 0 */
	uint32_t first_child,
		next_sibling;           /* 0: none; by stack_tree__sum(), in order of their names */
	uint32_t depth;                 /* of the root: 0 */
	uint64_t self_samples, self_ns; /* that ended here */
	uint64_t samples, total_ns;     /* here and below: by stack_tree__sum() */
};

struct stack_counts {
	uint64_t samples, weight_ns;
	uint64_t whole;      /* reached the thread's first function, none of it cut */
	uint64_t walked;     /* of so many that were to */
	uint64_t off_cpu_ns; /* of the weight */
};

/* What a capture says of its sampling, as a whole: no process alone. */
struct stack_rate {
	double hz;     /* 0: not known */
	uint64_t lost; /* samples that were due and not kept */
};

struct stack_tree;
/*
 * With a root alone. -E2BIG from what adds to it: more nodes than memory should hold. Errors set.
 */
int stack_tree__new(struct timeline *t, struct stack_tree **out);
/* From now on a Python function has a node for each of its lines that is executed. */
void stack_tree__python_lines(struct stack_tree *s);
void stack_tree__free(struct stack_tree *s); /* NULL is fine */
/*
 * Adds the samples of process pid, or of all (0): below the root a node for each process where the
 * capture has several, then one for each thread. -ENODATA, with a hint, when there are none.
 * progress as of an export; may be NULL.
 */
int stack_tree__read(struct stack_tree *s, const struct kprof_export_opts *opts);
/* The node of a stack (timeline__stack()) below node root; 0: root itself. */
int stack_tree__leaf(struct stack_tree *s, uint32_t root, uint32_t stack, uint32_t *node);
/* Fills in totals and children, in a stable order. Nothing is added afterwards. */
int stack_tree__sum(struct stack_tree *s);

uint32_t stack_tree__nr_nodes(const struct stack_tree *s);
/*
 * The nodes from the root, which is left out, to one, outermost first, until the next call. *nr:
 * its depth.
 */
int stack_tree__path(struct stack_tree *s, uint32_t node, const uint32_t **path, uint32_t *nr);
/* Until the next call that adds one. */
const struct stack_node *stack_tree__node(const struct stack_tree *s, uint32_t i);
/*
 * The node after i when the tree is walked down and across, parents first; 0: i was the last. After
 * the sums.
 */
uint32_t stack_tree__next(const struct stack_tree *s, uint32_t i);
uint32_t stack_tree__nr_symbols(const struct stack_tree *s);
const struct stack_symbol *stack_tree__symbol(const struct stack_tree *s, uint32_t i);
const struct stack_counts *stack_tree__counts(const struct stack_tree *s);

/* ---- of the samples, without a tree (info.c) ---- */

/* Tells the caller's progress function; -ECANCELED when it said so. *seen counts the calls. */
int stack_progress(struct timeline *t, const struct kprof_export_opts *opts, uint64_t *seen);
/* There is nothing to draw: sets the error that says how samples are taken. */
int stack_no_samples(const struct timeline *t, pid_t pid);
struct stack_rate stack_rate_of(const struct timeline *t);
/* How far a sample's stack goes. */
enum stack_reach {
	STACK_WHOLE,      /* to the thread's first function */
	STACK_NOT_WALKED, /* there was nothing native to walk: it is what it is */
	STACK_INCOMPLETE, /* the walk ended before, or frames were cut */
};
enum stack_reach stack_reach_of(const struct tl_sample *sample);
bool stack_off_cpu(const struct tl_sample *sample);

#endif
