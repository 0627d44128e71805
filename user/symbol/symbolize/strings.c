// SPDX-License-Identifier: BSD-2-Clause
/*
 * Strings and lines of one file's answers. Names of functions and source files repeat, so each is
 * stored once.
 */
#include "symbol/symbolize/priv.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64u << 10)

struct symbol_chunk {
	struct symbol_chunk *next;
	size_t used, bytes;
	_Alignas(max_align_t) char room[];
};

void *symbol_strings__room(struct symbol_strings *s, size_t bytes)
{
	struct symbol_chunk *c = s->chunks;
	size_t want = (bytes + 7) & ~(size_t)7;
	void *room;

	if (!c || c->bytes - c->used < want) {
		size_t size = want > CHUNK_BYTES / 4 ? want : CHUNK_BYTES;

		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		c->used = 0;
		c->bytes = size;
		c->next = s->chunks;
		s->chunks = c;
		/*
		 * A chunk for one large string is full at once: put it after the chunk that is
		 * being filled.
		 */
		if (size == want && c->next) {
			s->chunks = c->next;
			c->next = s->chunks->next;
			s->chunks->next = c;
		}
	}
	room = c->room + c->used;
	c->used += want;
	return room;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return h ^ (h >> 32);
}

static const char **slot_of(const char **slots, size_t cap, const char *text, size_t bytes)
{
	size_t at = hash_text(text, bytes) & (cap - 1);

	while (slots[at] && (strncmp(slots[at], text, bytes) || slots[at][bytes]))
		at = (at + 1) & (cap - 1);
	return &slots[at];
}

static bool grow(struct symbol_strings *s)
{
	size_t cap = s->cap ? s->cap * 2 : 256;
	const char **slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < s->cap; i++) {
		if (s->slots[i])
			*slot_of(slots, cap, s->slots[i], strlen(s->slots[i])) = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	return true;
}

const char *symbol_strings__add(struct symbol_strings *s, const char *text, size_t bytes)
{
	const char **slot;
	char *copy;

	if (!bytes)
		return "";
	bytes = strnlen(text, bytes);
	if (s->nr >= s->cap / 2 && !grow(s))
		return NULL;
	slot = slot_of(s->slots, s->cap, text, bytes);
	if (*slot)
		return *slot;
	copy = symbol_strings__room(s, bytes + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	*slot = copy;
	s->nr++;
	return copy;
}

void symbol_strings__free(struct symbol_strings *s)
{
	while (s->chunks) {
		struct symbol_chunk *c = s->chunks;

		s->chunks = c->next;
		free(c);
	}
	free(s->slots);
	*s = (struct symbol_strings){0};
}
