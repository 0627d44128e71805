/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inputs of operators (--shapes), as attributes of their spans: sizes, types and strides of
 * tensors, and values. Most calls have inputs that an earlier one had, too: what was read is kept
 * as it came, with the attributes that it became.
 */
#ifndef KPROF_CAPTURE_INPUTS_H
#define KPROF_CAPTURE_INPUTS_H

#include "capture/event/boxed.h"
#include "capture/event/names.h"

struct inputs;

/* recorded: false: they are only looked at (inputs__boxed()). */
int inputs__new(struct recorder *recorder, struct targets *targets, struct namer *namer,
		bool recorded, struct inputs **out);
void inputs__free(struct inputs *in);
/* What the record of a call through the boxed door says; of another call: nothing. 0 or -ENOMEM. */
int inputs__boxed(struct inputs *in, struct target *t, const struct probe *p,
		  const struct kprof_wire_begin_inputs *e, struct boxed_call *out);
/* Writes the inputs of a call as attributes of the span with this number. 0, -ENOMEM or worse. */
int inputs__record(struct inputs *in, struct target *t, const struct probe *p,
		   const struct kprof_wire_begin_inputs *e, const struct boxed_call *boxed,
		   uint64_t span);
/* The same of a call that an agent observed: words as in enum kprof_input_kind. */
int inputs__observed(struct inputs *in, struct target *t, const uint64_t *words, uint32_t nr,
		     uint64_t span);
/* Counts a call whose inputs are not known. */
void inputs__untold(struct inputs *in);
/* Writes the metadata "inputs": how many calls had theirs recorded, and what is missing. */
int inputs__account(struct inputs *in, const struct probe_set *probes);
/* Forgets what is kept of the process: it runs another program, or has ended. */
void inputs__forget(struct inputs *in, struct target *t);

#endif
