/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One ELF file, mapped read-only: symbols (.symtab when there, .dynsym else), program headers,
 * sections, build id, code bytes (file.c, segments.c, symbols.c), and its static probes (usdt.c).
 * Hostile files are rejected or read within their bounds, never trusted. Built on libelf.
 *
 * Addresses: "vaddr" as in the file's program headers, "offset" in the file. Uprobes want offsets.
 */
#ifndef KPROF_SYMBOL_ELF_H
#define KPROF_SYMBOL_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- the file ---- */

struct elffile;
/* -ENOENT, -EACCES, -ENOEXEC (no ELF, or not x86-64); error text set. */
int elffile__open(const char *path, struct elffile **out);
/* The same of a regular file that is open already, and stays so; the path is for messages. */
int elffile__open_fd(int fd, const char *path, struct elffile **out);
void elffile__close(struct elffile *e);
const char *elffile__path(const struct elffile *e);
/* Lower-case hex of the GNU build id, "" when there is none. */
const char *elffile__build_id(const struct elffile *e);
bool elffile__has_symtab(const struct elffile *e);    /* .symtab: local symbols can be found */
bool elffile__is_static(const struct elffile *e);     /* no PT_INTERP and no PT_DYNAMIC */
const char *elffile__interp(const struct elffile *e); /* PT_INTERP or NULL */

/* Which file it was when it was opened: what is made from it is kept under this. */
struct elffile_identity {
	uint64_t bytes;
	dev_t dev;
	uint64_t inode;
	uid_t owner;
	uint64_t changed_ns; /* ctime: cannot be set back */
	bool linked;         /* it has a name somewhere */
};
const struct elffile_identity *elffile__identity(const struct elffile *e);

/* ---- addresses and bytes ---- */

/* File offset of a vaddr within a PT_LOAD; UINT64_MAX: none. And back. */
uint64_t elffile__offset(const struct elffile *e, uint64_t vaddr);
uint64_t elffile__vaddr(const struct elffile *e, uint64_t offset);
/*
 * The vaddr at which an executable mapping of the file begins that begins at this offset. Mappings
 * begin at whole pages, where the segment before may still go on in the file. UINT64_MAX: no
 * executable segment is mapped there.
 */
uint64_t elffile__code_vaddr(const struct elffile *e, uint64_t offset);
/*
 * The bytes at a file offset, at most max; *avail says how many lie there. NULL: out of the file.
 */
const uint8_t *elffile__bytes(const struct elffile *e, uint64_t offset, size_t max, size_t *avail);
/*
 * Gives the memory back that reading the file has filled: a library's symbols are hundreds of
 * megabytes. What is looked at again is read again.
 */
void elffile__forget_pages(const struct elffile *e);
/*
 * The file was cut short after it was opened, or cannot be read: what is gone read as zeros, and
 * nothing that was built from it is worth keeping.
 */
bool elffile__cut(const struct elffile *e);
/* A section's content by name; NULL: none. */
const uint8_t *elffile__section(const struct elffile *e, const char *name, size_t *bytes);
/* The same with the address at which it is loaded (0: it is not). */
const uint8_t *elffile__section_at(const struct elffile *e, const char *name, size_t *bytes,
				   uint64_t *vaddr);
/* Whether there is such a section with content, compressed or not. */
bool elffile__has_section(const struct elffile *e, const char *name);
/* Whether the section of this number holds code, and the vaddr lies in it. */
bool elffile__in_code_section(const struct elffile *e, uint32_t section, uint64_t vaddr);
bool elffile__executable(const struct elffile *e, uint64_t offset); /* lies in a PF_X segment */
bool elffile__is_code(const struct elffile *e, uint64_t vaddr);     /* the same */
/*
 * Bytes of the file from this address on, to its segment's end; 0: it has none there. No address
 * beyond them wraps.
 */
uint64_t elffile__left(const struct elffile *e, uint64_t vaddr);

/* ---- symbols ---- */

/*
 * A million symbols may share one name of megabytes. No more of a name than this is looked at: the
 * longest of a real library has some kilobytes.
 */
#define ELFFILE_NAME_MOST (16u << 10)

struct elffile_symbol {
	const char *name; /* mangled, as in the file, without @version */
	uint64_t vaddr, size;
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
	bool local;    /* not in .dynsym */
};
/* Every defined symbol of .symtab, or of .dynsym where there is no .symtab. fn: non-zero stops. */
int elffile__symbols(const struct elffile *e, int (*fn)(void *ctx, const struct elffile_symbol *s),
		     void *ctx);
/* By exact name, through the hash table of .dynsym if possible; 0 found, -ENOENT. */
int elffile__symbol(const struct elffile *e, const char *name, struct elffile_symbol *out);
/*
 * The function symbol that covers a vaddr; 0 found, -ENOENT. Builds an index at its first call.
 * out->name is valid until the next call.
 */
int elffile__symbol_at(struct elffile *e, uint64_t vaddr, struct elffile_symbol *out);

/* A symbol table in place, for those who look at every symbol of a large file once. */
struct elffile_table {
	const Elf64_Sym *syms; /* within the file's mapping */
	size_t nr;             /* 0: there is none */
	const char *names;     /* the last byte is a NUL */
	size_t names_bytes;
};
const struct elffile_table *elffile__table(const struct elffile *e, bool dynamic);

/* ---- static probes (USDT), of the section .note.stapsdt ---- */

struct usdt_probe {
	const char *provider, *name, *args; /* valid as long as the file is open */
	uint64_t offset;                    /* in the file: where the probe goes */
	uint64_t semaphore;                 /* in the file: the counter of tracers; 0: none */
};

/*
 * Every well-formed one whose place lies in executable code. fn: non-zero stops, and is returned.
 * Malformed notes end the list.
 */
int usdt_probes(const struct elffile *e, int (*fn)(void *ctx, const struct usdt_probe *p),
		void *ctx);

/*
 * False: the file at this path has none for certain. Reads its section headers and their names,
 * which takes a tenth of opening it; true in doubt.
 */
bool usdt_may_be_in(const char *path);

#endif
