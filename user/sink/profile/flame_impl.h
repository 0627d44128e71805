/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the flame graph sink. flame.c: the frames; flame_facts.c: what the picture states
 * of the recording.
 */
#ifndef KPROF_FLAME_IMPL_H
#define KPROF_FLAME_IMPL_H

#include "model/stacks/stacks.h"
#include "sink/write/write.h"

struct flame_facts {
	char *command; /* the program's command line, or kprof's own */
	char *facts;   /* text of the line below */
	struct stack_counts counts;
	uint64_t left_out; /* frames that are not drawn */
	uint64_t self_ns[STACK_KINDS];
};

int flame_facts__read(struct flame_facts *f, struct kprof_capture *t, const struct stack_tree *tree,
		      const struct kprof_export_opts *opts);
void flame_facts__free(struct flame_facts *f);
/* Writes title and facts, beginning at x. */
void flame_put_facts(struct jsonw *w, const struct flame_facts *f, unsigned int x);

/* Writes a short text that needs no escaping. */
void flame_printf(struct jsonw *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void flame_put_time(struct jsonw *w, uint64_t ns);
void flame_put_count(struct jsonw *w, uint64_t n); /* 12,345 */

#endif
