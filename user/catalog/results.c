// SPDX-License-Identifier: BSD-2-Clause
/* Looks up the names of calls' results in the runtimes' tables. */
#include "catalog/catalog.h"

#include <stdio.h>

const char *catalog_result_name(const struct catalog_result_name *names, int64_t number)
{
	for (; names->name; names++)
		if (names->number == number)
			return names->name;
	return NULL;
}

const struct catalog_result *catalog_result_of(uint32_t activity)
{
	for (size_t i = 0; catalog_frameworks[i]; i++) {
		const struct catalog_framework *fw = catalog_frameworks[i];

		for (size_t k = 0; k < fw->nr_rows; k++)
			if (fw->rows[k].result && catalog_row_type(&fw->rows[k]) == activity)
				return fw->rows[k].result;
	}
	return NULL;
}

bool catalog_result_text(const struct catalog_result *result, int64_t value,
			 char text[CATALOG_RESULT_BYTES])
{
	const char *name = catalog_result_name(result->names, value);

	if (name)
		snprintf(text, CATALOG_RESULT_BYTES, "%s (%lld)", name, (long long)value);
	else
		snprintf(text, CATALOG_RESULT_BYTES, "%lld", (long long)value);
	return !result->answer || value != result->answer;
}
