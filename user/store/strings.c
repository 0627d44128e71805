// SPDX-License-Identifier: BSD-2-Clause
#include "store/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((entry)->id = 0)
#include <uthash.h>

struct string_entry {
	UT_hash_handle hh;
	uint32_t id;
	char bytes[];
};

uint32_t strings__find(const struct strings *s, const char *bytes, size_t len)
{
	struct string_entry *entry = NULL;

	HASH_FIND(hh, s->by_bytes, bytes, len, entry);
	return entry ? entry->id : 0;
}

int strings__add(struct strings *s, const char *bytes, size_t len, uint32_t id)
{
	struct string_entry *entry;

	if (strings__find(s, bytes, len))
		return 0;
	if (s->bytes + sizeof(*entry) + len > STRINGS_MAX_BYTES)
		strings__free(s);
	entry = malloc(sizeof(*entry) + len);
	if (!entry)
		return -ENOMEM;
	entry->id = id;
	if (len)
		memcpy(entry->bytes, bytes, len);
	HASH_ADD_KEYPTR(hh, s->by_bytes, entry->bytes, len, entry);
	if (!entry->id) {
		free(entry);
		return -ENOMEM;
	}
	s->bytes += sizeof(*entry) + len;
	return 0;
}

void strings__free(struct strings *s)
{
	struct string_entry *entry = s->by_bytes, *next;

	HASH_CLEAR(hh, s->by_bytes); /* frees the table, but not its entries */
	for (; entry; entry = next) {
		next = entry->hh.next;
		free(entry);
	}
	s->bytes = 0;
}
