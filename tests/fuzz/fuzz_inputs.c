// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any words as what was read of a call's arguments, for any signature, or as what an agent
 * observed: the texts are JSON arrays, each with an entry for each input. Any bytes as the function
 * that the layout of tensors is learnt from.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "capture/event/inputs_text.h"
#include "capture/probe/tensors.h"
#include "fuzz.h"

static const char *class_of(void *ctx, uint64_t vtable)
{
	static const char *const names[] = {"c10::TensorImpl", "at::SparseTensorImpl",
					    "c10::UndefinedTensorImpl", "X", NULL};

	(void)ctx;
	return names[vtable % 5];
}

/* s NULL: the words say what they are */
static void check_texts(const struct signature *s, const uint64_t *words, uint32_t nr)
{
	struct inputs_text text;

	if (s ? inputs_text(s, words, nr, class_of, NULL, &text)
	      : inputs_text_observed(words, nr, class_of, NULL, &text))
		return;
	REQUIRE(text.unknown <= text.nr);
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
	struct tensor_layout layout;
	struct signature s = {0};
	size_t at = 1, nr;

	if (!bytes)
		return 0;
	if (!tensors_learn(data, bytes, &layout))
		REQUIRE(layout.sizes_off);
	s.guessed = data[0] & 1;
	s.own_optional = data[0] & 2;
	for (nr = data[0] >> 2 & 7; s.nr < nr && at + 2 <= bytes; at += 2) {
		struct signature_argument *a = &s.arguments[s.nr++];

		a->kind = data[at] % (SIGNATURE_BOOLS_4 + 1);
		a->read = data[at + 1] & 1;
		s.plan.nr += a->read;
	}
	nr = (bytes - at) / 8;
	if (nr > KPROF_WIRE_INPUTS_WORDS)
		nr = KPROF_WIRE_INPUTS_WORDS;
	memcpy(words, data + at, nr * 8);
	/* lengths as the kernel's program writes them */
	for (size_t i = 0; i < nr; i++)
		if (words[i] >> 56 == 0xff)
			words[i] = KPROF_INPUT_HEAD(words[i] & 3, words[i] >> 8 & 63);
	check_texts(&s, words, (uint32_t)nr);
	if (nr)
		words[0] &= 63;
	for (size_t i = 1; i < nr; i++) /* kinds as the agent writes them */
		if (words[i] >> 56 == 0xfe)
			words[i] = KPROF_INPUT_OF_KIND(words[i] >> 16 & 15, words[i] & 3,
						       words[i] >> 8 & 63);
	check_texts(NULL, words, (uint32_t)nr);
	return 0;
}
