/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Annotations that applications compiled in (kprof/mark.h): found in the files that targets map, watched, and told as spans,
 * instants, activities and metadata.
 *
 *   marks.c         what a mark becomes
 *   marks_files.c   where they are
 */
#ifndef KPROF_CAPTURE_MARKS_H
#define KPROF_CAPTURE_MARKS_H

#include "capture/session/session.h"

/* Does the file of this mapping have places for marks, and are they wanted? */
bool marks__in(struct kprof_session *s, struct target *t, const struct proc_map *map);
/* Watches those of a file, if it has some and they are not watched yet. */
int marks__attach(struct kprof_session *s, struct target *t, struct target_file *tf,
		  const char *path);
/* One ran. */
int marks__event(struct kprof_session *s, struct thread *th, const struct kprof_wire_mark *m);
/* What could not be told as it was meant, for the metadata. */
int marks__account(struct kprof_session *s);
void marks__free(struct kprof_session *s);

#endif
