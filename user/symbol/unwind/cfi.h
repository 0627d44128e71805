/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads call frame information: what .eh_frame and .debug_frame say about the stack frame at each
 * instruction (DWARF 5, section 6.4; System V ABI for x86-64, section 4.2.8; LSB, "Exception
 * Frames").
 *
 * The files are not trusted: every access and every loop is bounded.
 */
#ifndef KPROF_SYMBOL_CFI_H
#define KPROF_SYMBOL_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"

struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t vaddr;   /* address of the section: pointers in .eh_frame are relative to it */
	bool debug_frame; /* true: the format of .debug_frame; false: of .eh_frame */
};

/* The addresses of a function, whose description (FDE) begins. */
struct cfi_range {
	uint64_t start, end; /* vaddr */
};

struct cfi_ops {
	void *ctx;
	/*
	 * Called at the beginning of a description. Non-zero: skip this description; negative: end
	 * reading and return this.
	 */
	int (*range)(void *ctx, const struct cfi_range *range);
	/*
	 * This rule holds from vaddr up to the next row or the end of the range. Rows come in order
	 * of address.
	 */
	int (*row)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule);
};

struct cfi_stats {
	uint64_t ranges;
	uint64_t malformed;     /* descriptions that are damaged */
	uint64_t inexpressible; /* rows that no rule can express: KPROF_UNWIND_UNKNOWN */
};

/*
 * Reads every description of the section. 0, or the negative number that a callback has returned.
 * Damaged descriptions are left out and counted; no content of the section makes this fail.
 */
int cfi_read(const struct cfi_section *section, const struct cfi_ops *ops, struct cfi_stats *stats);
/* Reads the description at this offset of the section only. -ENOENT: there is none, or damaged. */
int cfi_read_at(const struct cfi_section *section, size_t offset, const struct cfi_ops *ops);

#endif
