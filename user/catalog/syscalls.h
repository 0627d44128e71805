/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of x86-64 by number. */
#ifndef KPROF_CATALOG_SYSCALLS_H
#define KPROF_CATALOG_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

/* The name of a system call; NULL: unused, or newer than the table. */
const char *syscall_name(uint64_t number);
/* Whether the call's first argument is a file descriptor. */
bool syscall_first_is_file(uint64_t number);

#endif
