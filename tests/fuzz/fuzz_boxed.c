// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any words as the record of a call through the boxed door, any bytes as the process's memory: the
 * arguments lie in the record, and their texts are JSON arrays with an entry for each.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "capture/event/boxed.h"
#include "capture/event/inputs_text.h"
#include "fuzz.h"

static int read_input(void *ctx, void *to, size_t bytes, uint64_t address)
{
	const struct fuzz_input *memory = ctx;
	uint64_t at = address & 0xffff;

	if (at >= memory->left || bytes > memory->left - at)
		return -1;
	memcpy(to, memory->at + at, bytes);
	return 0;
}

static const char *class_of(void *ctx, uint64_t vtable)
{
	(void)ctx;
	return vtable & 1 ? "c10::TensorImpl" : NULL;
}

static void check_texts(const struct boxed_call *c)
{
	static uint64_t words[1 + KPROF_WIRE_INPUTS_WORDS];
	struct inputs_text text;

	words[0] = c->nr;
	memcpy(&words[1], c->values, c->nr_words * sizeof(words[0]));
	if (inputs_text_observed(words, c->nr_words + 1, class_of, NULL, &text))
		return;
	REQUIRE(text.nr == c->nr);
	for (int i = 0; i < INPUTS_KEYS; i++) {
		cJSON *json = cJSON_Parse(text.json[i]);

		REQUIRE(cJSON_IsArray(json) && (uint32_t)cJSON_GetArraySize(json) == text.nr);
		cJSON_Delete(json);
		free(text.json[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint64_t words[KPROF_WIRE_INPUTS_WORDS];
	struct fuzz_input memory = {data, bytes};
	struct boxed_layout l = {0};
	size_t nr = bytes / 8 < KPROF_WIRE_INPUTS_WORDS ? bytes / 8 : KPROF_WIRE_INPUTS_WORDS;
	struct boxed_call c;

	memcpy(words, data, nr * 8);
	for (size_t i = KPROF_BOXED_WORDS; i < nr;
	     i++) /* kinds as the kernel's program writes them */
		if (words[i] >> 56 == 0xfe)
			words[i] = KPROF_INPUT_OF_KIND(words[i] >> 16 & 15, words[i] & 3,
						       words[i] >> 8 & 63);
	for (int i = 0; i < 3; i++) { /* the first may learn; the last has all values */
		boxed_call(i < 2 ? &l : NULL, words, (uint32_t)nr, read_input, &memory, &c);
		REQUIRE(!c.name || (c.name >= (char *)words && c.name < (char *)(words + nr)));
		REQUIRE(!c.known ||
			(c.nr <= KPROF_INPUTS_MAX && c.values + c.nr_words == words + nr));
		if (c.known && c.nr_words < KPROF_WIRE_INPUTS_WORDS)
			check_texts(&c);
	}
	return 0;
}
