/* SPDX-License-Identifier: BSD-2-Clause */
/* What fuzzers share: the entry, the check of a property, and pieces of the input. */
#ifndef KPROF_TESTS_FUZZ_H
#define KPROF_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define REQUIRE(cond)                                                              \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes as a number, lowest first; what the input lacks is 0. */
static inline uint64_t fuzz_number(struct fuzz_input *in, size_t bytes)
{
	uint64_t value = 0;
	size_t n = bytes < in->left ? bytes : in->left;

	memcpy(&value, in->at, n);
	in->at += n;
	in->left -= n;
	return value;
}

/*
 * A copy of the bytes and a NUL, of exactly that size so that the sanitizer sees what is read
 * beyond; the caller frees it.
 */
static inline char *fuzz_text(const void *data, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	REQUIRE(copy);
	if (bytes)
		memcpy(copy, data, bytes);
	copy[bytes] = '\0';
	return copy;
}

/* The rest of the input as a text. */
static inline char *fuzz_rest(const struct fuzz_input *in)
{
	return fuzz_text(in->at, in->left);
}

#endif
