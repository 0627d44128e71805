/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file systems can be read without the risk of waiting for ever. */
#ifndef KPROF_UTIL_MOUNTS_H
#define KPROF_UTIL_MOUNTS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * What is known of an open file (O_PATH is enough) without asking its file system: type, device and
 * inode, and the mount that it was opened through. 0 or -errno.
 */
int mounts_look(int fd, struct statx *out);
/* Whether the file is a memfd, or other memory of the kernel's that has no mount. */
bool mounts_in_memory(const struct statx *file);
/*
 * Whether the file's content comes from a kernel's own file system, whose server, if it has any,
 * was mounted by this machine's root. `pid`: a process that has the mount in its namespace; 0: this
 * one.
 */
bool mounts_trusted(pid_t pid, const struct statx *file);
/* From now on every mount is trusted. To be called before foreign_prepare() copies this state. */
void mounts_trust_all(void);

#endif
