// SPDX-License-Identifier: BSD-2-Clause
/* What a receiver's answer means. Its bytes are foreign: tests/fuzz/fuzz_answer.c */
#include <string.h>

#include "push/answer.pb-c.h"
#include "push/impl.h"
#include "util/util.h"

#define LONGEST_PAUSE_NS (60 * NSEC_PER_SEC)
#define LONGEST_ASKED_NS (300 * NSEC_PER_SEC)

/* As OTLP says; Pyroscope and Parca answer the same. 408 is a proxy's: it came too slowly. */
enum push_verdict push_verdict_of(int status)
{
	switch (status) {
	case 200 ... 299:
		return PUSH_TAKEN;
	case 408:
	case 429:
		return PUSH_AGAIN;
	case 300 ... 399:
		return PUSH_DROP; /* nobody is told to go elsewhere */
	default:
		/*
		 * The protocol names only 502 to 504; a 500 or 501 is a fault that this request
		 * would meet again.
		 */
		return status >= 502 && status <= 504 ? PUSH_AGAIN : PUSH_DROP;
	}
}

void push_printable(const void *text, size_t bytes, char out[PUSH_TEXT_BYTES])
{
	const unsigned char *at = text;
	size_t nr = 0;

	for (size_t i = 0; i < bytes && nr < PUSH_TEXT_BYTES - 1; i++) {
		if (at[i] > ' ' && at[i] < 0x7f)
			out[nr++] = (char)at[i];
		else if (nr && out[nr - 1] != ' ')
			out[nr++] = ' ';
	}
	while (nr && out[nr - 1] == ' ')
		nr--;
	out[nr] = '\0';
}

bool push_partial(const void *body, size_t bytes, uint64_t *rejected, char reason[PUSH_TEXT_BYTES])
{
	Answer__Response *r = answer__response__unpack(NULL, bytes, body);

	*rejected = 0;
	reason[0] = '\0';
	if (!r)
		return false;
	if (r->partial_success) {
		if (r->partial_success->rejected > 0)
			*rejected = (uint64_t)r->partial_success->rejected;
		push_printable(r->partial_success->reason, strlen(r->partial_success->reason),
			       reason);
	}
	answer__response__free_unpacked(r, NULL);
	return true;
}

uint64_t push_pause_ns(uint64_t first_ns, unsigned int failures, uint64_t asked_ns, uint32_t random)
{
	uint64_t pause_ns = first_ns;

	while (failures-- > 1 && pause_ns < LONGEST_PAUSE_NS)
		pause_ns *= 2;
	if (pause_ns > LONGEST_PAUSE_NS)
		pause_ns = LONGEST_PAUSE_NS;
	/* so that a thousand machines do not come back at the same moment */
	pause_ns = pause_ns / 2 + (uint64_t)((double)pause_ns / 2 * random / UINT32_MAX);
	if (asked_ns > LONGEST_ASKED_NS)
		asked_ns = LONGEST_ASKED_NS;
	return pause_ns > asked_ns ? pause_ns : asked_ns;
}
