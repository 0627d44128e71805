/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps texts to their string ids, so that the writer writes each text once. A program that invents
 * new names for ever ("step 1", "step 2", …) must not fill the memory: at STRINGS_MAX_BYTES all
 * entries are forgotten, and a text that is used again is written again, under a new id.
 */
#ifndef KPROF_STORE_STRINGS_H
#define KPROF_STORE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct string_entry;
#define STRINGS_MAX_BYTES (16u << 20)

struct strings {
	struct string_entry *by_bytes;
	size_t bytes; /* of all entries, without the hash table */
};

/* The id of a text; 0: not in the map. */
uint32_t strings__find(const struct strings *s, const char *bytes, size_t len);
/* Adds a copy of the bytes. If the bytes are there already, their first id is kept. -ENOMEM. */
int strings__add(struct strings *s, const char *bytes, size_t len, uint32_t id);
void strings__free(struct strings *s);

#endif
