/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables say, for each address of code without frame pointers, which rule leads to the
 * caller's frame. For an ELF file they are made from .eh_frame, .debug_frame for functions that
 * .eh_frame lacks, the linker's stubs, and, for functions that none of these describes, from the
 * instructions (unwind.c, cfi.c, code.c); they are cached on disk (cache.c). For JIT code they are
 * made from the instructions (jit.c).
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
 * The set of rules, each with a number, that all tables of a session share. Several threads may use
 * it and build tables at the same time. Rule 0 is KPROF_UNWIND_NONE, rule 1 is
 * KPROF_UNWIND_UNKNOWN.
 */
struct unwind_rules;
int unwind_rules__new(struct unwind_rules **out);
void unwind_rules__free(struct unwind_rules *r);
/* Copies the current rules from number `first` on; returns how many. */
size_t unwind_rules__copy(struct unwind_rules *r, size_t first, struct kprof_unwind_rule *to,
			  size_t room);
struct kprof_unwind_rule unwind_rules__at(struct unwind_rules *r, uint32_t number);

struct unwind_page {
	uint32_t first, nr; /* rows[first] to rows[first + nr - 1] */
};

/* What a table was made of, as the cache keeps it. */
struct unwind_counts {
	uint64_t text_bytes;    /* bytes of code described */
	uint64_t ranges;        /* functions described */
	uint64_t decoded;       /* functions whose rows come from their instructions */
	uint64_t decoded_bytes; /* bytes of those functions */
	uint64_t malformed;     /* damaged descriptions, which are left out */
	uint64_t inexpressible; /* rows that no rule can express */
};

struct unwind_table {
	uint64_t first_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of pages[0] */
	struct unwind_page *pages;
	size_t nr_pages;
	struct kprof_unwind_row *rows;
	size_t nr_rows;
	void *blob; /* the memory that contains rows[]; NULL: rows[] is allocated itself */
	struct unwind_counts counts;
	uint64_t rules_full; /* rows for whose rule there was no room */
};

/* Limit for the rows of a file's table. A page of code has at most as many rows as addresses. */
#define UNWIND_MAX_ROWS (32u << 20)

/*
 * The rule for one address by .eh_frame, found through .eh_frame_hdr, or that of a stub or of a
 * process's first instructions: for the few addresses of which a rule is needed at once, without a
 * table. -ENOENT: there is none.
 */
int unwind_rule__find(const struct elffile *e, uint64_t vaddr, struct kprof_unwind_rule *out);
/* The same for the addresses of the function, up to `end`, that the address lies in. */
int unwind_function__find(const struct elffile *e, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * Builds the table of a file. -ENODATA: the file describes nothing, so that only frame pointers can
 * be used; -E2BIG: above the limit; -ESTALE: the file was truncated meanwhile; -ENOMEM; -ECANCELED:
 * *stop has become true (stop may be NULL). The error is set.
 */
int unwind_table__build(const struct elffile *e, struct unwind_rules *rules,
			const atomic_bool *stop, struct unwind_table **out);
/*
 * The same with a cache: a directory (util/disk_cache.h) in which tables of earlier sessions are
 * kept. Several threads may use it at the same time.
 */
struct unwind_cache {
	int dir; /* -1: no cache, tables are built */
	atomic_size_t nr_read, nr_written;
	/* at most the size of the cache, which is trimmed at the end */
	atomic_size_t bytes_written;
};
int unwind_table__get(const struct elffile *e, struct unwind_rules *rules, const atomic_bool *stop,
		      struct unwind_cache *cache, struct unwind_table **out);
void unwind_table__free(struct unwind_table *t);
/* The number of the rule for this address of the file; 0: unknown. */
uint32_t unwind_table__find(const struct unwind_table *t, uint64_t vaddr);

/* Calls fn for every function that the file's .eh_frame describes. */
void unwind_functions(const struct elffile *e, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		      void *ctx);

/*
 * Tables of JIT code without frame pointers: kernels of oneDNN, and of other generators of
 * instructions. Nothing describes such code or says where its functions begin. Memory that begins
 * with code is taken for a function, and what follows for the next one, as long as every path
 * through the instructions can be followed to its end (symbol/x86/x86.h: guessed). The first
 * function that cannot be followed ends the search, because what follows may not be code.
 */
struct unwind_jit;
int unwind_jit__new(struct unwind_rules *rules, struct unwind_jit **out);
void unwind_jit__free(struct unwind_jit *m);
/*
 * Adds code that was allocated in one piece at this address; pieces come in order of address. fn is
 * called for each function found, and refuses it by a negative number. 0, what fn returned,
 * -ENOMEM, -E2BIG.
 */
int unwind_jit__add(struct unwind_jit *m, const uint8_t *code, size_t bytes, uint64_t address,
		    int (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx);
/*
 * Makes a table of the code added since the last call, with addresses instead of vaddrs. *out is
 * NULL if no function was found. -ENOMEM, -E2BIG.
 */
int unwind_jit__table(struct unwind_jit *m, struct unwind_table **out);

#endif
