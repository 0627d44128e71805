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
 * If this process is root, changes to another user, without any groups. False: it is still root.
 */
bool sandbox_become(uid_t user, gid_t group);

#endif
