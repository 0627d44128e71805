/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of event descriptions that a table or tree shows as one. In the file, descriptions differ
 * by anything (the overload, say); people look for names. Owns its strings, because tables and
 * trees outlive the capture.
 */
#ifndef KPROF_REPORT_GROUPS_H
#define KPROF_REPORT_GROUPS_H

#include "model/timeline/timeline.h"

struct group {
	char *name;
	char *category; /* category of the first description, where groups are by name alone */
};

struct groups {
	uint32_t *of_what;    /* index of the group, by id of the event description - 1 */
	struct group *groups; /* sorted by name, then category */
	size_t nr;
};

enum groups_by { GROUPS_BY_NAME, GROUPS_BY_NAME_AND_CATEGORY };

/* 0, or -ENOMEM with the error set. Call groups__free() in either case. */
int groups__make(const struct kprof_capture *t, enum groups_by by, struct groups *out);
void groups__free(struct groups *g);

#endif
