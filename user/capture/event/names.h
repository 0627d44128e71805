/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event namer: how a hit of a probe is named. The name comes from the probe alone, from a text
 * that was read at the hit, or from the class of an object in the process. Each name is written to
 * the capture once, as an event description, and referred to by its id.
 */
#ifndef KPROF_CAPTURE_NAMES_H
#define KPROF_CAPTURE_NAMES_H

#include "capture/probe/probe.h"

enum name_verdict {
	NAME_SPAN,
	NAME_RANGE_END,
	NAME_IGNORE,   /* the hit is no event */
	NAME_FILTERED, /* the filter rejects the name */
};

struct name_result {
	enum name_verdict verdict;
	uint32_t description; /* event description, of NAME_SPAN */
};

struct name_hit {
	const char *text;   /* as the BPF program read it; NULL: not read */
	uint64_t text_addr; /* address of the text in the process; 0: none */
	uint64_t value;     /* the meaning depends on the catalog's row */
	/* arguments beside the text: see text_args.h */
	uint64_t args[KPROF_WIRE_TEXT_ARGS];
	uint32_t nr_args;
};

struct namer;

int namer__new(struct recorder *recorder, struct targets *targets, const struct plan_filter *filter,
	       struct namer **out);
void namer__free(struct namer *n);
struct steps;
/* Tells it of each event description from now on. */
void namer__tell(struct namer *n, struct steps *steps);
/* Returns 0 or a negative errno. */
int namer__resolve(struct namer *n, struct target *t, struct probe *p, const struct name_hit *hit,
		   struct name_result *out);
/*
 * The name of the class that a vtable pointer in the process belongs to, valid until the next call
 * of this function, or namer__forget(). NULL: unreadable.
 */
const char *namer__class(struct namer *n, struct target *t, uint64_t vtable);
/* Forgets the process's classes: it runs another program, or has ended. */
void namer__forget(struct namer *n, struct target *t);

#endif
