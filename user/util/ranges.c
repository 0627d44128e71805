// SPDX-License-Identifier: BSD-2-Clause
#include "util/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static void drop(struct ranges *r, size_t i)
{
	memmove(&r->free[i], &r->free[i + 1], (r->nr - i - 1) * sizeof(*r->free));
	r->nr--;
}

int ranges__give(struct ranges *r, uint32_t at, uint32_t nr)
{
	size_t i = 0;

	if (!nr)
		return 0;
	while (i < r->nr && r->free[i].at < at)
		i++;
	if (i && r->free[i - 1].at + r->free[i - 1].nr == at) {
		r->free[--i].nr += nr;
	} else {
		if (vec_grow((void **)&r->free, &r->cap, r->nr, sizeof(*r->free)))
			return -ENOMEM;
		memmove(&r->free[i + 1], &r->free[i], (r->nr - i) * sizeof(*r->free));
		r->free[i] = (struct range){at, nr};
		r->nr++;
	}
	if (i + 1 < r->nr && r->free[i].at + r->free[i].nr == r->free[i + 1].at) {
		r->free[i].nr += r->free[i + 1].nr;
		drop(r, i + 1);
	}
	return 0;
}

int ranges__take(struct ranges *r, uint32_t nr, uint32_t *at)
{
	for (size_t i = 0; i < r->nr; i++) {
		if (r->free[i].nr < nr)
			continue;
		*at = r->free[i].at;
		r->free[i].at += nr;
		r->free[i].nr -= nr;
		if (!r->free[i].nr)
			drop(r, i);
		return 0;
	}
	return -ENOSPC;
}

void ranges__free(struct ranges *r)
{
	free(r->free);
	*r = (struct ranges){0};
}
