/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows a call's result through the instructions after the call. */
#ifndef KPROF_SYMBOL_X86_RESULT_H
#define KPROF_SYMBOL_X86_RESULT_H

#include "symbol/x86/x86.h"

/* Copies in memory that are followed; a further one is left out. */
#define INSN_RESULT_SLOTS 4

/* All places that hold the result. */
struct insn_results {
	uint16_t registers; /* bit n: the low half of register n */
	uint8_t nr;
	struct insn_slot {
		uint8_t base; /* a register, or CODE_PLACE_RELATIVE */
		/* from the register's content; rsp's right after the return; the return address */
		int64_t disp;
	} slots[INSN_RESULT_SLOTS];
};

/* Right after the return: in eax. */
#define INSN_RESULTS_START ((struct insn_results){.registers = 1u << CODE_AX})

/*
 * Takes in the next instruction of the straight line. at: its offset from the return address;
 * sp_delta: the stack pointer before it - the one right after the return.
 */
void insn_results__step(struct insn_results *r, const struct code_insn *insn, size_t at,
			int64_t sp_delta);
/* One of the places, before the next instruction. False: none is known. */
bool insn_results__find(const struct insn_results *r, int64_t sp_delta, struct insn_result *out);

#endif
