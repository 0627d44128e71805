// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/ctl/ctl.h"
#include "cmd/print/json_get.h"
#include "cmd/print/text.h"

void ctl_defuse(cJSON *o)
{
	for (cJSON *item = o ? o->child : NULL; item; item = item->next) {
		if (item->string)
			text_defuse(item->string);
		if (cJSON_IsString(item))
			text_defuse(item->valuestring);
		ctl_defuse(item);
	}
}

const char *ctl_text(const cJSON *o, const char *key)
{
	const char *text = json_text(o, key);

	return text ? text : "";
}
