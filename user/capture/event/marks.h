/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What annotations that applications compiled in (kprof/mark.h) become: spans, instants,
 * activities, metadata. Where they lie in files is the probe set's business.
 */
#ifndef KPROF_CAPTURE_MARKS_H
#define KPROF_CAPTURE_MARKS_H

#include "capture/probe/probe.h"

struct marks;

int marks__new(struct recorder *recorder, struct spans *spans, const struct plan_filter *filter,
	       struct marks **out);
void marks__free(struct marks *m);
/* One ran; source: what it counts for. 1: the thread has another name now, to be recorded. */
int marks__event(struct marks *m, struct thread *th, const struct kprof_wire_mark *e,
		 uint32_t source);
/* Metadata: what could not be recorded as it was meant. */
int marks__account(struct marks *m);

#endif
