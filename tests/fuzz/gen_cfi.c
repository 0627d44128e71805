// SPDX-License-Identifier: BSD-2-Clause
/*
 * Seeds for fuzz_cfi: the .eh_frame of this very program and of the C library's loader, in pieces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf/elf.h"

#define PIECE_BYTES 2000

static int write_piece(const char *folder, const char *name, size_t nr, const uint8_t *bytes,
		       size_t size)
{
	char path[4096];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s-%zu", folder, name, nr);
	to = fopen(path, "we");
	if (!to)
		return -1;
	fputc(0, to); /* .eh_frame's format */
	fwrite(bytes, 1, size, to);
	return fclose(to);
}

int main(int argc, char **argv)
{
	static const char *const files[][2] = {{"/proc/self/exe", "program"},
					       {"/lib64/ld-linux-x86-64.so.2", "loader"}};

	if (argc != 2)
		return 2;
	for (size_t i = 0; i < 2; i++) {
		struct elffile *e;
		const uint8_t *bytes;
		size_t size;

		if (elffile__open(files[i][0], &e))
			return 1;
		/* The beginning: each piece needs the common part that stands in front. */
		bytes = elffile__section(e, ".eh_frame", &size);
		for (size_t nr = 1; bytes && nr <= 2; nr++)
			if (write_piece(argv[1], files[i][1], nr, bytes,
					size < nr * PIECE_BYTES ? size : nr * PIECE_BYTES))
				return 1;
		elffile__close(e);
	}
	return 0;
}
