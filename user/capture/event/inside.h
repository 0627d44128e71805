/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings of what threads do inside of Python functions, or of calls of modules, of one name.
 * The kernel's programs look for these on the threads' Python stacks (bpf/within_python.h); here
 * they are told in which processes there is an interpreter, and where.
 */
#ifndef KPROF_CAPTURE_INSIDE_H
#define KPROF_CAPTURE_INSIDE_H

#include "capture/target/target.h"
#include "kprof/python.h"
#include "kprof/within.h"

struct attacher;
struct inside;

struct inside_opts {
	struct targets *targets;
	struct attacher *attacher;
	const char *name; /* the pattern; must stay valid */
	enum kprof_within_of of;
	/* The layout of the process's interpreter in memory; NULL: not found (yet), or none. */
	const struct kprof_python *(*layout)(void *ctx, struct target *t);
	void *ctx;
};

int inside__new(const struct inside_opts *opts, struct inside **out);
/* in may be NULL, in all of these. */
void inside__free(struct inside *in);
/* Looks for the interpreter in processes in which it was not found so far. */
int inside__tend(struct inside *in, uint64_t now_ns);
/* The process runs another program, or has ended. */
void inside__forget(struct inside *in, struct target *t);

#endif
