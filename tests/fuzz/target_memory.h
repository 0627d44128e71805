/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In place of the functions that read a process's memory: what is read is part of the fuzzer's
 * input, at any address but 0 whose last 12 bits lie within it. A fuzzer itself includes this.
 */
#ifndef KPROF_TESTS_TARGET_MEMORY_H
#define KPROF_TESTS_TARGET_MEMORY_H

#include <errno.h>
#include <string.h>

#include "capture/process/process.h"
#include "fuzz.h"

static struct fuzz_input memory;

ssize_t process_read_some(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	uint64_t at = address & 0xfff, n;

	if (!address || at >= memory.left)
		return -EFAULT;
	n = bytes < memory.left - at ? bytes : memory.left - at;
	memcpy(to, memory.at + at, n);
	return (ssize_t)n;
}

int process_read(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	ssize_t n = process_read_some(pid, address, to, bytes);

	return n < 0 || (size_t)n < bytes ? -EFAULT : 0;
}

int process_read_string(pid_t pid, uint64_t address, char *to, size_t bytes)
{
	ssize_t n = process_read_some(pid, address, to, bytes - 1);

	if (n < 0)
		return -EFAULT;
	to[n] = '\0';
	return 0;
}

#endif
