/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What counts as the same in a table or a tree. In the file an event description differs from
 * another in anything (the overload, say); people ask by name. Owns its texts: tables and trees
 * outlive the capture.
 */
#ifndef KPROF_REPORT_GROUPS_H
#define KPROF_REPORT_GROUPS_H

#include "model/timeline/timeline.h"

struct group {
	char *name;
	char *category; /* of the first, where groups are by name alone */
};

struct groups {
	uint32_t *of_what;    /* index of the group, by what's id - 1 */
	struct group *groups; /* by name, then category */
	size_t nr;
};

enum groups_by { GROUPS_BY_NAME, GROUPS_BY_NAME_AND_CATEGORY };

/* 0 or -ENOMEM with the error set; groups__free() either way. */
int groups__make(const struct timeline *t, enum groups_by by, struct groups *out);
void groups__free(struct groups *g);

#endif
