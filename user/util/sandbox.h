/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits that a process puts on itself, for good: on its system calls, its capabilities, its user.
 * All of them hold for the calling thread, and for threads and processes that it then starts.
 */
#ifndef KPROF_UTIL_SANDBOX_H
#define KPROF_UTIL_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * From now on, this process can only read files and write to descriptors that it has open. 0;
 * -errno: the kernel does not support this.
 */
int sandbox_only_reads(void);
/*
 * From now on, this process can only accept connections, and read from and write to descriptors
 * that it has or is handed: no files, no other sockets, processes or programs.
 */
int sandbox_only_serves(void);
/*
 * From now on, this process can open nothing but what is below the folders: to read, and to read,
 * make, write and remove files. 0; -errno: the kernel does not support this.
 */
int sandbox_only_folders(const char *from, const char *into);
/* The same for what no recording does (sandbox.c has the list). */
int sandbox_deny(void);

/*
 * Keeps of the capabilities that this process has those in the set (bits 1 << CAP_*), and takes
 * care that no program gives them back. 0 or -errno.
 */
int sandbox_keep(uint64_t capabilities);
/* The capabilities that this process can use, as such a set. */
uint64_t sandbox_capabilities(void);

/*
 * Hints for a root who lacks capabilities, as in a container: why a file of another process could
 * not be opened (err: the -errno of that), and why no helper could become another user. NULL: it is
 * not for want of those.
 */
const char *sandbox_lacks_for_files(int err);
const char *sandbox_lacks_for_users(void);

/*
 * If this process is root, changes to another user, without any groups. False: it is still root.
 */
bool sandbox_become(uid_t user, gid_t group);

#endif
