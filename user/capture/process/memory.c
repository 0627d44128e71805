// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/process.h"

#include <errno.h>
#include <string.h>

#include "util/foreign.h"

#define PAGE_BYTES 4096

ssize_t process_read_some(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	return foreign_memory(pid, address, to, bytes);
}

int process_read(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	ssize_t n = process_read_some(pid, address, to, bytes);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes ? 0 : -EFAULT;
}

int process_read_string(pid_t pid, uint64_t address, char *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes - 1) {
		size_t chunk = PAGE_BYTES - ((address + done) & (PAGE_BYTES - 1));
		const char *end;

		if (chunk > bytes - 1 - done)
			chunk = bytes - 1 - done;
		if (process_read(pid, address + done, to + done, chunk))
			return -EFAULT;
		end = memchr(to + done, '\0', chunk);
		if (end)
			return 0;
		done += chunk;
	}
	to[done] = '\0';
	return 0;
}
