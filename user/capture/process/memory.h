/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading another process's memory. Nothing of it is changed, and it is not stopped. */
#ifndef KPROF_CAPTURE_MEMORY_H
#define KPROF_CAPTURE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it or nothing: 0 or -EFAULT. */
int process_read(pid_t pid, uint64_t address, void *to, size_t bytes);
/* A string with its end, cut to what fits; 0 or -EFAULT. Reads page by page: the next one may not be mapped. */
int process_read_string(pid_t pid, uint64_t address, char *to, size_t bytes);

#endif
