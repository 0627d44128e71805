// SPDX-License-Identifier: BSD-2-Clause
#include "model/timeline/attrs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* At once, of all spans together: a chunk has some hundred thousand at most. 48 MB. */
#define MAX_WAITING (1u << 21)

struct attrs_slot {
	uint64_t span;        /* 0: free */
	uint32_t first, last; /* nodes, + 1 */
};

struct attrs_node {
	struct store_attr attr;
	uint32_t next; /* + 1; 0: the last */
};

/* Where the span is, or would be put. */
static size_t find(const struct attrs *a, uint64_t span)
{
	size_t i = hash64(span) & (a->cap - 1);

	while (a->slots[i].span && a->slots[i].span != span)
		i = (i + 1) & (a->cap - 1);
	return i;
}

static int grow(struct attrs *a)
{
	struct attrs_slot *old = a->slots;
	size_t old_cap = a->cap;

	a->cap = old_cap ? old_cap * 2 : 256;
	a->slots = calloc(a->cap, sizeof(*a->slots));
	if (!a->slots) {
		a->slots = old;
		a->cap = old_cap;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].span)
			a->slots[find(a, old[i].span)] = old[i];
	free(old);
	return 0;
}

/* A node's number + 1; 0: no memory. */
static uint32_t new_node(struct attrs *a, const struct store_attr *attr)
{
	uint32_t id = a->free;

	if (id) {
		a->free = a->nodes[id - 1].next;
	} else {
		if (vec_grow((void **)&a->nodes, &a->cap_nodes, a->nr_nodes, sizeof(*a->nodes)))
			return 0;
		id = (uint32_t)++a->nr_nodes;
	}
	a->nodes[id - 1] = (struct attrs_node){.attr = *attr};
	return id;
}

int attrs__add(struct attrs *a, uint64_t span, const struct store_attr *attrs, uint32_t nr)
{
	struct attrs_slot *slot;

	if (!nr)
		return 0;
	if (!span || a->waiting + nr > MAX_WAITING) {
		a->lost += nr;
		return 0;
	}
	if ((a->used + 1) * 2 > a->cap && grow(a))
		return -ENOMEM;
	slot = &a->slots[find(a, span)];
	if (!slot->span) {
		*slot = (struct attrs_slot){.span = span};
		a->used++;
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t id = new_node(a, &attrs[i]);

		if (!id)
			return -ENOMEM;
		if (slot->last)
			a->nodes[slot->last - 1].next = id;
		else
			slot->first = id;
		slot->last = id;
		a->waiting++;
	}
	return 0;
}

/* Takes slot i out: those that had to step aside for it move back. */
static void remove_slot(struct attrs *a, size_t i)
{
	size_t mask = a->cap - 1;

	for (size_t j = (i + 1) & mask; a->slots[j].span; j = (j + 1) & mask) {
		size_t home = hash64(a->slots[j].span) & mask;

		if (((j - home) & mask) >= ((j - i) & mask)) {
			a->slots[i] = a->slots[j];
			i = j;
		}
	}
	a->slots[i] = (struct attrs_slot){0};
	a->used--;
}

static uint32_t take_one(struct attrs *a, uint32_t nr, const struct store_attr *attr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (a->taken[i].key == attr->key) {
			a->taken[i] = *attr;
			return nr;
		}
	}
	if (nr == TL_MAX_ATTRS) {
		a->lost++;
		return nr;
	}
	a->taken[nr] = *attr;
	return nr + 1;
}

uint32_t attrs__take(struct attrs *a, uint64_t span)
{
	uint32_t nr = 0;
	size_t at;

	if (!a->used)
		return 0;
	at = find(a, span);
	if (!a->slots[at].span)
		return 0;
	for (uint32_t id = a->slots[at].first, next; id; id = next) {
		struct attrs_node *node = &a->nodes[id - 1];

		nr = take_one(a, nr, &node->attr);
		next = node->next;
		node->next = a->free;
		a->free = id;
		a->waiting--;
	}
	remove_slot(a, at);
	return nr;
}

void attrs__free(struct attrs *a)
{
	free(a->slots);
	free(a->nodes);
	memset(a, 0, sizeof(*a));
}
