// SPDX-License-Identifier: BSD-2-Clause
#include "capture/overhead/choose.h"

#include <stdlib.h>

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
	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

size_t choose_probes(struct choose_probe *probes, size_t nr, double call_ns, double goal_ns)
{
	double saved_ns = 0;
	size_t chosen = 0;

	for (size_t i = 0; i < nr; i++)
		probes[i].chosen =
			(double)probes[i].calls * call_ns * 100 >= goal_ns && is_short(&probes[i]);
	qsort(probes, nr, sizeof(*probes), dearest_first);
	for (; chosen < nr && probes[chosen].chosen && saved_ns < goal_ns; chosen++)
		saved_ns += (double)probes[chosen].calls * call_ns;
	for (size_t i = chosen; i < nr; i++)
		probes[i].chosen = false;
	return chosen;
}
