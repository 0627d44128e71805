// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the daemon's answer to kprof/profile.h, and as an option of a program's. Nothing is
 * read beyond the answer or written beyond the room. Where another reader, cJSON, finds an object,
 * both find the same texts in it, as the daemon would have sent them; and an option comes back.
 */
#include <cjson/cJSON.h>
#include <kprof/profile.h>

#include "fuzz.h"

#define ROOM 4096

/* What a reader of one line makes of a text: control characters are blanks. */
static char *copy_of(const char *text, size_t room)
{
	char *copy = text ? strndup(text, room - 1) : strdup("");

	REQUIRE(copy);
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
	return copy;
}

static void check_answer(const char *answer, size_t room)
{
	static const char *const keys[] = {"ok", "id", "path", "error", "hint"};
	cJSON *o = cJSON_Parse(answer);
	char *line = cJSON_IsObject(o) ? cJSON_PrintUnformatted(o) : NULL;
	char *text = malloc(room);

	REQUIRE(text);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *at = kprof_profile_member(answer, keys[i]);

		REQUIRE(!at || (at > answer && at <= answer + strlen(answer)));
		kprof_profile_take(answer, keys[i], text, room);
		REQUIRE(strlen(text) < room);
		if (line) {
			const cJSON *member = cJSON_GetObjectItemCaseSensitive(o, keys[i]);
			char *copy = copy_of(cJSON_GetStringValue(member), room);

			kprof_profile_take(line, keys[i], text, room);
			REQUIRE(!strcmp(text, copy));
			free(copy);
		}
	}
	free(text);
	cJSON_free(line);
	cJSON_Delete(o);
}

static void check_option(const char *option)
{
	char question[ROOM + 16], text[ROOM];
	struct kprof_profile_line l = {question, ROOM};
	char *copy = copy_of(option, ROOM);
	cJSON *o;

	kprof_profile_put(&l, "{\"id\":");
	kprof_profile_put_text(&l, option);
	kprof_profile_put(&l, "}");
	o = l.room ? cJSON_Parse(question) : NULL;
	if (o) {
		REQUIRE(!strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(o, "id")), option));
		kprof_profile_take(question, "id", text, sizeof(text));
		REQUIRE(!strcmp(text, copy));
	} else {
		REQUIRE(!l.room || strlen(option) > ROOM / 6 - 16);
	}
	cJSON_Delete(o);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = {data, bytes};
	size_t room = 1 + fuzz_number(&in, 1);
	char *text = strndup((const char *)in.at, in.left);

	REQUIRE(text);
	check_answer(text, room);
	check_option(text);
	free(text);
	return 0;
}
