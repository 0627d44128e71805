/* SPDX-License-Identifier: BSD-2-Clause */
/* Which Python functions go on, by the stacks of a thread's operators. The inside of the walk. */
#ifndef KPROF_TIMELINE_PYTHON_H
#define KPROF_TIMELINE_PYTHON_H

#include "model/timeline/timeline.h"

struct functions;

int functions__new(struct kprof_capture *t, const struct tl_walker *walker, void *ctx,
		   struct functions **out);
void functions__free(struct functions *f);

struct functions_span {
	uint64_t start_ns, id;
	bool module; /* a call of a module of PyTorch */
};

#define FUNCTIONS_MOST_NEW 80

/*
 * Spans of a thread that begin one inside the other: calls of modules, and the operator that the
 * first stack inside of them belongs to.
 */
struct functions_new {
	uint32_t thread, base; /* base: open spans around them */
	uint32_t nr;
	struct functions_span spans[FUNCTIONS_MOST_NEW];
	uint32_t stack;  /* of the innermost; 0: none */
	bool range;      /* the innermost may go on when the functions around it do not */
	uint32_t module; /* number of the innermost call of a module around them, from 1; 0: none */
	uint64_t module_id;
};

/* Leaves functions that are over, and learns of those around the new spans. */
int functions__begun(struct functions *f, const struct functions_new *n);
/* Hands out the functions around the open span with this index, and outside of it. */
int functions__enter(struct functions *f, uint32_t thread, uint32_t index);
/* The open span with this index has ended. flags: KPROF_EVENT_* of the end */
int functions__ended(struct functions *f, uint32_t thread, uint32_t index, uint64_t end_ns,
		     uint32_t flags);
/* Leaves all of them, at the end of the recording. */
int functions__finish(struct functions *f);

#endif
