/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The return addresses of a file in serialized form, for the cache on disk. The content is only a
 * hint: whoever uses it decodes the code again (return_cache.c).
 */
#ifndef KPROF_CAPTURE_RETURN_BLOB_H
#define KPROF_CAPTURE_RETURN_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept_return {
	uint64_t offset; /* in the file, < 2^63 */
	bool result;     /* a result was wanted there */
};

/*
 * Return addresses: all are placed when a file is met, which takes the kernel some 50 us each, and
 * are removed at the end. A training step needs about a hundred.
 */
#define RETURN_BLOB_MOST 512
#define RETURN_BLOB_MAX_BYTES (RETURN_BLOB_MOST * 8 + 64)

/* The stamp identifies the file. Returns malloc'ed bytes; NULL: no memory. */
char *return_blob__pack(const struct kept_return *all, size_t nr, uint64_t stamp, size_t *bytes);
/* Fills `all`, which has room for RETURN_BLOB_MOST. -EBADMSG: damaged; -ESTALE: another stamp. */
int return_blob__unpack(const char *blob, size_t bytes, uint64_t stamp, struct kept_return *all,
			size_t *nr);
/* The checksum that the blob must contain. */
uint64_t return_blob__sum(const char *blob, size_t bytes);

#endif
