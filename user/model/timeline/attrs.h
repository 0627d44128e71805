/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds attributes until the ends of the spans that they belong to. A capture has a chunk's
 * attributes in front of the chunk's events, and those of one span may come in several records.
 * They are kept here by the span's id.
 */
#ifndef KPROF_TIMELINE_ATTRS_H
#define KPROF_TIMELINE_ATTRS_H

#include <stddef.h>
#include <stdint.h>

#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/map64.h"

struct attrs_node;

struct attrs { /* all zero: empty */
	/* By the span's id: its first and last node, each + 1: first << 32 | last. */
	struct map64 by_span;
	struct attrs_node *nodes;
	size_t cap_nodes, nr_nodes;
	uint32_t free;  /* first node of the list of free ones, + 1; 0: none */
	size_t waiting; /* number of attributes held now */
	uint64_t lost;  /* attributes dropped: too many of one span, or too many held at once */
	struct store_attr taken[TL_MAX_ATTRS];
};

/* Adds nr attributes to a span. -ENOMEM. */
int attrs__add(struct attrs *a, uint64_t span, const struct store_attr *attrs, uint32_t nr);
/*
 * Removes and returns the attributes of a span: each key once, with its latest value. They lie in
 * a->taken until the next call; returns how many there are.
 */
uint32_t attrs__take(struct attrs *a, uint64_t span);
/* The latest attribute of a type that a span has; NULL: it has none. Valid until the next call. */
const struct store_attr *attrs__find(const struct attrs *a, uint64_t span, uint32_t type);
void attrs__free(struct attrs *a);

#endif
