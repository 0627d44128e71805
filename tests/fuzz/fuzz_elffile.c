// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as an ELF file: opened, walked, looked up, searched for schemas and static probes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/elf/elf.h"
#include "symbol/python/python.h"
#include "symbol/names/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Reads every byte of what it is given, so that the sanitizer sees what is out of bounds. */
static volatile uint64_t sum;

static void read_all(const void *data, size_t bytes)
{
	for (size_t i = 0; data && i < bytes; i++)
		sum += ((const uint8_t *)data)[i];
}

static int read_symbol(void *ctx, const struct elffile_symbol *s)
{
	unsigned int *left = ctx;

	read_all(s->name, strlen(s->name) + 1);
	return !--*left;
}

static bool read_need(void *ctx, const char *name)
{
	(void)ctx;
	read_all(name, strlen(name) + 1);
	return false;
}

static int read_probe(void *ctx, const struct usdt_probe *p)
{
	unsigned int *nr = ctx;

	read_all(p->provider, strlen(p->provider) + strlen(p->name) + strlen(p->args) + 3);
	++*nr;
	return 0;
}

/* What is found by opening the file in full must not be overlooked by the shorter way. */
static void use_probes(const char *path, const struct elffile *e)
{
	unsigned int nr = 0;

	usdt_probes(e, read_probe, &nr);
	if (!usdt_may_be_in(path) && nr)
		abort();
}

static void use(struct elffile *e)
{
	static const char *const sections[] = {".rodata", ".text", ".symtab", ".eh_frame"};
	const char *name, *overload, *text;
	struct elffile_symbol s;
	struct python_elf *python;
	struct schemas *schemas;
	unsigned int left = 10000;
	size_t bytes;

	elffile__symbols(e, read_symbol, &left);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		read_all(elffile__section(e, sections[i], &bytes), bytes);
	read_all(elffile__build_id(e), strlen(elffile__build_id(e)));
	if (elffile__interp(e))
		read_all(elffile__interp(e), strlen(elffile__interp(e)));
	for (uint64_t vaddr = 0; vaddr < 0x4000; vaddr += 0x333) {
		uint64_t offset = elffile__offset(e, vaddr);

		if (!elffile__symbol_at(e, vaddr, &s))
			read_all(s.name, strlen(s.name));
		if (offset != UINT64_MAX) {
			read_all(elffile__bytes(e, offset, 64, &bytes), bytes);
			elffile__vaddr(e, offset);
			elffile__executable(e, offset);
		}
	}
	if (!python_elf__open(e, &python)) {
		for (uint64_t vaddr = 0; vaddr < 0x4000; vaddr += 0x333)
			python_elf__native(python, vaddr);
		python_elf__free(python);
	}
	elffile__needs(e, read_need, NULL);
	elffile__symbol(e, "main", &s);
	elffile__symbol(e, "_ZN2at4_ops10add_Tensor4callE", &s);
	if (!schemas__load(e, &schemas)) {
		if (!schemas__find(schemas, "add_Tensor", &name, &overload, &text))
			read_all(text, strlen(text) + strlen(name) + strlen(overload) ? 1 : 0);
		schemas__free(schemas);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct elffile *e;
	char path[32];

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!elffile__open(path, &e)) {
		use(e);
		use_probes(path, e);
		elffile__close(e);
	}
	return 0;
}
