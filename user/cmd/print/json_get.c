// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/json_get.h"

const char *json_text(const cJSON *o, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

double json_number(const cJSON *o, const char *key)
{
	double v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return v > 0 && v < 1e19 ? v : 0;
}

bool json_is_true(const cJSON *o, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, key));
}
