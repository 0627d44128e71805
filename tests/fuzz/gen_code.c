// SPDX-License-Identifier: BSD-2-Clause
/* Seeds for fuzz_code: functions of this very program. */
#include <stdio.h>
#include <string.h>

#include "symbol/elf/elf.h"

struct writer {
	const struct elffile *elf;
	const char *folder, *name;
	unsigned int nr, left;
};

static int on_symbol(void *ctx, const struct elffile_symbol *symbol)
{
	struct writer *w = ctx;
	uint64_t offset = elffile__offset(w->elf, symbol->vaddr);
	const uint8_t *code;
	size_t bytes = 0;
	char path[4096];
	FILE *to;

	/* One in three, of a size that a fuzzer can do something with. */
	if (!symbol->function || symbol->size < 100 || symbol->size > 800 || w->nr++ % 3)
		return 0;
	code = offset == UINT64_MAX ? NULL : elffile__bytes(w->elf, offset, symbol->size, &bytes);
	if (!code)
		return 0;
	snprintf(path, sizeof(path), "%s/%s-%u", w->folder, w->name, w->left);
	to = fopen(path, "we");
	if (!to)
		return -1;
	fwrite(code, 1, bytes, to);
	if (fclose(to))
		return -1;
	return !--w->left;
}

int main(int argc, char **argv)
{
	struct writer w = {.name = "program", .left = 12};
	struct elffile *e;
	int err;

	if (argc != 2 || elffile__open("/proc/self/exe", &e))
		return 1;
	w.elf = e;
	w.folder = argv[1];
	err = elffile__symbols(e, on_symbol, &w);
	elffile__close(e);
	return err < 0;
}
