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

#include "kprof/merge.h"
#include "model_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_copy(char path[32], int *fd, const uint8_t *data, size_t size)
{
	*fd = memfd_create("capture", MFD_CLOEXEC);
	if (*fd < 0 || write(*fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, 32, "/proc/self/fd/%d", *fd);
}

/* By itself, and with a copy, which is of the same machine. */
static void check_merge(const char *path, const uint8_t *data, size_t size)
{
	const struct kprof_merge_opts opts = {.sz = sizeof(opts), .output = "/dev/null"};
	char copy[32];
	const char *const paths[] = {path, copy};
	int fd;

	if (kprof_merge(paths, 1, &opts))
		return;
	open_copy(copy, &fd, data, size);
	kprof_merge(paths, 2, &opts);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[32];
	int fd;

	open_copy(path, &fd, data, size);
	check_timeline(path);
	check_results(path);
	check_samples(path);
	check_diff(path, size);
	check_waits(path);
	check_why(path);
	check_export(path);
	check_parts(path);
	check_merge(path, data, size);
	close(fd);
	return 0;
}
