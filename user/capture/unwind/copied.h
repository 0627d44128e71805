/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking a copy of a stack without tables: the rules of the few addresses that such walks meet are
 * looked up one by one, and kept.
 */
#ifndef KPROF_CAPTURE_COPIED_H
#define KPROF_CAPTURE_COPIED_H

#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"
#include "symbol/elf/elf.h"

struct copied_walker;
int copied_walker__new(struct copied_walker **out);
void copied_walker__free(struct copied_walker *w); /* w may be NULL */

struct copied_code { /* executable code of a file, as a process maps it */
	const struct elffile *elf;
	uint64_t start, end; /* addresses */
	uint64_t bias;       /* an address minus its vaddr in the file */
};

struct copied_stack {
	uint64_t sp, bp, bx; /* registers; at a function's entry the return address is at sp */
	const void *bytes;   /* the stack from sp on */
	size_t nr_bytes;
	void *ctx;
	/* Finds the code at an address. Non-zero: there is none in a file. The files stay open. */
	int (*code)(void *ctx, uint64_t ip, struct copied_code *out);
};

/*
 * Walks from any place in the code. regs: the registers by DWARF's numbers, of which stack->sp, .bp
 * and .bx are some. out: .ips[], .nr and .end are the result.
 */
void copied_walker__frames(struct copied_walker *w, const struct copied_stack *stack, uint64_t ip,
			   const uint64_t regs[16], struct kprof_unwind_walk *out);
/*
 * Of a stack at a function's entry: writes the addresses of the slots that hold return addresses,
 * innermost first, and returns how many. *reached: from here up nothing is known, as the walk
 * ended.
 */
size_t copied_walker__slots(struct copied_walker *w, const struct copied_stack *stack,
			    uint64_t *slots, size_t room, uint64_t *reached);

#endif
