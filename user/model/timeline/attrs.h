/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes on their way to the ends of the spans that they belong to. In a capture they stand in
 * front of the events, a chunk's worth at a time, and those of one span may come in several
 * records: they wait here, by the span's number.
 */
#ifndef KPROF_TIMELINE_ATTRS_H
#define KPROF_TIMELINE_ATTRS_H

#include <stddef.h>
#include <stdint.h>

#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/map64.h"

struct attrs_node;

struct attrs {                /* all zero: empty */
	struct map64 by_span; /* the first node and the last, each + 1: first << 32 | last */
	struct attrs_node *nodes;
	size_t cap_nodes, nr_nodes;
	uint32_t free;  /* first of the nodes given back, + 1; 0: none */
	size_t waiting; /* attributes now */
	uint64_t lost;  /* too many, of one span or at once */
	struct store_attr taken[TL_MAX_ATTRS];
};

/* -ENOMEM. */
int attrs__add(struct attrs *a, uint64_t span, const struct store_attr *attrs, uint32_t nr);
/*
 * The attributes of a span, each key once and the latest value of it, which wait no longer. They
 * lie in a->taken until the next call; returns how many.
 */
uint32_t attrs__take(struct attrs *a, uint64_t span);
void attrs__free(struct attrs *a);

#endif
