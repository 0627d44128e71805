/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes have which string id: what the writer remembers so as to write each text once. A
 * program that names things anew for ever ("step 1", "step 2", …) must not fill the memory: at
 * STRINGS_MAX_BYTES all is forgotten, and a text that is used again is written again, under a new
 * id.
 */
#ifndef KPROF_STORE_STRINGS_H
#define KPROF_STORE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct string_entry;
#define STRINGS_MAX_BYTES (16u << 20)

struct strings {
	struct string_entry *by_bytes;
	size_t bytes; /* of all entries, the table itself not included */
};

/* 0: not known. */
uint32_t strings__find(const struct strings *s, const char *bytes, size_t len);
/* Copies the bytes; of two ids for the same bytes the first is kept. -ENOMEM. */
int strings__add(struct strings *s, const char *bytes, size_t len, uint32_t id);
void strings__free(struct strings *s);

#endif
