/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pieces of an array are free: the first that is big enough is taken, neighbours that come
 * back grow together.
 */
#ifndef KPROF_UTIL_RANGES_H
#define KPROF_UTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint32_t at, nr;
};

struct ranges { /* all zero: nothing is free */
	struct range *free;
	size_t nr, cap;
};

/* These elements are free now. -ENOMEM: they stay taken. Nothing for nr 0. */
int ranges__give(struct ranges *r, uint32_t at, uint32_t nr);
/* Takes so many, more than 0, that lie beside each other. -ENOSPC. */
int ranges__take(struct ranges *r, uint32_t nr, uint32_t *at);
void ranges__free(struct ranges *r);

#endif
