// SPDX-License-Identifier: BSD-2-Clause
#include "capture/overhead/choose.h"

#include <stdlib.h>

/* What costs less than such a part of the goal is not worth giving up. */
#define LEAST_WORTH 1000

/* A call of unknown length is taken for a short one: it has told nothing so far. */
static bool is_short(const struct choose_probe *p)
{
	return p->nr_short * 2 >= p->timed;
}

static int dearest_first(const void *a, const void *b)
{
	const struct choose_probe *x = a, *y = b;

	if (x->chosen != y->chosen)
		return x->chosen ? -1 : 1;
	return x->hits < y->hits ? 1 : x->hits > y->hits ? -1 : 0;
}

size_t choose_probes(struct choose_probe *probes, size_t nr, double hit_ns, double goal_ns,
		     double *all_ns)
{
	double saved_ns = 0;
	size_t chosen = 0;

	*all_ns = 0;
	for (size_t i = 0; i < nr; i++) {
		probes[i].chosen = is_short(&probes[i]);
		*all_ns += probes[i].chosen ? (double)probes[i].hits * hit_ns : 0;
	}
	qsort(probes, nr, sizeof(*probes), dearest_first);
	while (chosen < nr && probes[chosen].chosen && saved_ns < goal_ns &&
	       (double)probes[chosen].hits * hit_ns * LEAST_WORTH >= goal_ns)
		saved_ns += (double)probes[chosen++].hits * hit_ns;
	for (size_t i = chosen; i < nr; i++)
		probes[i].chosen = false;
	return chosen;
}
