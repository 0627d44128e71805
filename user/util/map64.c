// SPDX-License-Identifier: BSD-2-Clause
#include "util/map64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "util/util.h"

#define MIN_SLOTS 64

/*
 * Keys may be chosen by who wants them all at one place: addresses of a hostile process, numbers of
 * a capture. So what no other process knows is a part of the hash: an odd factor whose product's
 * upper bits are the place, for any two keys the same one as rarely as by chance.
 */
static uint64_t seed, factor = 1;

__attribute__((constructor)) static void choose(void)
{
	const void *of_kernel = (const void *)getauxval(AT_RANDOM);
	uint64_t random[2];

	if (of_kernel) {
		memcpy(random, of_kernel, sizeof(random));
		seed = hash64(random[0] ^ hash64(random[1]));
		factor = hash64(random[1] ^ hash64(seed)) | 1;
	}
}

/* The upper bits of the hash, as many as number the slots. */
static size_t place_of(const struct map64 *m, uint64_t tag)
{
	return (hash64(tag ^ seed) * factor) >> (64 - __builtin_ctzll(m->cap));
}

static struct map64_slot *probe(const struct map64 *m, uint64_t tag)
{
	size_t i = place_of(m, tag);

	while (m->slots[i].tag && m->slots[i].tag != tag)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

/* Moves the entries to a new table, at most a quarter full. Values of 0 are dropped. */
static int rebuild(struct map64 *m)
{
	struct map64 fresh = {.cap = MIN_SLOTS};

	for (size_t i = 0; i < m->cap; i++)
		fresh.used += m->slots[i].value != 0;
	while (fresh.cap / 4 < fresh.used)
		fresh.cap *= 2;
	fresh.slots = calloc(fresh.cap, sizeof(*fresh.slots));
	if (!fresh.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].value)
			*probe(&fresh, m->slots[i].tag) = m->slots[i];
	}
	free(m->slots);
	*m = fresh;
	return 0;
}

uint64_t *map64__at(struct map64 *m, uint64_t key)
{
	uint64_t tag = key + 1;
	struct map64_slot *slot;

	if (m->cap) {
		slot = probe(m, tag);
		if (slot->tag)
			return &slot->value;
	}
	if (m->used >= m->cap / 2 && rebuild(m))
		return NULL;
	slot = probe(m, tag);
	slot->tag = tag;
	slot->value = 0;
	m->used++;
	return &slot->value;
}

uint64_t map64__get(const struct map64 *m, uint64_t key)
{
	return m->cap ? probe(m, key + 1)->value : 0;
}

void map64__free(struct map64 *m)
{
	free(m->slots);
	*m = (struct map64){0};
}
