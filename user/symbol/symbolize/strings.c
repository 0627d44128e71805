// SPDX-License-Identifier: BSD-2-Clause
/*
 * Strings and lines of one file's answers. Names of functions and source files repeat, so each is
 * stored once.
 */
#include "symbol/symbolize/priv.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define CHUNK_BYTES (64u << 10)

struct symbol_chunk {
	struct symbol_chunk *next;
	size_t used, bytes;
	_Alignas(max_align_t) char room[];
};

struct symbol_string { /* in a chunk */
	UT_hash_handle hh;
	char text[];
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

const char *symbol_strings__add(struct symbol_strings *s, const char *text, size_t bytes)
{
	struct symbol_string *string;

	if (!bytes)
		return "";
	bytes = strnlen(text, bytes);
	HASH_FIND(hh, s->all, text, bytes, string);
	if (string)
		return string->text;
	string = symbol_strings__room(s, sizeof(*string) + bytes + 1);
	if (!string)
		return NULL;
	memcpy(string->text, text, bytes);
	string->text[bytes] = '\0';
	HASH_ADD(hh, s->all, text, bytes, string);
	return string->hh.tbl ? string->text : NULL;
}

void symbol_strings__free(struct symbol_strings *s)
{
	HASH_CLEAR(hh, s->all);
	while (s->chunks) {
		struct symbol_chunk *c = s->chunks;

		s->chunks = c->next;
		free(c);
	}
}
