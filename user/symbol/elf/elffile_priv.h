/* SPDX-License-Identifier: BSD-2-Clause */
/* What elffile.c (the file, its segments and sections) and elfsym.c (its symbols) share. */
#ifndef KPROF_ELFFILE_PRIV_H
#define KPROF_ELFFILE_PRIV_H

#include <gelf.h>
#include <sys/types.h>

#include "symbol/elf/elffile.h"
#include "util/mapped.h"

struct elf_symtab {
	const Elf64_Sym *syms; /* within the file's mapping */
	size_t nr;
	const char *names; /* the last byte is a NUL */
	size_t names_bytes;
};

/* .gnu.hash, its parts checked against the section's size. */
struct elf_gnu_hash {
	const uint32_t *buckets, *chain;
	uint32_t nr_buckets; /* 0: no table */
	uint32_t first_symbol, nr_chain;
};

struct elf_index_entry {
	uint64_t vaddr;
	uint64_t max_end; /* greatest end of this and all entries before */
	uint32_t symbol;  /* in the table that elffile__symbols() walks */
};

struct elffile {
	char *path;
	Elf *elf;
	struct mapped *mapped;
	const uint8_t *image; /* the whole file */
	size_t image_bytes;
	dev_t dev; /* where it lies, and whose it is */
	uid_t owner;
	uint64_t inode;
	uint64_t changed_ns; /* ctime: nobody can set it back */
	bool linked;         /* it has a name somewhere */
	GElf_Phdr *segments;
	size_t nr_segments;
	char build_id[2 * 64 + 1];
	const char *interp; /* within image; NULL: none */
	bool executable;    /* a program: exports few of its global symbols */
	bool has_dynamic;
	bool defines_versions; /* .symtab may say "name@@VERSION" */

	struct elf_symtab full, dyn;
	struct elf_gnu_hash hash;
	const uint16_t *versions; /* of dyn, as many; NULL: none */

	struct elf_index_entry *index; /* functions by vaddr; NULL: not built yet */
	size_t nr_index;
	char name_at[256]; /* what elffile__symbol_at() last cut a version off from */
};

/* Finds the symbol tables; without any, the file just has no symbols. */
void elffile__find_symbols(struct elffile *e);

#endif
