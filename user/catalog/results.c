// SPDX-License-Identifier: BSD-2-Clause
/* Looks up the names of calls' results in the runtimes' tables. */
#include "catalog/catalog.h"

const char *catalog_result_name(const struct catalog_result_name *names, size_t nr, int64_t number)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (names[mid].number == number)
			return names[mid].name;
		if (names[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}
