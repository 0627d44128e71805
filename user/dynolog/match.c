// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rules of the reference daemon: only processes of the request's job, which is 0 for those of
 * none; of these all, or those which are, or descend from, one of the numbers of the request. A
 * number may be the machine's or the process's own.
 */
#include <stdlib.h>

#include "dynolog/impl.h"

static int by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

void match_sort(int32_t *pids, size_t nr)
{
	if (nr)
		qsort(pids, nr, sizeof(*pids), by_number);
}

static bool has(const struct kprof_dynolog_request *r, int32_t pid)
{
	return pid > 0 && bsearch(&pid, r->pids, r->nr_pids, sizeof(*r->pids), by_number);
}

bool match_entry(const struct kprof_dynolog_request *r, const struct entry *e)
{
	if (r->job_id != e->p.job_id)
		return false;
	if (!r->nr_pids || (r->nr_pids == 1 && !r->pids[0]))
		return true;
	for (size_t i = 0; i < e->nr_pids; i++)
		if (has(r, e->pids[i]) || has(r, e->own[i]))
			return true;
	return false;
}
