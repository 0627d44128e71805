// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the kernels of a collective communicate: what is known of the call that launched them.
 */
#include "model/correlate/impl.h"

#include <errno.h>
#include <string.h>

/* The call is one of a collective if it has the first of these keys. Kineto copies all of them. */
static const char *const keys[] = {
	"Collective name",
	"In msg nelems",
	"Out msg nelems",
	"Group size",
	"dtype",
	"In split size",
	"Out split size",
	"Process Group Name",
	"Process Group Description",
	"Process Group Ranks",
	"Dst Rank",
	"Src Rank",
};

static bool is_key(const struct correlate *c, uint32_t string)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(timeline__string(c->t, string), keys[i]))
			return true;
	return false;
}

int correlate__keep_collective(struct correlate *c, const struct tl_span *s)
{
	struct corr_collective *kept;

	if (!timeline__attr(c->t, s->attrs, s->nr_attrs, keys[0]))
		return 0;
	kept = correlate__push(&c->collectives);
	if (!kept)
		return -ENOMEM;
	*kept = (struct corr_collective){.op = (uint32_t)s->id,
					 .first = (uint32_t)c->collective_attrs.nr};
	for (uint32_t i = 0; i < s->nr_attrs; i++) {
		struct store_attr *attr;

		if (!is_key(c, s->attrs[i].key))
			continue;
		attr = correlate__push(&c->collective_attrs);
		if (!attr)
			return -ENOMEM;
		*attr = s->attrs[i];
		kept->nr++;
	}
	return 0;
}

static int by_op(const void *a, const void *b, void *ctx)
{
	uint32_t x = ((const struct corr_collective *)a)->op;
	uint32_t y = ((const struct corr_collective *)b)->op;

	return x < y ? -1 : x > y;
}

int correlate__sort_collectives(struct correlate *c)
{
	return bulk__sort(&c->collectives, 0, c->collectives.nr, by_op, NULL);
}

static const struct corr_collective *of_op(const struct correlate *c, uint32_t op)
{
	size_t low = 0, high = c->collectives.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct corr_collective *at = bulk__at(&c->collectives, mid);

		if (at->op == op)
			return at;
		if (at->op < op)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

uint32_t correlate__collective(const struct correlate *c, const struct corr_act *act,
			       struct store_attr *to, uint32_t room)
{
	const struct corr_call *call = correlate__call(c, act->call);
	const struct corr_collective *of =
		act->type == KPROF_ACTIVITY_KERNEL && call && call->op ? of_op(c, call->op) : NULL;
	uint32_t nr = 0;

	while (of && nr < of->nr && nr < room) {
		to[nr] = *(struct store_attr *)bulk__at(&c->collective_attrs, of->first + nr);
		nr++;
	}
	return nr;
}
