/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments and results of device calls, as attributes of their spans. */
#ifndef KPROF_CAPTURE_CALLS_H
#define KPROF_CAPTURE_CALLS_H

#include "capture/probe/probe.h"

struct calls;

int calls__new(struct recorder *recorder, struct targets *targets, struct probe_set *probes,
	       struct calls **out);
void calls__free(struct calls *c);
/* Writes the arguments of a call as attributes of the span with this number. */
int calls__args(struct calls *c, struct target *t, const struct probe *p,
		const struct kprof_wire_begin_args *e, uint64_t span);
/*
 * Writes the result of a call as an attribute of its span, unless it is the usual success. Returns
 * 1 when the result is known, 0 when none is read of this probe's calls, or -errno.
 */
int calls__result(struct calls *c, const struct span_end *end);
/*
 * Writes the metadata "calls": for each source, how many results were seen, calls failed, and calls
 * were folded.
 */
int calls__account(struct calls *c);
/* Forgets the names of the process's functions: it runs another program, or has ended. */
void calls__forget(struct calls *c, struct target *t);

#endif
