// SPDX-License-Identifier: BSD-2-Clause
#include "model/timeline/attrs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* Attributes held at a time, of all spans together: 48 MB. A chunk has some hundred thousand. */
#define MAX_WAITING (1u << 21)

struct attrs_node {
	struct store_attr attr;
	uint32_t next; /* number of the next node + 1; 0: this is the last */
};

/* Stores an attribute in a node and returns the node's number + 1; 0: out of memory. */
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
	uint64_t *slot;

	if (!nr)
		return 0;
	if (!span || a->waiting + nr > MAX_WAITING) {
		a->lost += nr;
		return 0;
	}
	slot = map64__at(&a->by_span, span - 1);
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t last = (uint32_t)*slot, id = new_node(a, &attrs[i]);

		if (!id)
			return -ENOMEM;
		if (last)
			a->nodes[last - 1].next = id;
		*slot = (last ? *slot >> 32 : id) << 32 | id;
		a->waiting++;
	}
	return 0;
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
	uint64_t found = a->waiting ? map64__get(&a->by_span, span - 1) : 0;
	uint32_t nr = 0;

	if (!found)
		return 0;
	for (uint32_t id = (uint32_t)(found >> 32), next; id; id = next) {
		struct attrs_node *node = &a->nodes[id - 1];

		nr = take_one(a, nr, &node->attr);
		next = node->next;
		node->next = a->free;
		a->free = id;
		a->waiting--;
	}
	*map64__at(&a->by_span, span - 1) = 0; /* the key exists, so this can not fail */
	return nr;
}

const struct store_attr *attrs__find(const struct attrs *a, uint64_t span, uint32_t type)
{
	uint64_t found = a->waiting ? map64__get(&a->by_span, span - 1) : 0;
	const struct store_attr *last = NULL;

	for (uint32_t id = (uint32_t)(found >> 32); id; id = a->nodes[id - 1].next)
		if (a->nodes[id - 1].attr.type == type)
			last = &a->nodes[id - 1].attr;
	return last;
}

void attrs__free(struct attrs *a)
{
	map64__free(&a->by_span);
	free(a->nodes);
	memset(a, 0, sizeof(*a));
}
