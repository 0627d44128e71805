// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/nested.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"

struct nested_level {
	uint64_t inside; /* known times inside of it in ns, each moment once, or values */
	uint32_t outer;  /* level + 1 of the row's next open span outwards, or next free level */
};

static struct nested_level *level_at(const struct nested *n, uint32_t number)
{
	return (struct nested_level *)n->levels.data + number - 1;
}

static uint64_t key_of(uint32_t row, const struct tl_span *s)
{
	return (uint64_t)s->thread << 32 | row;
}

int nested__begin(struct nested *n, uint32_t row, const struct tl_span *s)
{
	uint64_t *innermost = map64__at(&n->innermost, key_of(row, s));
	uint32_t number = n->free;

	if (innermost && !number && vec_push(&n->levels, sizeof(struct nested_level)))
		number = (uint32_t)n->levels.nr;
	else if (innermost && number)
		n->free = level_at(n, number)->outer;
	if (!innermost || !number)
		return error_set(-ENOMEM, NULL, "out of memory for the spans that are open");
	*level_at(n, number) = (struct nested_level){.outer = (uint32_t)*innermost};
	*innermost = number;
	return 0;
}

uint64_t nested__end(struct nested *n, uint32_t row, const struct tl_span *s)
{
	return nested__end_value(n, row, s, !(s->flags & KPROF_EVENT_CLOSED),
				 s->end_ns - s->start_ns);
}

uint64_t nested__end_value(struct nested *n, uint32_t row, const struct tl_span *s, bool known,
			   uint64_t value)
{
	uint64_t *innermost = map64__at(&n->innermost, key_of(row, s)); /* has its begin's entry */
	uint32_t number = innermost ? (uint32_t)*innermost : 0;
	struct nested_level *level;

	if (!number)
		return 0;
	level = level_at(n, number);
	if (!known)
		value = level->inside;
	*innermost = level->outer;
	level->outer = n->free;
	n->free = number;
	if (!*innermost)
		return value;
	level_at(n, (uint32_t)*innermost)->inside += value;
	return 0;
}

bool nested__is_open(const struct nested *n, uint32_t row, const struct tl_span *s)
{
	return map64__get(&n->innermost, key_of(row, s)) != 0;
}

void nested__free(struct nested *n)
{
	map64__free(&n->innermost);
	free(n->levels.data);
}
