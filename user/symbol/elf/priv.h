/* SPDX-License-Identifier: BSD-2-Clause */
/* What file.c, sections.c, segments.c and symbols.c share. */
#ifndef KPROF_SYMBOL_ELF_PRIV_H
#define KPROF_SYMBOL_ELF_PRIV_H

#include <elf.h>

#include "symbol/elf/elf.h"
#include "util/mapped.h"

/* The parts of .gnu.hash, checked against the section's size. */
struct elf_gnu_hash {
	const uint32_t *buckets, *chain;
	uint32_t nr_buckets; /* 0: no table */
	uint32_t first_symbol, nr_chain;
};

struct elf_index_entry {
	uint64_t vaddr;
	uint64_t max_end; /* the greatest end of this entry and all entries before */
	uint32_t symbol;  /* index in the table that elffile__symbols() walks */
};

struct elffile {
	char *path;
	struct mapped *mapped;
	const uint8_t *image; /* the whole file */
	size_t image_bytes;
	struct elffile_identity identity;
	Elf64_Phdr *segments;
	size_t nr_segments;
	Elf64_Shdr *sections;
	size_t nr_sections;
	const char *section_names; /* NULL: none; the last byte is a NUL */
	size_t section_names_bytes;
	char build_id[2 * 64 + 1];
	const char *interp;    /* within image; NULL: none */
	uint64_t entry;        /* vaddr of the first instruction of a process; 0: none */
	bool executable;       /* a program: exports few of its global symbols */
	bool defines_versions; /* .symtab may say "name@@VERSION" */

	struct elffile_table full, dyn;
	struct elf_gnu_hash hash;
	const uint16_t *versions; /* one per symbol of .dyn; NULL: none */

	struct elf_index_entry *index; /* functions by vaddr; NULL: not built yet */
	size_t nr_index;
	char name_at[256]; /* buffer of elffile__symbol_at() for a name without its version */
};

/* Whether [offset, offset + bytes) lies in the file. */
static inline bool elffile__in_image(const struct elffile *e, uint64_t offset, uint64_t bytes)
{
	return offset <= e->image_bytes && bytes <= e->image_bytes - offset;
}

/*
 * segments.c: reads the program headers, the build id and the interpreter. -ENOEXEC, -ENOMEM; the
 * error is set.
 */
int elffile__load_segments(struct elffile *e, const Elf64_Ehdr *h);
/* sections.c: reads the section headers. -ENOMEM; the error is set. */
int elffile__load_sections(struct elffile *e, const Elf64_Ehdr *h);
/* The content of a section. NULL: none, too much, or misaligned for its type. */
const void *elffile__content(const struct elffile *e, const Elf64_Shdr *section, size_t align,
			     size_t *bytes);
/* symbols.c: finds the symbol tables. A file without any just has no symbols. */
void elffile__find_symbols(struct elffile *e);

/* A static probe as its note describes it, with addresses as they were at link time. */
struct usdt_note {
	struct {
		uint64_t place, base, semaphore;
	} addresses;
	const char *provider, *name, *args; /* within the note */
};

/*
 * usdt.c: calls fn for every well-formed note among these bytes. fn returns non-zero to stop, which
 * is then returned. A note that does not fit ends the list.
 */
int usdt_notes(const uint8_t *at, size_t left, int (*fn)(void *ctx, const struct usdt_note *n),
	       void *ctx);

#endif
