// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parts of a recording count from its begin. Where its file is rotated, each file is to have what
 * belongs to its own window: the difference to what the files before have.
 */
#include <cjson/cJSON.h>
#include <errno.h>

#include "capture/record/priv.h"
#include "util/meta_counts.h"

int window_counts(cJSON **told, const char *key, cJSON *value)
{
	cJSON *sums;

	if (!meta_counts(key))
		return 0;
	if (!*told)
		*told = cJSON_CreateObject();
	sums = cJSON_Duplicate(value, true);
	if (!*told || !sums) {
		cJSON_Delete(sums);
		return -ENOMEM;
	}
	meta_counts__subtract(key, value, cJSON_GetObjectItemCaseSensitive(*told, key));
	cJSON_DeleteItemFromObjectCaseSensitive(*told, key);
	return cJSON_AddItemToObject(*told, key, sums) ? 0 : -ENOMEM;
}
