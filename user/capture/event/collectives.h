/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What collectives communicate: attributes of the calls (catalog/collective.h), under the names
 * that Kineto has for them, and the same of the work that a thread of the framework does for them.
 * What is not known for sure is left out.
 */
#ifndef KPROF_CAPTURE_EVENT_COLLECTIVES_H
#define KPROF_CAPTURE_EVENT_COLLECTIVES_H

#include "capture/probe/probe.h"

struct collectives;

/*
 * The groups of each process become metadata, "distributed.PID", and that of one of them also
 * "distributed": of *rank_pid, which is set if it is 0.
 */
int collectives__new(struct recorder *recorder, struct targets *targets, uint32_t *rank_pid,
		     struct collectives **out);
void collectives__free(struct collectives *c);
/*
 * A call, or its work, has begun as this span. number 0: before the window, so that it has no
 * record.
 */
int collectives__begun(struct collectives *c, const struct thread *th, const struct probe *p,
		       const struct kprof_wire_begin_args *e, uint64_t number);
/* Work was queued. number: of the thread's innermost span, 0: it has no record. */
int collectives__queued(struct collectives *c, const struct thread *th,
			const struct kprof_wire_begin_args *e, uint64_t number);
/* The process runs another program, or has ended. */
void collectives__forget(struct collectives *c, struct target *t);

#endif
