/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables: from which address on which rule leads to the caller's frame, for code that keeps
 * no frame pointer. Of an ELF file they are compiled from .eh_frame, .debug_frame where there is no
 * other, the linker's stubs, and, for functions that none of these describes, from the code itself
 * (unwind.c, cfi.c, code.c); they are kept on disk (cache.c). Of JIT code they come from the code
 * (jit.c).
 */
#ifndef KPROF_SYMBOL_UNWIND_H
#define KPROF_SYMBOL_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"
#include "symbol/elf/elf.h"

/*
 * Rules by number, each once: all tables of a session share one set. Safe to be used by several
 * threads that build tables at once. Rule 0 is KPROF_UNWIND_NONE, rule 1 KPROF_UNWIND_UNKNOWN.
 */
struct unwind_rules;
int unwind_rules__new(struct unwind_rules **out);
void unwind_rules__free(struct unwind_rules *r);
/* The rules from number `first` on that there are by now, copied; returns how many. */
size_t unwind_rules__copy(struct unwind_rules *r, size_t first, struct kprof_unwind_rule *to,
			  size_t room);
struct kprof_unwind_rule unwind_rules__at(struct unwind_rules *r, uint32_t number);
size_t unwind_rules__nr(struct unwind_rules *r);

struct unwind_page {
	uint32_t first, nr; /* of rows[] */
};

struct unwind_table {
	uint64_t first_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of pages[0] */
	struct unwind_page *pages;
	size_t nr_pages;
	struct kprof_unwind_row *rows;
	size_t nr_rows;
	void *blob; /* what rows[] lies in; NULL: it is by itself */
	/* For what is said about it. */
	uint64_t text_bytes;    /* described */
	uint64_t ranges;        /* functions described */
	uint64_t decoded;       /* functions whose rows come from their code */
	uint64_t decoded_bytes; /* of these */
	uint64_t malformed;     /* descriptions left out for being damaged */
	uint64_t inexpressible; /* rows that no rule can say */
	uint64_t rules_full;    /* rows whose rule found no room */
};

/*
 * Bound of a table: a page of text has at most as many rows as it has addresses, a file at most
 * these.
 */
#define UNWIND_MAX_ROWS (32u << 20)

/*
 * -ENODATA: the file describes nothing (then frame pointers are all there is). -E2BIG: over the
 * bound. -ESTALE: it was cut short meanwhile. -ENOMEM. The error is set.
 */
int unwind_table__build(const struct elffile *e, struct unwind_rules *rules,
			struct unwind_table **out);
/* The same, given up soon after *stop (may be NULL) has become true: -ECANCELED. */
int unwind_table__build_until(const struct elffile *e, struct unwind_rules *rules,
			      const atomic_bool *stop, struct unwind_table **out);
/*
 * The same, from a directory (util/disk_cache.h) where it was put the last time. Safe to be used by
 * several threads.
 */
struct unwind_cache {
	int dir; /* -1: none, the table is built */
	atomic_size_t nr_read, nr_written;
	atomic_size_t bytes_written; /* no more than the cache may hold: it is trimmed at the end */
};
int unwind_table__get(const struct elffile *e, struct unwind_rules *rules, const atomic_bool *stop,
		      struct unwind_cache *cache, struct unwind_table **out);
void unwind_table__free(struct unwind_table *t);
/* The number of the rule that holds at this address of the file; 0: nothing is known. */
uint32_t unwind_table__find(const struct unwind_table *t, uint64_t vaddr);

/*
 * Every function that the file's .eh_frame describes; fn returns non-zero to stop, and negative
 * numbers are returned.
 */
int unwind_functions(const struct elffile *e, int (*fn)(void *ctx, uint64_t start, uint64_t end),
		     void *ctx);

/*
 * Tables of JIT code that keeps no frame pointer: oneDNN's kernels, and what else writes
 * instructions into memory. Nothing describes it, and nothing says where its functions begin.
 * Memory that begins with code is taken for a function, and what follows that one for the next, so
 * long as what the instructions do can be followed to every end (symbol/x86/x86.h: guessed). The
 * first one that cannot be followed ends the search: there may be no code after it.
 */
struct unwind_jit;
int unwind_jit__new(struct unwind_rules *rules, struct unwind_jit **out);
void unwind_jit__free(struct unwind_jit *m);
/*
 * Code that was allocated as one, at this address; pieces come in order of address. fn is called
 * for each function found, and may refuse it with a negative number. 0, what fn returned, -ENOMEM,
 * -E2BIG.
 */
int unwind_jit__add(struct unwind_jit *m, const uint8_t *code, size_t bytes, uint64_t address,
		    int (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx);
/*
 * The table of what was added since the last one, by address instead of vaddr. *out is NULL where
 * no function was found. -ENOMEM, -E2BIG.
 */
int unwind_jit__table(struct unwind_jit *m, struct unwind_table **out);

#endif
