/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that appears complete or not at all: it is written under a temporary name in the same
 * directory, locked (flock), then renamed. Its mode is 0600, its owner the calling user under sudo
 * (set_owner).
 * Nothing is written through a symlink: the temporary file is opened with O_EXCL|O_NOFOLLOW, and a
 * path that is a symlink in a directory that others can write to is refused.
 */
#ifndef KPROF_UTIL_OUTFILE_H
#define KPROF_UTIL_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outfile_opts {
	bool set_owner;
	uint32_t uid, gid;
};

struct outfile;
/*
 * Opens an output. The path "-" is standard output; an existing character device or FIFO is opened
 * itself; both are without a temporary file and renaming. An existing regular file is replaced at
 * commit, and so is a symlink that no other user could have put there. Errors are set with cause
 * and hint.
 */
int outfile__open(const char *path, const struct outfile_opts *opts, struct outfile **out);
int outfile__fd(const struct outfile *f);
/* The path of the temporary file; without one, the path of the output itself. */
const char *outfile__temp_path(const struct outfile *f);
/* Writes all bytes; retries short writes and EINTR. */
int outfile__write(struct outfile *f, const void *data, size_t bytes);
/*
 * Syncs, closes and renames. The object is freed in any case; on error the temporary file is
 * removed.
 */
int outfile__commit(struct outfile *f);
/*
 * For outputs that are worth keeping although incomplete: outfile__sync() puts the data on the
 * disk, outfile__keep() closes and renames without doing so. If the renaming fails, the temporary
 * file stays, and the error says where. outfile__keep() frees the object in any case.
 */
int outfile__sync(struct outfile *f);
int outfile__keep(struct outfile *f);
/*
 * The same without waiting for the disk at all, which begins to write: a power failure within the
 * next seconds may take the file, or its end, with it.
 */
int outfile__keep_soon(struct outfile *f);
/* Closes the output, removes the temporary file and frees the object. NULL is fine. */
void outfile__discard(struct outfile *f);

#endif
