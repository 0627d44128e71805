// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as an unwind table of the cache, with the right checksum: refused, or one that can be
 * searched and packed again.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define STAMP 7
#define SUM_AT 8
#define STAMP_AT 16

static volatile uint64_t sum;

/* Whatever is not looked at yet as a whole: so that mutations come further. */
static char *with_sum(const uint8_t *data, size_t bytes)
{
	char *blob = malloc(bytes + 1);
	uint64_t word = STAMP;

	if (!blob)
		abort();
	memcpy(blob, data, bytes);
	if (bytes >= STAMP_AT + sizeof(word)) {
		memcpy(blob, "kpunw\0\1", 8);
		memcpy(blob + STAMP_AT, &word, sizeof(word));
		word = unwind_blob__sum(blob, bytes);
		memcpy(blob + SUM_AT, &word, sizeof(word));
	}
	return blob;
}

static void use(const struct unwind_table *t, struct unwind_rules *rules)
{
	struct unwind_table *again = NULL;
	size_t bytes, most = t->nr_pages < 100 ? t->nr_pages : 100;
	char *blob;

	for (size_t page = 0; page < most; page++)
		for (uint64_t at = 0; at < KPROF_UNWIND_PAGE_BYTES; at += 4099) {
			uint64_t vaddr = (t->first_page + page) << KPROF_UNWIND_PAGE_BITS | at;
			struct kprof_unwind_rule rule;

			if (!unwind_rules__copy(rules, unwind_table__find(t, vaddr), &rule, 1))
				abort();
			sum += rule.how;
		}
	blob = unwind_blob__pack(t, rules, STAMP, &bytes);
	if (!blob || unwind_blob__unpack(blob, bytes, STAMP, rules, &again) ||
	    again->nr_rows != t->nr_rows || again->nr_pages != t->nr_pages ||
	    memcmp(again->rows, t->rows, t->nr_rows * sizeof(*t->rows)))
		abort();
	unwind_table__free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct unwind_rules *rules;
	struct unwind_table *t;

	if (unwind_rules__new(&rules))
		abort();
	if (!unwind_blob__unpack(with_sum(data, bytes), bytes, STAMP, rules, &t)) {
		use(t, rules);
		unwind_table__free(t);
	}
	unwind_rules__free(rules);
	return 0;
}
