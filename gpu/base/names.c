// SPDX-License-Identifier: BSD-2-Clause
/* A table of names in memory pages of its own, since the agent must not use malloc. */
#include <string.h>

#include "gpu/base/names.h"
#include "gpu/base/util.h"

#define CHUNK_BYTES (256u << 10)
#define FIRST_ROOM 1024u

struct gpu_name {
	const char *text; /* NULL: free */
	uint32_t bytes;
	uint32_t hash;
	uint32_t id;
};

struct gpu_names_chunk {
	struct gpu_names_chunk *next;
	size_t room, used; /* bytes of text[] */
	char text[];
};

/*
 * Hashes eight bytes a step. Every byte counts, since the names of kernels often differ only near
 * their ends.
 */
static uint32_t hash_of(const char *text, size_t bytes)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t h = bytes * odd, word;

	for (; bytes >= 8; text += 8, bytes -= 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * odd;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, text, bytes);
	h = (h ^ word) * odd;
	return (uint32_t)(h ^ h >> 32);
}

static struct gpu_name *find(const struct gpu_names *n, const char *text, size_t bytes,
			     uint32_t hash)
{
	for (uint32_t i = hash & (n->room - 1);; i = (i + 1) & (n->room - 1)) {
		struct gpu_name *e = &n->table[i];

		if (!e->text ||
		    (e->hash == hash && e->bytes == bytes && !memcmp(e->text, text, bytes)))
			return e;
	}
}

static bool grow(struct gpu_names *n)
{
	struct gpu_names bigger = *n;

	if (n->nr < n->room / 4 * 3)
		return true;
	bigger.room = n->room ? n->room * 2 : FIRST_ROOM;
	bigger.table = gpu_pages(bigger.room * sizeof(*bigger.table));
	if (!bigger.table)
		return n->nr + 1 < n->room;
	for (uint32_t i = 0; i < n->room; i++) {
		const struct gpu_name *e = &n->table[i];

		if (e->text)
			*find(&bigger, e->text, e->bytes, e->hash) = *e;
	}
	gpu_pages_free(n->table, n->room * sizeof(*n->table));
	*n = bigger;
	return true;
}

static const char *keep(struct gpu_names *n, const char *text, size_t bytes)
{
	struct gpu_names_chunk *c = n->chunks;
	size_t room;

	if (!c || c->room - c->used < bytes) {
		room = bytes + sizeof(*c) > CHUNK_BYTES ? bytes + sizeof(*c) : CHUNK_BYTES;
		c = gpu_pages(room);
		if (!c)
			return NULL;
		c->room = room - sizeof(*c);
		c->next = n->chunks;
		n->chunks = c;
	}
	memcpy(c->text + c->used, text, bytes);
	c->used += bytes;
	n->bytes += bytes;
	return c->text + c->used - bytes;
}

uint32_t gpu_names__id(struct gpu_names *n, const char **text, size_t *bytes, bool *is_new)
{
	uint32_t hash = hash_of(*text, *bytes);
	struct gpu_name *e;

	*is_new = false;
	if (n->room) {
		e = find(n, *text, *bytes, hash);
		if (e->text)
			return e->id;
	}
	if (n->max_bytes && (n->nr + 1 >= GPU_NAMES_MAX || n->bytes + *bytes > n->max_bytes))
		return 0;
	if (n->nr + 1 >= GPU_NAMES_MAX || n->bytes + *bytes > GPU_NAMES_MAX_BYTES) {
		*text = GPU_NAMES_REST;
		*bytes = sizeof(GPU_NAMES_REST) - 1;
		hash = hash_of(*text, *bytes);
	}
	if (!grow(n))
		return 0;
	e = find(n, *text, *bytes, hash);
	if (e->text)
		return e->id;
	e->text = keep(n, *text, *bytes);
	if (!e->text)
		return 0;
	e->bytes = (uint32_t)*bytes;
	e->hash = hash;
	e->id = ++n->nr;
	*is_new = true;
	return e->id;
}

void gpu_names__clear(struct gpu_names *n)
{
	struct gpu_names_chunk *c = n->chunks, *next;

	for (; c; c = next) {
		next = c->next;
		gpu_pages_free(c, c->room + sizeof(*c));
	}
	gpu_pages_free(n->table, n->room * sizeof(*n->table));
	*n = (struct gpu_names){.max_bytes = n->max_bytes};
}
