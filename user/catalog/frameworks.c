// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/catalog.h"

const struct catalog_row catalog_function = {
	.source = "functions",
	.category = "user_annotation",
	.shape = CATALOG_SPAN,
	.naming = CATALOG_NAME_SYMBOL,
};

#define ADDRESS(name) &catalog_##name,

const struct catalog_framework *const catalog_frameworks[] = {CATALOG_FRAMEWORKS(ADDRESS) NULL};
