/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was found out about files, kept on disk: files in a directory that only its owner may read,
 * put there by renaming. Whatever is not as it should be (another owner, others may write) is as if
 * it were not there. Names begin with a build id, where there is one; what is in the files, and
 * whether it is whole, is the callers' business: symbol/symbolize/cache.c (.sym),
 * symbol/unwind/cache.c (.unw).
 */
#ifndef KPROF_UTIL_DISK_CACHE_H
#define KPROF_UTIL_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_CACHE_NAME_BYTES 192
#define DISK_CACHE_BOUND (512ull << 20) /* of all files together */

/*
 * Opens the directory, which is made if need be. NULL: as root /var/cache/kprof/symbols, else
 * $XDG_CACHE_HOME or ~/.cache with /kprof/symbols. "", or what cannot be used: -1, as which the
 * others do nothing.
 */
int disk_cache__open(const char *path);
/* Where a file of this id would lie; false: it has no id that is its own alone. */
bool disk_cache__name(char name[DISK_CACHE_NAME_BYTES], const char *build_id, const char *suffix);
/*
 * A whole file of at most so many bytes, malloc'ed. -ENOENT, -EPERM, -EBADMSG, -ENOMEM, …: there is
 * none.
 */
int disk_cache__read(int dir, const char *name, size_t most_bytes, char **out, size_t *bytes);
/* False: not written, which is no error. */
bool disk_cache__write(int dir, const char *name, const void *data, size_t bytes);
/* Removes what was not read for longest, until what is left is below the bound. */
void disk_cache__trim(int dir, uint64_t bound_bytes);

#endif
