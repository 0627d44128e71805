// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as memory that a program wrote code into, in two pieces; the second is the first one's
 * later half.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ADDRESS 0x7f0000010000u
#define PADDING_BYTES 16 /* as in symbol/unwind/unwind.c */
#define MOST_BYTES (1u << 14)
#define MOST_FUNCTIONS (2 * MOST_BYTES)

struct seen {
	uint64_t begin, end; /* of the piece */
	size_t nr;
	struct {
		uint64_t start, end;
	} functions[MOST_FUNCTIONS];
};
static struct seen seen;

/* In order, apart from each other, within their piece. */
static int on_function(void *ctx, uint64_t start, uint64_t end)
{
	struct seen *s = ctx;

	if (start < s->begin || start >= end || end > s->end || s->nr == MOST_FUNCTIONS ||
	    (s->nr && start < s->functions[s->nr - 1].end))
		abort();
	s->functions[s->nr].start = start;
	s->functions[s->nr].end = end;
	s->nr++;
	return 0;
}

static void add(struct unwind_jit *m, const uint8_t *data, size_t bytes, uint64_t address)
{
	/* Of its very size, so that a byte too far is seen. */
	uint8_t *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		return;
	memcpy(copy, data, bytes);
	seen.begin = address;
	seen.end = address + bytes;
	unwind_jit__add(m, copy, bytes, address, on_function, &seen);
	free(copy);
}

/*
 * Between function f and the one in front of it nothing is known; mere padding is not told apart
 * from the latter.
 */
static bool is_gap(size_t f, uint64_t at)
{
	if (f < seen.nr && at >= seen.functions[f].start)
		return false;
	return !f || f == seen.nr ||
	       seen.functions[f].start - seen.functions[f - 1].end >= PADDING_BYTES;
}

static void check(struct unwind_rules *rules, const struct unwind_table *table, uint64_t end)
{
	size_t f = 0;

	for (uint64_t at = ADDRESS; at < end; at++) {
		uint32_t number = unwind_table__find(table, at);
		struct kprof_unwind_rule rule;
		bool inside;

		while (f < seen.nr && at >= seen.functions[f].end)
			f++;
		inside = f < seen.nr && at >= seen.functions[f].start;
		if (!unwind_rules__copy(rules, number, &rule, 1) ||
		    rule.how > KPROF_UNWIND_REGISTER + 15)
			abort();
		if (inside ? rule.how == KPROF_UNWIND_NONE
			   : is_gap(f, at) && rule.how != KPROF_UNWIND_NONE)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct unwind_rules *rules = NULL;
	struct unwind_table *table = NULL;
	struct unwind_jit *m = NULL;
	uint64_t second = ADDRESS + 2 * MOST_BYTES;

	if (bytes > MOST_BYTES || unwind_rules__new(&rules))
		return 0;
	seen.nr = 0;
	if (!unwind_jit__new(rules, &m)) {
		add(m, data, bytes, ADDRESS);
		add(m, data + bytes / 2, bytes - bytes / 2, second);
		if (!unwind_jit__table(m, &table) && (table != NULL) != (seen.nr > 0))
			abort();
		if (table)
			check(rules, table, second + bytes);
	}
	unwind_table__free(table);
	unwind_jit__free(m);
	unwind_rules__free(rules);
	return 0;
}
