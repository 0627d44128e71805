/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs allocate and free, as their frameworks' allocators say: each is an instant,
 * "[memory]", with the attributes that Kineto gives it. A free says no size: it is that of the
 * allocation, if that was seen in the recording. Frees of what was allocated before are only
 * counted.
 *
 * Nothing that a program says is trusted: an address that is allocated twice was freed unseen, sums
 * do not wrap around, and what is kept is bounded.
 */
#ifndef KPROF_CAPTURE_MEMORY_H
#define KPROF_CAPTURE_MEMORY_H

#include "capture/probe/probe.h"

/* Allocations that are kept at most, of all processes together: some 64 bytes of memory each. */
#define MEMORY_MOST_KEPT (1u << 20)

struct alive;
struct memory;

/* alive: keeps what is in use, instead of events in the capture; NULL: nobody does. */
int memory__new(struct recorder *recorder, struct targets *targets, struct alive *alive,
		struct memory **out);
void memory__free(struct memory *m);
/*
 * Takes in the hit of a probe of a row with .memory; description: that of its instants; op: string
 * id of the operator that it was in, which .alive wants to know.
 */
int memory__event(struct memory *m, struct thread *th, const struct probe *p, uint32_t description,
		  uint32_t op, const struct kprof_wire_begin_args *e);
/* The process runs another program, or has ended: nothing is allocated in it any more. */
void memory__forget(struct memory *m, struct target *t);
/* Writes the metadata "memory", and warns of what could not be recorded. */
int memory__account(struct memory *m);

#endif
