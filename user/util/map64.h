/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers by number, for where every event asks: open addressing, no allocation per entry. A value
 * of 0 is the same as no entry, and is forgotten when the table is built anew: a map of counts that
 * go up and down, or of what comes and goes, stays as large as what is not zero.
 */
#ifndef KPROF_UTIL_MAP64_H
#define KPROF_UTIL_MAP64_H

#include <stddef.h>
#include <stdint.h>

struct map64_slot {
	uint64_t tag; /* key + 1; 0: free */
	uint64_t value;
};

struct map64 { /* all zero: empty */
	struct map64_slot *slots;
	size_t cap, used; /* cap: a power of two */
};

/* Where the value of a key below UINT64_MAX lies, until the next call. NULL: no memory. */
uint64_t *map64__at(struct map64 *m, uint64_t key);
/* The value of a key; 0: it has none. Adds no entry. */
uint64_t map64__get(const struct map64 *m, uint64_t key);
void map64__free(struct map64 *m);

#endif
