/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information: what .eh_frame and .debug_frame say of how each instruction's frame lies
 * on the stack (DWARF 5, section 6.4; System V ABI for x86-64, section 4.2.8; LSB, "Exception
 * Frames").
 *
 * Reads bytes of untrusted files: every access is bounded, every loop too.
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
	uint64_t vaddr; /* where the section is loaded: pointers in .eh_frame are relative to it */
	bool debug_frame; /* the format of .debug_frame, else of .eh_frame */
};

/* One function's description, before its rows. */
struct cfi_range {
	uint64_t start, end; /* vaddr */
};

struct cfi_ops {
	void *ctx;
	/* A description begins. Non-zero: passed over, or, negative, the end of it all. */
	int (*range)(void *ctx, const struct cfi_range *range);
	/*
	 * From vaddr on, up to the next row or the range's end, this is the rule. Rows come in
	 * order.
	 */
	int (*row)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule);
};

struct cfi_stats {
	uint64_t ranges;
	uint64_t rows;
	uint64_t malformed;     /* descriptions that were given up for being damaged */
	uint64_t inexpressible; /* rows that no rule can say: KPROF_UNWIND_UNKNOWN */
};

/*
 * Every description of the section. 0, or what a callback returned that was negative. What is
 * damaged is left out and counted; nothing in the section can make this fail.
 */
int cfi_read(const struct cfi_section *section, const struct cfi_ops *ops, struct cfi_stats *stats);

#endif
