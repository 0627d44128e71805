/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an address is called: function, source line, and the functions that were inlined there.
 *
 * Addresses are asked for in one go, file by file: a table of half a million symbols is walked
 * once, in order, and nothing of it is kept but the names of what was asked. Files are read in
 * parallel, answers kept on disk by build id. Where the names come from, in this order: the file's
 * .symtab, else its .dynsym and what .gnu_debugdata holds; a separate debug file, by build id or
 * .gnu_debuglink, of this machine or a debuginfod server; DWARF for lines and inlined functions,
 * which is read in a child process that may take so long, so much memory, and crash.
 *
 * A symbol with a size must cover the address. One without reaches up to the next one, within its
 * section. An address that nothing covers has no name: the caller shows module and offset, never
 * the nearest guess. Of several names for one place: a sized one before one without, a function
 * before a bare label, a global or weak one before a local one, then fewest leading underscores,
 * the shortest, and the first by its bytes.
 */
#ifndef KPROF_SYMBOL_SYMBOLIZE_H
#define KPROF_SYMBOL_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf/elf.h"

#define SYMBOL_MAX_INLINES 64 /* lines of one address, the function itself included */

struct symbolizer_opts { /* strings: until symbolizer__free() */
	/* Where answers are kept: util/disk_cache.h. NULL: the usual place; "": nowhere. */
	const char *cache_dir;
	uint64_t cache_bound_bytes; /* of all files in it; 0: 512 MB */
	bool debuginfod;            /* ask the servers of DEBUGINFOD_URLS, where that is set */
	bool lines;                 /* source lines and inlined functions, not just names */
	unsigned int threads;       /* 0: as many as CPUs */
	uint64_t module_time_ns;    /* for one file's DWARF, and as much for a server; 0: 20 s */
	/* for DWARF and servers of all files; then names only; 0: as long as it takes */
	uint64_t total_time_ns;
	/* for so long a server's word that it has no debug file holds; 0: a day */
	uint64_t absent_ns;
	const char *debug_dir; /* separate debug files; NULL: /usr/lib/debug */
	/*
	 * Addresses done, of all. Calls come one at a time, from any thread. Non-zero: no more;
	 * -ECANCELED.
	 */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

struct symbol_module {
	/* Open until symbolizer__free(), and not read elsewhere while addresses are resolved. */
	struct elffile *elf;
	const char *path; /* for messages, and for .gnu_debuglink; copied */
	/* Debug files are looked for under it too: "/proc/PID/root"; "" or NULL: nowhere else. */
	const char *root;
};

struct symbol_request {
	uint32_t module; /* as symbolizer__add_module() counted */
	uint64_t vaddr;
	bool return_address; /* the call before it is what is meant: vaddr - 1 is looked up */
};

struct symbol_line {
	const char *function; /* as in the file: mangled; "foo@plt" of a stub; "": unknown */
	const char *file;     /* "": unknown */
	uint32_t line;        /* 0: unknown */
};

struct symbol_result {
	const struct symbol_line
		*lines;    /* the innermost inlined function first; owned by the symbolizer */
	uint32_t nr_lines; /* ≥ 1 */
};

struct symbolizer_stats {
	uint64_t addresses, unknown; /* asked for; without a name */
	uint64_t cached;             /* that the cache knew */
	uint32_t modules;            /* looked into */
	uint32_t gave_up;            /* their DWARF took too long or was damaged: names only */
	uint32_t debug_files;        /* separate ones that were used */
};

struct symbolizer;

int symbolizer__new(const struct symbolizer_opts *opts, struct symbolizer **out);
void symbolizer__free(struct symbolizer *s);
/* *id: from 0. */
int symbolizer__add_module(struct symbolizer *s, const struct symbol_module *module, uint32_t *id);
/*
 * Fills results[i] for requests[i]. Can be called again, with more modules and requests. 0,
 * -ENOMEM, -ECANCELED; what a damaged file does not contain is unknown, which is no error.
 */
int symbolizer__resolve(struct symbolizer *s, const struct symbol_request *requests, size_t nr,
			struct symbol_result *results);
const struct symbolizer_stats *symbolizer__stats(const struct symbolizer *s);

#endif
