// SPDX-License-Identifier: BSD-2-Clause
/*
 * A capture file of any bytes, through everything that is made of one: tables, spans, result,
 * call tree. See fuzz_records.c for streams that get past the file's checksums.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[32];
	int fd = memfd_create("capture", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_timeline(path);
	check_results(path);
	check_samples(path);
	check_diff(path, size);
	check_waits(path);
	check_why(path);
	check_export(path);
	check_parts(path);
	close(fd);
	return 0;
}
