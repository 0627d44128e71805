/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What calls of MPI communicate: attributes of their spans, under the names that Kineto has for
 * collectives. What is not known for sure is left out.
 */
#ifndef KPROF_CAPTURE_EVENT_MESSAGES_H
#define KPROF_CAPTURE_EVENT_MESSAGES_H

#include "capture/probe/probe.h"

/* A call has begun as the span of this number. */
int messages__begun(struct recorder *recorder, const struct probe *p,
		    const struct kprof_wire_begin_args *e, uint64_t number);

#endif
