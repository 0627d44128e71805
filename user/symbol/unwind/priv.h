/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_SYMBOL_UNWIND_PRIV_H
#define KPROF_SYMBOL_UNWIND_PRIV_H

#include "symbol/unwind/cfi.h"
#include "symbol/unwind/unwind.h"

#define UNWIND_RULES_FULL UINT32_MAX
/* The number of a rule, which is added if it is new. UNWIND_RULES_FULL: there is no room. */
uint32_t unwind_rules__intern(struct unwind_rules *r, const struct kprof_unwind_rule *rule);

/*
 * Part of the cache's key; raised when the same file would give other rows. Usually the build of
 * kprof, which is also a part of the key, is enough (cache.c).
 */
#define UNWIND_REVISION 4

/*
 * blob.c: serializes a table into malloc'ed bytes. NULL: no memory. The stamp identifies what the
 * table was built from.
 */
#define UNWIND_BLOB_MAX ((size_t)UNWIND_MAX_ROWS * 8 + (1u << 20))
char *unwind_blob__pack(const struct unwind_table *t, struct unwind_rules *rules, uint64_t stamp,
			size_t *bytes);
/* the checksum that the blob must contain */
uint64_t unwind_blob__sum(const char *blob, size_t bytes);
/*
 * Makes a table of the bytes, which must be malloc'ed, and takes ownership of them. 0, -EBADMSG:
 * damaged, -ESTALE: another stamp, -ENOSPC: no room for its rules, -ENOMEM.
 */
int unwind_blob__unpack(char *blob, size_t bytes, uint64_t stamp, struct unwind_rules *rules,
			struct unwind_table **out);

/* A range of addresses that no description covers. */
struct unwind_gap {
	uint64_t start, end;
};
/*
 * Analyses the functions of the symbol table that begin in one of the gaps (which are in order and
 * do not overlap), and reports them as cfi_read() reports described ones. 0, -ENOMEM, -ECANCELED
 * (*stop has become true; stop may be NULL), or a negative number that a callback has returned.
 */
int unwind_code__read(const struct elffile *e, const struct unwind_gap *gaps, size_t nr,
		      const atomic_bool *stop, const struct cfi_ops *ops);
/*
 * Where the code lies with which a process begins, in a program or the dynamic linker. False: the
 * file is neither. The end is a guess: nothing describes this code, not even a symbol.
 */
bool unwind_code__entry(const struct elffile *e, struct unwind_gap *out);
/* The rule in one of the linker's stubs (.plt), which may have no description. NULL: it is none. */
const struct kprof_unwind_rule *unwind_stub__rule(const struct elffile *e, uint64_t vaddr);
/* Whether this is the code that signal handlers return to. */
bool unwind_code__returns_from_signal(const uint8_t *code, size_t bytes);

struct unwind_raw_row {
	uint64_t vaddr;
	uint32_t rule;
};

/*
 * Gaps of at most this many bytes between functions are padding that is never executed: the
 * preceding rule is extended over them, which saves two rows per function.
 */
#define UNWIND_PADDING_BYTES 16

/* A function and its rows. */
struct unwind_block {
	uint64_t start, end;
	size_t first, nr;
};

/* A table that is being built. To be zeroed, except for the first three fields and `out`. */
struct unwind_builder {
	const struct elffile *elf; /* NULL: the code is in no file */
	struct unwind_rules *rules;
	const atomic_bool *stop; /* NULL: nothing stops it */
	struct unwind_raw_row *rows;
	size_t nr_rows, cap_rows;
	struct unwind_block *blocks;
	size_t nr_blocks, cap_blocks;
	/* A cache of recent rules and their numbers, since most rows have one of a few rules. */
	struct kprof_unwind_rule last[1024];
	uint32_t last_number[1024];
	struct unwind_table *out;
};
/*
 * Adds a function; its rows follow, in order of address. Functions must be in order of address
 * unless they are sorted later. -ENOMEM, -E2BIG.
 */
int unwind_builder__block(struct unwind_builder *b, uint64_t start, uint64_t end);
int unwind_builder__row(void *builder, uint64_t vaddr, const struct kprof_unwind_rule *rule);
/* Makes b->out from all blocks. -ENODATA (error set): there are none. */
int unwind_builder__pages(struct unwind_builder *b);

#endif
