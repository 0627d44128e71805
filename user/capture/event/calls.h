/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device call was given and what it returned, as attributes of its span. */
#ifndef KPROF_CAPTURE_CALLS_H
#define KPROF_CAPTURE_CALLS_H

#include "capture/probe/probe.h"

struct calls;

int calls__new(struct recorder *recorder, struct targets *targets, struct probe_set *probes,
	       struct calls **out);
void calls__free(struct calls *c);
/* What a call was given, to the span of this number. */
int calls__args(struct calls *c, struct target *t, const struct probe *p,
		const struct kprof_wire_begin_args *e, uint64_t span);
/* What it returned, where that says something. */
int calls__result(struct calls *c, const struct span_end *end);
/* Metadata "calls": for each source of calls, what became of them beside their spans. */
int calls__account(struct calls *c);
/* The process's functions: it runs another program, or is gone. */
void calls__forget(struct calls *c, struct target *t);

#endif
