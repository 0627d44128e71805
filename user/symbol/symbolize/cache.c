// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cache of answers on disk: BUILDID.sym, each a blob (blob.c). Files that are damaged, or were
 * made from other debug information, are ignored.
 */
#include "util/disk_cache.h"
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>

#define SUFFIX ".sym"

int symbol_cache__read(int dir, const char *build_id, uint64_t stamp,
		       struct symbol_strings *strings, struct symbol_knowns *out)
{
	char name[DISK_CACHE_NAME_BYTES], *blob;
	size_t bytes;
	int err;

	*out = (struct symbol_knowns){0};
	if (!disk_cache__name(name, build_id, SUFFIX))
		return -ENOENT;
	err = disk_cache__read(dir, name, SYMBOL_BLOB_MAX, &blob, &bytes);
	if (err)
		return err;
	err = symbol_blob__unpack(blob, bytes, stamp, strings, out);
	free(blob);
	return err;
}

bool symbol_cache__write(int dir, const char *build_id, uint64_t stamp,
			 const struct symbol_knowns *known)
{
	char name[DISK_CACHE_NAME_BYTES], *blob;
	size_t bytes;
	bool done;

	if (dir < 0 || !known->nr || !disk_cache__name(name, build_id, SUFFIX))
		return false;
	blob = symbol_blob__pack(known, stamp, &bytes);
	if (!blob)
		return false;
	done = disk_cache__write(dir, name, blob, bytes);
	free(blob);
	return done;
}
