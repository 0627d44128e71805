// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the return addresses of the cache, with the right checksum: refused, or a list that
 * packs to the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/probe/return_blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define STAMP 7
#define SUM_AT 8
#define STAMP_AT 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct kept_return all[RETURN_BLOB_MOST];
	char *blob = malloc(bytes + 1), *again;
	uint64_t word = STAMP;
	size_t nr, packed;

	if (!blob)
		abort();
	memcpy(blob, data, bytes);
	if (bytes >= STAMP_AT + sizeof(word)) {
		memcpy(blob, "kpret\0\1", 8);
		memcpy(blob + STAMP_AT, &word, sizeof(word));
		word = return_blob__sum(blob, bytes);
		memcpy(blob + SUM_AT, &word, sizeof(word));
	}
	if (!return_blob__unpack(blob, bytes, STAMP, all, &nr)) {
		again = return_blob__pack(all, nr, STAMP, &packed);
		if (!again || packed != bytes || memcmp(again, blob, bytes))
			abort();
		free(again);
	}
	free(blob);
	return 0;
}
