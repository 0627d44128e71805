// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

static int by_name_category(const void *a, const void *b)
{
	const struct tl_description *x = *(const struct tl_description *const *)a;
	const struct tl_description *y = *(const struct tl_description *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->category, y->category);
	if (!order)
		order = (x->id > y->id) - (x->id < y->id);
	return order;
}

static bool same_group(const struct tl_description *a, const struct tl_description *b,
		       enum groups_by by)
{
	return !strcmp(a->name, b->name) &&
	       (by == GROUPS_BY_NAME || !strcmp(a->category, b->category));
}

static int add_group(struct groups *g, const struct tl_description *description)
{
	struct group *group = &g->groups[g->nr++];

	group->name = strdup(description->name);
	group->category = strdup(description->category);
	return group->name && group->category ? 0 : -ENOMEM;
}

int groups__make(const struct kprof_capture *t, enum groups_by by, struct groups *out)
{
	const struct tl_description **sorted;
	size_t nr = 0;
	int err = -ENOMEM;

	*out = (struct groups){0};
	while (timeline__description(t, nr))
		nr++;
	/* One element more than needed, so that NULL means out of memory even when nr is 0. */
	sorted = calloc(nr + 1, sizeof(*sorted));
	out->of_what = calloc(nr + 1, sizeof(*out->of_what));
	out->groups = calloc(nr + 1, sizeof(*out->groups));
	if (!sorted || !out->of_what || !out->groups)
		goto out;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = timeline__description(t, i);
	qsort(sorted, nr, sizeof(*sorted), by_name_category);
	for (size_t i = 0; i < nr; i++) {
		if (!i || !same_group(sorted[i - 1], sorted[i], by)) {
			if (add_group(out, sorted[i]))
				goto out;
		}
		out->of_what[sorted[i]->id - 1] = (uint32_t)(out->nr - 1);
	}
	err = 0;
out:
	free(sorted);
	return err ? error_set(err, NULL, "out of memory for %zu names", nr) : 0;
}

void groups__free(struct groups *g)
{
	for (size_t i = 0; i < g->nr; i++) {
		free(g->groups[i].name);
		free(g->groups[i].category);
	}
	free(g->groups);
	free(g->of_what);
	*g = (struct groups){0};
}
