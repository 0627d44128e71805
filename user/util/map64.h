/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A map from 64-bit numbers to 64-bit numbers, fast enough for a lookup at each event: a hash table
 * with open addressing, without an allocation per entry. A value of 0 is the same as no entry, and
 * is dropped when the table is rebuilt: the size follows the number of values that are not zero,
 * even when keys come and go for ever. Where a key lies is different in each process: nothing that
 * is shown may depend on the order of slots.
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

/*
 * Where the value of a key lies, until the next call; adds the key with 0 if need be. The key is
 * below UINT64_MAX. NULL: no memory.
 */
uint64_t *map64__at(struct map64 *m, uint64_t key);
/* The value of a key; 0 if it has none. Adds no entry. */
uint64_t map64__get(const struct map64 *m, uint64_t key);
void map64__free(struct map64 *m);

#endif
