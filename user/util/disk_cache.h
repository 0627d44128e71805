/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache on disk of what was found out about files. Its directory can be read by its owner only,
 * and files get their names by renaming when they are complete. A directory or file that has
 * another owner, or that others may write to, is treated as absent. File names begin with a build
 * id where there is one. The callers define the content of the files and check that it is complete:
 * symbol/symbolize/cache.c (.sym), symbol/unwind/cache.c (.unw), capture/probe/return_cache.c
 * (.ret).
 */
#ifndef KPROF_UTIL_DISK_CACHE_H
#define KPROF_UTIL_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_CACHE_NAME_BYTES 192
#define DISK_CACHE_BOUND (512ull << 20) /* of all files together */

/*
 * Opens the directory, and creates it if need be. NULL means the default: /var/cache/kprof/symbols
 * for root, else kprof/symbols in $XDG_CACHE_HOME or ~/.cache. Returns -1 for "" (no cache) and for
 * a directory that cannot be used; the functions below accept -1 and then do nothing.
 */
int disk_cache__open(const char *path);
/*
 * The name of the cache's file for this build id. False: the build id is missing or too short to be
 * unique.
 */
bool disk_cache__name(char name[DISK_CACHE_NAME_BYTES], const char *build_id, const char *suffix);
/*
 * Reads a whole file of at most most_bytes into *out, which is malloc'ed. A negative errno
 * (-ENOENT, -EPERM, -EFBIG, -ENOMEM, …): there is no usable file.
 */
int disk_cache__read(int dir, const char *name, size_t most_bytes, char **out, size_t *bytes);
/* False: the file could not be written, which callers need not treat as an error. */
bool disk_cache__write(int dir, const char *name, const void *data, size_t bytes);
/* Removes the files that were not used for longest, until the rest is within the bound. */
void disk_cache__trim(int dir, uint64_t bound_bytes);

#endif
