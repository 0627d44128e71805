/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that appears whole or not at all: written under a temporary name in the same directory,
 * then renamed. Mode 0600, owned by the calling user under sudo (set_owner), never written through
 * a symlink: the temporary is opened with O_EXCL|O_NOFOLLOW, and a target that is a symlink in a
 * directory others can write to is refused.
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
 * path "-": standard output; an existing character device or FIFO: opened as it is; both without
 * temporary and rename. An existing regular file is replaced at commit, and so is a symlink where
 * no other user could have put it. Errors set with cause and hint.
 */
int outfile__open(const char *path, const struct outfile_opts *opts, struct outfile **out);
int outfile__fd(const struct outfile *f);
/* Where the data goes meanwhile; of an output without temporary: its name. */
const char *outfile__temp_path(const struct outfile *f);
/* Writes all of it; retries short writes and EINTR. */
int outfile__write(struct outfile *f, const void *data, size_t bytes);
/*
 * fsync, close, rename. The object is freed whatever comes back; on error the temporary is removed.
 */
int outfile__commit(struct outfile *f);
/*
 * For what is worth keeping though it is not whole: outfile__sync() alone puts the data on the
 * disk, outfile__keep() closes and renames without it. If the renaming fails the temporary stays
 * where it is, and the error says where. The object is freed by keep, whatever comes back.
 */
int outfile__sync(struct outfile *f);
int outfile__keep(struct outfile *f);
/* Closes and removes the temporary. NULL is fine. */
void outfile__discard(struct outfile *f);

#endif
