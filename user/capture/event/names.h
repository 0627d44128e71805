/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event namer: what a hit of a probe is called. From the probe alone, from a text that was read
 * at the hit, or from the class of an object in the process. Each name becomes an event description
 * in the capture once, and is known by its id from then on.
 */
#ifndef KPROF_CAPTURE_NAMES_H
#define KPROF_CAPTURE_NAMES_H

#include "capture/probe/probe.h"

enum name_verdict {
	NAME_SPAN,
	NAME_RANGE_END,
	NAME_IGNORE,   /* it is no event */
	NAME_FILTERED, /* not wanted */
};

struct name_result {
	enum name_verdict verdict;
	uint32_t description; /* event description */
};

struct name_hit {
	const char *text;   /* as read at the probe; NULL */
	uint64_t text_addr; /* where it lies; 0: none */
	uint64_t value;     /* see the row */
};

struct namer;

int namer__new(struct recorder *recorder, struct targets *targets, const struct plan_filter *filter,
	       struct namer **out);
void namer__free(struct namer *n);
/* index: the probe's. */
int namer__resolve(struct namer *n, struct target *t, uint32_t index, const struct probe *p,
		   const struct name_hit *hit, struct name_result *out);
/* The process's classes: it runs another program, or is gone. */
void namer__forget(struct namer *n, struct target *t);

#endif
