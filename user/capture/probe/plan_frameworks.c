// SPDX-License-Identifier: BSD-2-Clause
/* Which frameworks a file or a process may hold, by names of files and symbols. */
#include <stdio.h>
#include <string.h>

#include "capture/probe/plan.h"

static bool has_rows_for(const struct catalog_framework *fw, const char *base_name)
{
	for (size_t i = 0; i < fw->nr_rows; i++) /* most rows name the same library as the last */
		if ((!i || fw->rows[i].library != fw->rows[i - 1].library) &&
		    catalog_match(fw->rows[i].library, base_name))
			return true;
	return false;
}

uint64_t plan_frameworks_of(const char *base_name)
{
	uint64_t set = 0;

	for (size_t i = 0; catalog_frameworks[i]; i++)
		if (has_rows_for(catalog_frameworks[i], base_name))
			set |= 1ull << i;
	return set;
}

uint64_t plan_embedded_with(const char *base_name)
{
	uint64_t set = 0;

	for (size_t i = 0; catalog_frameworks[i]; i++)
		if (catalog_match(catalog_frameworks[i]->embedded_with, base_name))
			set |= 1ull << i;
	return set;
}

uint64_t plan_embedded_in(const struct elffile *e, uint64_t candidates)
{
	struct elffile_symbol sym;
	uint64_t set = 0;

	for (size_t i = 0; catalog_frameworks[i]; i++) {
		const char *name = catalog_frameworks[i]->embedded_symbol;

		if (candidates >> i & 1 && name && !elffile__symbol(e, name, &sym) && sym.function)
			set |= 1ull << i;
	}
	return set;
}

void plan_library_names(char *buf, size_t bytes)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; catalog_frameworks[i]; i++) {
		for (const char *const *lib = catalog_frameworks[i]->libraries; *lib; lib++) {
			size_t length = strcspn(*lib, "*");
			int n;

			if ((*lib)[length - 1] == '-') /* another file name of the same library */
				continue;
			n = snprintf(buf + used, bytes - used, "%s%.*s", used ? ", " : "",
				     (int)length, *lib);
			if (n < 0 || (size_t)n >= bytes - used)
				return;
			used += (size_t)n;
		}
	}
}

bool plan_has_layouts(const char *base_name)
{
	for (size_t i = 0; catalog_frameworks[i]; i++)
		if (catalog_match(catalog_frameworks[i]->tensor_library, base_name))
			return true;
	return plan_frameworks_of(base_name) || catalog_match("libpython* python*", base_name);
}
