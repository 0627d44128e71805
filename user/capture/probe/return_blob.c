// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/return_blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

struct blob_header {
	char magic[8];
	uint64_t sum; /* checksum of everything after this field */
	uint64_t stamp;
	uint64_t nr; /* of the words that follow: the offset << 1, bit 0: a result was wanted */
};

static const char magic[8] = "kpret\0\1";

#define SUM_FROM offsetof(struct blob_header, stamp)

uint64_t return_blob__sum(const char *blob, size_t bytes)
{
	uint64_t sum = bytes, word;

	for (size_t at = SUM_FROM; at + sizeof(word) <= bytes; at += sizeof(word)) {
		memcpy(&word, blob + at, sizeof(word));
		sum = hash64(sum ^ word);
	}
	return sum;
}

char *return_blob__pack(const struct kept_return *all, size_t nr, uint64_t stamp, size_t *bytes)
{
	struct blob_header h = {.stamp = stamp, .nr = nr};
	char *blob;

	*bytes = sizeof(h) + nr * sizeof(uint64_t);
	blob = malloc(*bytes);
	if (!blob)
		return NULL;
	memcpy(h.magic, magic, sizeof(magic));
	for (size_t i = 0; i < nr; i++) {
		uint64_t word = all[i].offset << 1 | all[i].result;

		memcpy(blob + sizeof(h) + i * sizeof(word), &word, sizeof(word));
	}
	memcpy(blob, &h, sizeof(h));
	h.sum = return_blob__sum(blob, *bytes);
	memcpy(blob, &h, sizeof(h));
	return blob;
}

int return_blob__unpack(const char *blob, size_t bytes, uint64_t stamp, struct kept_return *all,
			size_t *nr)
{
	struct blob_header h;

	*nr = 0;
	if (bytes < sizeof(h))
		return -EBADMSG;
	memcpy(&h, blob, sizeof(h));
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.nr > RETURN_BLOB_MOST ||
	    bytes != sizeof(h) + h.nr * sizeof(uint64_t) || h.sum != return_blob__sum(blob, bytes))
		return -EBADMSG;
	if (h.stamp != stamp)
		return -ESTALE;
	for (; *nr < h.nr; ++*nr) {
		uint64_t word;

		memcpy(&word, blob + sizeof(h) + *nr * sizeof(word), sizeof(word));
		all[*nr] = (struct kept_return){.offset = word >> 1, .result = word & 1};
	}
	return 0;
}
