/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One ELF file, mapped read-only: symbols (.symtab if present, else .dynsym), program headers,
 * sections, build id and code bytes (file.c, sections.c, segments.c, symbols.c), and its static
 * probes (usdt.c). Files are not trusted: hostile ones are rejected, or read within their bounds,
 * and none of their tables is read further than the limits below, since a sparse file of terabytes
 * costs its author nothing.
 *
 * "vaddr" is an address as in the file's program headers, "offset" a position in the file. Uprobes
 * take offsets.
 */
#ifndef KPROF_SYMBOL_ELF_H
#define KPROF_SYMBOL_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Limits, some ten times what the largest libraries of frameworks have. Sections beyond are as if
 * they were not there, symbols beyond are left out.
 */
#define ELFFILE_SECTIONS_MOST 16384
#define ELFFILE_SECTION_BYTES_MOST (512u << 20)
#define ELFFILE_SYMBOLS_MOST (8u << 20)
#define ELFFILE_NAMES_BYTES_MOST (2ull << 30) /* of symbols; only those that are needed are read */
#define ELFFILE_NEEDED_MOST 4096              /* entries of .dynamic */

/* ---- the file ---- */

struct elffile;
/*
 * Opens and checks a file. -ENOENT, -EACCES, -ENOEXEC (not ELF, or not x86-64); the error is set.
 */
int elffile__open(const char *path, struct elffile **out);
/*
 * The same for a regular file that is already open. The descriptor stays the caller's; the path is
 * for messages.
 */
int elffile__open_fd(int fd, const char *path, struct elffile **out);
void elffile__close(struct elffile *e);
const char *elffile__path(const struct elffile *e);
/* The GNU build id in lower-case hex; "" when there is none. */
const char *elffile__build_id(const struct elffile *e);
bool elffile__has_symtab(const struct elffile *e);    /* .symtab: local symbols can be found */
const char *elffile__interp(const struct elffile *e); /* PT_INTERP or NULL */

/* Identifies the file as it was when it was opened; caches keep their entries under this. */
struct elffile_identity {
	uint64_t bytes;
	dev_t dev;
	uint64_t inode;
	uid_t owner;
	uint64_t changed_ns; /* ctime: cannot be set back */
	bool linked;         /* it has at least one name in a directory */
};
const struct elffile_identity *elffile__identity(const struct elffile *e);
/* A hash of that: of exactly this file, unchanged since. */
uint64_t elffile__stamp(const struct elffile *e);

/* ---- addresses and bytes ---- */

/* Converts a vaddr within a PT_LOAD segment to its file offset, and back. UINT64_MAX: none. */
uint64_t elffile__offset(const struct elffile *e, uint64_t vaddr);
uint64_t elffile__vaddr(const struct elffile *e, uint64_t offset);
/*
 * The vaddr where an executable mapping begins that maps the file from this offset on. Mappings
 * begin at whole pages, in which the previous segment may still end. UINT64_MAX: no executable
 * segment is mapped from there.
 */
uint64_t elffile__code_vaddr(const struct elffile *e, uint64_t offset);
/*
 * The vaddr at which a process begins that executes this file. 0: none; of a library it means
 * nothing.
 */
uint64_t elffile__entry(const struct elffile *e);
/*
 * The bytes at a file offset; *avail: how many there are, at most max. NULL: outside of the file.
 */
const uint8_t *elffile__bytes(const struct elffile *e, uint64_t offset, size_t max, size_t *avail);
/*
 * Releases the memory of the pages read so far, hundreds of megabytes for a library's symbols. They
 * are read again when needed.
 */
void elffile__forget_pages(const struct elffile *e);
/*
 * Whether the file was truncated after it was opened, or cannot be read. What is missing reads as
 * zeros, and results from this file should not be kept.
 */
bool elffile__cut(const struct elffile *e);
/* A section's content by name; NULL: none. */
const uint8_t *elffile__section(const struct elffile *e, const char *name, size_t *bytes);
/* The same, with the address at which the section is loaded (0: it is not loaded). */
const uint8_t *elffile__section_at(const struct elffile *e, const char *name, size_t *bytes,
				   uint64_t *vaddr);
/*
 * Calls fn with the name of each library that the file needs (DT_NEEDED; cut after NAME_MAX bytes)
 * until it returns true; whether it did. Of more than ELFFILE_NEEDED_MOST entries, the rest is not
 * looked at.
 */
bool elffile__needs(const struct elffile *e, bool (*fn)(void *ctx, const char *name), void *ctx);
/* Whether there is a section of this name with content, compressed or not. */
bool elffile__has_section(const struct elffile *e, const char *name);
/* Whether the section of this number holds code, and the vaddr lies in it. */
bool elffile__in_code_section(const struct elffile *e, uint32_t section, uint64_t vaddr);
bool elffile__executable(const struct elffile *e, uint64_t offset); /* in a PF_X segment */
bool elffile__is_code(const struct elffile *e, uint64_t vaddr);     /* the same for a vaddr */
/*
 * How many bytes of its segment the file has from this address on; 0: it has none there. The
 * address plus this number does not wrap.
 */
uint64_t elffile__left(const struct elffile *e, uint64_t vaddr);

/* ---- symbols ---- */

/*
 * Longer names are cut: in a hostile file a million symbols may share one name of megabytes. The
 * longest names of real libraries have some kilobytes.
 */
#define ELFFILE_NAME_MOST (16u << 10)

struct elffile_symbol {
	const char *name; /* mangled, as in the file, without @version */
	uint64_t vaddr, size;
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
	bool local;    /* not in .dynsym */
};
/*
 * Calls fn for every defined symbol of .symtab, or of .dynsym where there is no .symtab. fn returns
 * non-zero to stop.
 */
int elffile__symbols(const struct elffile *e, int (*fn)(void *ctx, const struct elffile_symbol *s),
		     void *ctx);
/*
 * Finds a symbol by its exact name, through the hash table of .dynsym if possible. 0: found;
 * -ENOENT.
 */
int elffile__symbol(const struct elffile *e, const char *name, struct elffile_symbol *out);
/* Is there a function of this name in .dynsym? That alone is looked at. */
bool elffile__exports(const struct elffile *e, const char *name);
/*
 * Finds the function symbol that covers a vaddr. 0: found; -ENOENT. The first call builds an index.
 * out->name is valid until the next call.
 */
int elffile__symbol_at(struct elffile *e, uint64_t vaddr, struct elffile_symbol *out);

/* A symbol table as it is in the file, for callers that read every symbol of a large file once. */
struct elffile_table {
	const Elf64_Sym *syms; /* within the file's mapping */
	size_t nr;             /* 0: there is none */
	const char *names;     /* the last byte is a NUL */
	size_t names_bytes;
};
const struct elffile_table *elffile__table(const struct elffile *e, bool dynamic);

/* ---- static probes (USDT), of the section .note.stapsdt ---- */

struct usdt_probe {
	const char *provider, *name, *args; /* valid while the file is open */
	uint64_t offset;                    /* in the file: where the probe goes */
	uint64_t semaphore;                 /* in the file: the counter of tracers; 0: none */
};

/*
 * Calls fn for every well-formed probe whose place is in executable code. fn returns non-zero to
 * stop, which is then returned. A malformed note ends the list.
 */
int usdt_probes(const struct elffile *e, int (*fn)(void *ctx, const struct usdt_probe *p),
		void *ctx);

/*
 * False: the file at this path certainly has no such probes. Reads only its section headers and
 * their names, a tenth of the time of opening it; true if in doubt.
 */
bool usdt_may_be_in(const char *path);

#endif
