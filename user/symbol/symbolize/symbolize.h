/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of addresses: function, source line, and the functions that were inlined there.
 *
 * Addresses are looked up together, file by file: a table of half a million symbols is walked once,
 * in order, and only the names that are needed are kept. Files are read in parallel, and answers
 * are cached on disk by build id. Names come from these sources, in this order: the file's .symtab,
 * else its .dynsym and .gnu_debugdata; a separate debug file, found by build id or .gnu_debuglink
 * on this machine, or from a debuginfod server; DWARF for lines and inlined functions, which is
 * read in a child process whose time and memory are limited, and which may crash.
 *
 * A symbol with a size must cover the address. One without a size extends to the next symbol of its
 * section. An address that no symbol covers has no name: the caller shows module and offset, never
 * the nearest symbol as a guess. Of several names for one place these are preferred, in this order:
 * one with a size, a function to a bare label, a global or weak one to a local one, the one with
 * the fewest leading underscores, the shortest, the first in byte order.
 */
#ifndef KPROF_SYMBOL_SYMBOLIZE_H
#define KPROF_SYMBOL_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf/elf.h"

#define SYMBOL_MAX_INLINES 64 /* most lines of one address, including the function itself */

struct symbolizer_opts { /* strings must be valid until symbolizer__free() */
	/* Directory of the cache (util/disk_cache.h). NULL: the default; "": no cache. */
	const char *cache_dir;
	uint64_t cache_bound_bytes; /* limit for the size of all files in the cache; 0: 512 MB */
	bool keep_cache;            /* it is above it until another time: looking takes long */
	bool debuginfod;            /* use the servers of DEBUGINFOD_URLS, if that is set */
	bool lines;                 /* source lines and inlined functions, not just names */
	unsigned int threads;       /* 0: as many as CPUs */
	uint64_t module_time_ns; /* limit for one file's DWARF, and again for its server; 0: 20 s */
	/*
	 * limit for DWARF and servers of all files, after which only names are looked up; 0: none
	 */
	uint64_t total_time_ns;
	/* how long a server's answer that it has no debug file is valid; 0: a day */
	uint64_t absent_ns;
	const char *debug_dir; /* directory of separate debug files; NULL: /usr/lib/debug */
	/*
	 * Reports how many addresses of `total` are done. Calls come one at a time, from any
	 * thread. If it returns non-zero, resolving stops with -ECANCELED.
	 */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

struct symbol_module {
	/*
	 * Must stay open until symbolizer__free(), and must not be used elsewhere while addresses
	 * are resolved.
	 */
	struct elffile *elf;
	const char *path; /* for messages, and for .gnu_debuglink; copied */
	/*
	 * Debug files are also looked for under this root directory ("/proc/PID/root"); "" or NULL:
	 * no other.
	 */
	const char *root;
};

struct symbol_request {
	uint32_t module; /* the id from symbolizer__add_module() */
	uint64_t vaddr;
	bool return_address; /* vaddr is after a call: vaddr - 1 is looked up, to find the call */
};

struct symbol_line {
	const char *function; /* as in the file: mangled; "foo@plt" for a stub; "": unknown */
	const char *file;     /* "": unknown */
	uint32_t line;        /* 0: unknown */
};

struct symbol_result {
	/* innermost inlined function first; owned by the symbolizer */
	const struct symbol_line *lines;
	uint32_t nr_lines; /* ≥ 1 */
};

struct symbolizer_stats {
	uint64_t addresses, unknown; /* addresses looked up; those without a name */
	uint64_t cached;             /* addresses found in the cache */
	uint32_t modules;            /* modules that were read */
	uint32_t gave_up;     /* modules whose DWARF took too long or was damaged: names only */
	uint32_t debug_files; /* separate debug files that were used */
};

struct symbolizer;

int symbolizer__new(const struct symbolizer_opts *opts, struct symbolizer **out);
void symbolizer__free(struct symbolizer *s);
/* Adds a module; ids count from 0. */
int symbolizer__add_module(struct symbolizer *s, const struct symbol_module *module, uint32_t *id);
/*
 * Fills results[i] for requests[i]. Can be called again, with more modules and requests. 0,
 * -ENOMEM, -ECANCELED. What a damaged file does not contain is unknown, which is not an error.
 */
int symbolizer__resolve(struct symbolizer *s, const struct symbol_request *requests, size_t nr,
			struct symbol_result *results);
const struct symbolizer_stats *symbolizer__stats(const struct symbolizer *s);

#endif
