// SPDX-License-Identifier: BSD-2-Clause
/* Looks up the names of calls' results in the runtimes' tables. */
#include "catalog/catalog.h"

const char *catalog_result_name(const struct catalog_result_name *names, int64_t number)
{
	for (; names->name; names++)
		if (names->number == number)
			return names->name;
	return NULL;
}
