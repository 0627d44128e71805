// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/catalog.h"

#define ADDRESS(name) &catalog_##name,

const struct catalog_framework *const catalog_frameworks[] = {CATALOG_FRAMEWORKS(ADDRESS) NULL};
