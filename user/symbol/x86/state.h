/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known about registers and the stack at one place of a function, and how an instruction
 * changes that (state.c). flow.c follows all paths of a function with it, field.c a straight line.
 */
#ifndef KPROF_SYMBOL_X86_STATE_H
#define KPROF_SYMBOL_X86_STATE_H

#include <stdbool.h>
#include <string.h>

#include "symbol/x86/x86.h"

/* What is known about a register's value. */
enum code_value_kind {
	CODE_UNKNOWN = 0,
	/* the value of register number .offset at the function's entry; rbp and rbx only */
	CODE_CALLERS,
	CODE_FRAME, /* the CFA + offset */
	CODE_SOME,  /* an unknown number, set by the instruction .origin, + .offset */
};

struct code_value {
	uint32_t kind : 2;    /* enum code_value_kind */
	uint32_t origin : 30; /* offset of the instruction in the function, + 1 */
	int32_t offset;
};

/* 8 bytes of the stack with known content, at an address of kind CODE_FRAME or CODE_SOME. */
struct code_slot {
	struct code_value at, holds;
};

#define CODE_SLOTS 10

enum code_trust {
	CODE_NOWHERE = 0, /* no path leads to this place */
	CODE_WEAK, /* perhaps a path does: after a call, or as the target of an indirect jump */
	CODE_STRONG,
};

struct code_state {
	uint8_t trust; /* enum code_trust */
	uint8_t nr_slots;
	uint16_t known; /* bit n: register n has a known value */
	struct code_value reg[CODE_NR];
	struct code_slot slots[CODE_SLOTS];
};

/* Sets the state at the function's entry. */
void code_state_enter(struct code_state *s);
/*
 * Applies the instruction at this offset. Branches change nothing; calls change the registers that
 * a called function may change. False: nothing that was known has changed.
 */
bool code_state_apply(struct code_state *s, const struct code_insn *insn, uint32_t offset);
/* Reduces `to` to what both states know. True: `to` has changed. */
bool code_state_merge(struct code_state *to, const struct code_state *from);

static inline bool code_value_equal(const struct code_value *a, const struct code_value *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* For tests: fn is called with every state of a pass. A pass begins with offset 0. */
void code_flow__watch(struct code_flow *f,
		      void (*fn)(void *ctx, uint32_t offset, const struct code_state *s),
		      void *ctx);
void code_state_rule(const struct code_state *s, struct kprof_unwind_rule *rule);

#endif
