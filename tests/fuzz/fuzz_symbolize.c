// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as an ELF file whose addresses are looked up (symbols, stubs), and as a file of the
 * cache with the right checksum. DWARF is not among it, nor what unpacks .gnu_debugdata: that may
 * crash, in a process of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "symbol/symbolize/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile size_t sum;

static void use_file(struct elffile *e)
{
	struct symbolizer_opts opts = {.cache_dir = "", .debug_dir = "/nonexistent", .threads = 1};
	struct symbol_module module = {.elf = e, .path = "[fuzz]"};
	struct symbol_request requests[512];
	struct symbol_result results[512];
	struct symbolizer *s;
	uint32_t id;

	if (symbolizer__new(&opts, &s))
		abort();
	if (symbolizer__add_module(s, &module, &id))
		abort();
	for (uint32_t i = 0; i < 512; i++)
		requests[i] =
			(struct symbol_request){id, i < 500 ? i * 19 : ~0ull >> (i - 500), i & 1};
	if (symbolizer__resolve(s, requests, 512, results))
		abort();
	for (uint32_t i = 0; i < 512; i++) {
		if (results[i].nr_lines < 1)
			abort();
		sum += strlen(results[i].lines->function) + strlen(results[i].lines->file);
	}
	symbolizer__free(s);
}

static void use_blob(const uint8_t *data, size_t bytes)
{
	struct symbol_strings strings = {0};
	struct symbol_knowns known;
	uint32_t crc;
	char *blob = malloc(bytes + 1);
	size_t again_bytes;

	if (!blob)
		abort();
	memcpy(blob, data, bytes);
	if (bytes > 12) {
		crc = (uint32_t)crc32(0, data + 12, (uInt)(bytes - 12));
		memcpy(blob, "kpsym\0\1", 8);
		memcpy(blob + 8, &crc, sizeof(crc));
	}
	if (!symbol_blob__unpack(blob, bytes, 0, &strings, &known)) {
		struct symbol_knowns same;
		char *again = symbol_blob__pack(&known, 0, &again_bytes);

		for (size_t i = 0; i < known.nr; i++)
			sum += strlen(known.all[i].lines[known.all[i].nr_lines - 1].function);
		if (!again || symbol_blob__unpack(again, again_bytes, 0, &strings, &same) ||
		    same.nr != known.nr)
			abort();
		free(same.all);
		free(again);
		free(known.all);
	}
	symbol_strings__free(&strings);
	free(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct elffile *e;
	char path[32];

	use_blob(data, bytes);
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!elffile__open(path, &e)) {
		use_file(e);
		elffile__close(e);
	}
	return 0;
}
