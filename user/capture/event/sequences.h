/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequence numbers of operators and of autograd's nodes, as attributes of their spans
 * (catalog/sequence.h).
 */
#ifndef KPROF_CAPTURE_SEQUENCES_H
#define KPROF_CAPTURE_SEQUENCES_H

#include "capture/record/record.h"
#include "kprof/wire.h"

struct sequences {                               /* all zero at first */
	uint32_t number, forward, thread, maybe; /* string ids of the keys */
	uint64_t operators, nodes, unsure;       /* spans with a number, or perhaps one */
};

/*
 * Records what the begin of this span says; span 0: it has no record. *around: of the thread, 0 at
 * first: a span whose number is that of a node, if that is the next to begin.
 */
int sequences__begun(struct sequences *s, struct recorder *r, const struct kprof_wire_begin *b,
		     uint64_t *around, uint64_t span);

/* Writes the metadata "flow". */
int sequences__account(const struct sequences *s, struct recorder *r);

#endif
