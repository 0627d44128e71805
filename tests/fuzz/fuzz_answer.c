// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a receiver's answer, as the head of a request in the queue, and as a URL. What is
 * shown of an answer is one line of printable ASCII; a target has nothing that ends a line of HTTP.
 */
#include "fuzz.h"
#include "push/impl.h"

static void check_line(const char *text, size_t room)
{
	REQUIRE(strlen(text) < room);
	for (; *text; text++)
		REQUIRE(*text >= ' ' && *text < 0x7f);
}

static void answer(const uint8_t *data, size_t size)
{
	char reason[PUSH_TEXT_BYTES];
	uint64_t rejected;

	if (push_partial(data, size, &rejected, reason)) {
		REQUIRE(rejected <= INT64_MAX);
		check_line(reason, sizeof(reason));
	}
	push_printable(data, size, reason);
	check_line(reason, sizeof(reason));
}

static void texts(const char *text)
{
	static struct push_head head;
	struct kprof_push_url url;

	if (push_head_parse(text, &head)) {
		REQUIRE(head.target[0] == '/');
		check_line(head.target, sizeof(head.target));
		check_line(head.type, sizeof(head.type));
		REQUIRE(strlen(head.kind) < sizeof(head.kind));
	}
	if (!kprof_push_parse_url(text, &url)) {
		check_line(url.base, sizeof(url.base));
		REQUIRE(!strpbrk(url.base, "@?# "));
	}
	push_header_check(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size > PUSH_ANSWER_BYTES)
		return 0;
	answer(data, size);
	text = calloc(1, size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	texts(text);
	free(text);
	return 0;
}
