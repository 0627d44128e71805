// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a map of JIT code, and as the kernel's list of symbols. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/names/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile size_t sum;

static void use_map(const uint8_t *data, size_t bytes)
{
	uint64_t start = 0, before = 0;
	struct perfmap *m;

	if (perfmap__parse((const char *)data, bytes, &m))
		return;
	for (unsigned int i = 0; i < 64; i++) {
		const char *name = perfmap__find(m, before, &start);

		if (name) {
			if (start > before)
				abort();
			sum += strlen(name);
		}
		before = i < 32 ? before + 8 : before * 3 + 1;
	}
	perfmap__free(m);
}

static void use_kallsyms(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct kallsyms_symbol s;
	struct kallsyms *k;
	char path[32];

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kallsyms__load(path, &k))
		return;
	for (uint64_t at = 1; at; at <<= 1) {
		if (!kallsyms__find(k, at, &s)) {
			if (s.address > at)
				abort();
			sum += strlen(s.name) + strlen(s.module);
		}
	}
	kallsyms__free(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	use_map(data, bytes);
	use_kallsyms(data, bytes);
	return 0;
}
