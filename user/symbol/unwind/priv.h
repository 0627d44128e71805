/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_SYMBOL_UNWIND_PRIV_H
#define KPROF_SYMBOL_UNWIND_PRIV_H

#include "symbol/unwind/cfi.h"
#include "symbol/unwind/unwind.h"

#define UNWIND_RULES_FULL UINT32_MAX
/* The rule's number; UNWIND_RULES_FULL: no room. */
uint32_t unwind_rules__intern(struct unwind_rules *r, const struct kprof_unwind_rule *rule);

/*
 * Raised when the same file would give other rows. It also follows from kprof's build (cache.c), as
 * a rule.
 */
#define UNWIND_REVISION 3

/*
 * blob.c: a table as bytes, malloc'ed. NULL: no memory. The stamp identifies what it was built
 * from.
 */
#define UNWIND_BLOB_MAX ((size_t)UNWIND_MAX_ROWS * 8 + (1u << 20))
char *unwind_blob__pack(const struct unwind_table *t, struct unwind_rules *rules, uint64_t stamp,
			size_t *bytes);
uint64_t unwind_blob__sum(const char *blob, size_t bytes); /* as it should be in there */
/*
 * Takes the (malloc'ed) bytes. 0, -EBADMSG: damaged, -ESTALE: another stamp, -ENOSPC: its rules
 * find no room, -ENOMEM.
 */
int unwind_blob__unpack(char *blob, size_t bytes, uint64_t stamp, struct unwind_rules *rules,
			struct unwind_table **out);

/* Addresses that no description covers. */
struct unwind_gap {
	uint64_t start, end;
};
/*
 * Functions of the symbol table that begin in one of the gaps (in order, apart from each other),
 * reported as cfi_read() reports those that are described. 0, -ENOMEM, -ECANCELED (*stop, which may
 * be NULL, has become true), or what a callback returned that was negative.
 */
int unwind_code__read(const struct elffile *e, const struct unwind_gap *gaps, size_t nr,
		      const atomic_bool *stop, const struct cfi_ops *ops);
/* Is this the code that a signal's handler returns to? */
bool unwind_code__returns_from_signal(const uint8_t *code, size_t bytes);

struct unwind_raw_row {
	uint64_t vaddr;
	uint32_t rule;
};

/*
 * Between two functions lie a few bytes of padding that are never executed: the rule before goes on
 * over them, which spares two rows a function.
 */
#define UNWIND_PADDING_BYTES 16

/* One function's rows. */
struct unwind_block {
	uint64_t start, end;
	size_t first, nr;
};

/* A table on its way. Zeroed, but for the first three and `out`. */
struct unwind_builder {
	const struct elffile *elf; /* NULL: no file */
	struct unwind_rules *rules;
	const atomic_bool *stop; /* NULL: it is never stopped */
	struct unwind_raw_row *rows;
	size_t nr_rows, cap_rows;
	struct unwind_block *blocks;
	size_t nr_blocks, cap_blocks;
	/* The rules that came last: most rows are one of a few. */
	struct kprof_unwind_rule last[1024];
	uint32_t last_number[1024];
	struct unwind_table *out;
};
/*
 * A function, in order of address unless they are sorted later; then its rows, in order. -ENOMEM,
 * -E2BIG.
 */
int unwind_builder__block(struct unwind_builder *b, uint64_t start, uint64_t end);
int unwind_builder__row(void *builder, uint64_t vaddr, const struct kprof_unwind_rule *rule);
/* Makes b->out of all blocks. -ENODATA (error set): there are none. */
int unwind_builder__pages(struct unwind_builder *b);

#endif
