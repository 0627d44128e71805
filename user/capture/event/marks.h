/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns annotations that applications compiled in (kprof/mark.h) into spans, instants, activities
 * and metadata. The probe set finds where they are in files.
 */
#ifndef KPROF_CAPTURE_MARKS_H
#define KPROF_CAPTURE_MARKS_H

#include "capture/probe/probe.h"

struct marks;

int marks__new(struct recorder *recorder, struct spans *spans, const struct plan_filter *filter,
	       struct marks **out);
void marks__free(struct marks *m);
struct steps;
/* Tells it of each event description from now on. */
void marks__tell(struct marks *m, struct steps *steps);
/*
 * Handles one annotation that ran. source: the index of the source that it counts for. Returns 1
 * when the thread has a new name that the caller must record, 0, or a negative errno.
 */
int marks__event(struct marks *m, struct thread *th, const struct kprof_wire_mark *e,
		 uint32_t source);
/*
 * Writes the metadata "annotations": how many texts and annotations could not be recorded as meant.
 */
int marks__account(struct marks *m);

#endif
