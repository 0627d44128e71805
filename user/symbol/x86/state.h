/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of registers and of the stack at one place of a function, and what an instruction
 * makes of it: state.c. flow.c goes through a function's paths with it, field.c through a straight
 * line.
 */
#ifndef KPROF_SYMBOL_X86_STATE_H
#define KPROF_SYMBOL_X86_STATE_H

#include <stdbool.h>
#include <string.h>

#include "symbol/x86/x86.h"

/* What is known of a register's value. */
enum code_value_kind {
	CODE_UNKNOWN = 0,
	/* what register .offset had when the function was entered: of rbp and rbx only */
	CODE_CALLERS,
	CODE_FRAME, /* the CFA + offset */
	CODE_SOME,  /* an unknown number, which the instruction .origin has set, + offset */
};

struct code_value {
	uint32_t kind : 2;    /* enum code_value_kind */
	uint32_t origin : 30; /* offset of the instruction in the function, + 1 */
	int32_t offset;
};

/* 8 bytes of the stack whose content is known: at a CODE_FRAME or CODE_SOME address. */
struct code_slot {
	struct code_value at, holds;
};

#define CODE_SLOTS 10

enum code_trust {
	CODE_NOWHERE = 0, /* no path leads here */
	CODE_WEAK,        /* perhaps one does: after a call, or where an indirect jump may go */
	CODE_STRONG,
};

struct code_state {
	uint8_t trust; /* enum code_trust */
	uint8_t nr_slots;
	uint16_t known; /* bit n: something is known of register n */
	struct code_value reg[CODE_NR];
	struct code_slot slots[CODE_SLOTS];
};

/* As the function is entered. */
void code_state_enter(struct code_state *s);
/*
 * What an instruction at this offset does. Branches do nothing here, calls what they do to
 * registers. False: nothing that is known has changed.
 */
bool code_state_apply(struct code_state *s, const struct code_insn *insn, uint32_t offset);
/* Knows no more than both. True: to changed. */
bool code_state_merge(struct code_state *to, const struct code_state *from);

static inline bool code_value_equal(const struct code_value *a, const struct code_value *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* For tests: fn sees every state that a pass goes through; a pass begins with offset 0. */
void code_flow__watch(struct code_flow *f,
		      void (*fn)(void *ctx, uint32_t offset, const struct code_state *s),
		      void *ctx);
void code_state_rule(const struct code_state *s, struct kprof_unwind_rule *rule);

#endif
