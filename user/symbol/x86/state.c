// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known at one place of a function, how an instruction changes it, and the unwind rule that
 * follows from it.
 */
#include <limits.h>
#include <string.h>

#include "symbol/x86/state.h"

/*
 * Values farther from the frame than this (in bytes) are not followed, so that sums do not
 * overflow.
 */
#define FAR (1 << 28)

#define RED_ZONE_BYTES 128

static const struct code_value unknown;

/* Whether both are addresses on the stack with a known distance. */
static bool comparable(const struct code_value *a, const struct code_value *b)
{
	return a->kind == b->kind && a->kind >= CODE_FRAME && a->origin == b->origin;
}

static struct code_value plus(struct code_value v, int64_t bytes)
{
	int64_t offset = v.offset + bytes;

	if (v.kind < CODE_FRAME)
		return bytes ? unknown : v;
	if (offset > FAR || offset < -FAR)
		return unknown;
	v.offset = (int32_t)offset;
	return v;
}

static void note_known(struct code_state *s)
{
	s->known = 0;
	for (unsigned int i = 0; i < CODE_NR; i++)
		s->known |= (uint16_t)((s->reg[i].kind != CODE_UNKNOWN) << i);
}

void code_state_enter(struct code_state *s)
{
	memset(s, 0, sizeof(*s));
	s->trust = CODE_STRONG;
	s->reg[CODE_SP] = (struct code_value){.kind = CODE_FRAME, .offset = -8};
	s->reg[CODE_BP] = (struct code_value){.kind = CODE_CALLERS, .offset = CODE_BP};
	s->reg[CODE_BX] = (struct code_value){.kind = CODE_CALLERS, .offset = CODE_BX};
	note_known(s);
}

/* ---- memory ---- */

static void drop_slot(struct code_state *s, unsigned int i)
{
	s->slots[i] = s->slots[--s->nr_slots];
}

/* Forgets what is known about `bytes` bytes at an address, which were overwritten. */
static void overwrite(struct code_state *s, const struct code_value *at, int64_t bytes)
{
	for (unsigned int i = s->nr_slots; i-- > 0;) {
		int64_t distance = s->slots[i].at.offset - at->offset;

		if (comparable(&s->slots[i].at, at) && distance < bytes && distance > -8)
			drop_slot(s, i);
	}
}

static void store(struct code_state *s, const struct code_value *at, const struct code_value *what)
{
	if (at->kind < CODE_FRAME)
		return;
	overwrite(s, at, 8);
	/*
	 * Addresses on the stack are stored for many reasons: the last slots are reserved for the
	 * caller's registers.
	 */
	if (what->kind == CODE_UNKNOWN ||
	    s->nr_slots >= CODE_SLOTS - (what->kind == CODE_CALLERS ? 0 : 3))
		return;
	s->slots[s->nr_slots++] = (struct code_slot){.at = *at, .holds = *what};
}

static struct code_value load(const struct code_state *s, const struct code_value *at)
{
	for (unsigned int i = 0; i < s->nr_slots; i++)
		if (code_value_equal(&s->slots[i].at, at))
			return s->slots[i].holds;
	return unknown;
}

/* A called function may overwrite what is below the stack pointer. */
static void forget_below(struct code_state *s)
{
	for (unsigned int i = s->nr_slots; i-- > 0;)
		if (comparable(&s->slots[i].at, &s->reg[CODE_SP]) &&
		    s->slots[i].at.offset < s->reg[CODE_SP].offset)
			drop_slot(s, i);
}

/* ---- registers ---- */

/*
 * In a loop, the instruction sets a new number: values that came from its earlier one are
 * forgotten.
 */
static void forget_origin(struct code_state *s, uint32_t origin)
{
	for (unsigned int i = 0; i < CODE_NR; i++)
		if (s->reg[i].kind == CODE_SOME && s->reg[i].origin == origin)
			s->reg[i] = unknown;
	for (unsigned int i = s->nr_slots; i-- > 0;) {
		const struct code_slot *slot = &s->slots[i];

		if ((slot->at.kind == CODE_SOME && slot->at.origin == origin) ||
		    (slot->holds.kind == CODE_SOME && slot->holds.origin == origin))
			drop_slot(s, i);
	}
}

/*
 * Sets a register. A stack pointer with an unknown value gets an origin, so that pushes and stores
 * relative to it can still be followed. If the instruction is met again, an earlier value of the
 * same origin is forgotten: forget_origin().
 */
static void set_register(struct code_state *s, unsigned int reg, struct code_value v,
			 uint32_t offset)
{
	if (reg == CODE_SP && v.kind < CODE_FRAME) {
		forget_origin(s, offset + 1);
		v = (struct code_value){.kind = CODE_SOME, .origin = offset + 1};
	}
	s->reg[reg] = v;
}

static void push(struct code_state *s, const struct code_value *what)
{
	struct code_value value = *what;

	s->reg[CODE_SP] = plus(s->reg[CODE_SP], -8);
	store(s, &s->reg[CODE_SP], &value);
}

static void pop(struct code_state *s, unsigned int reg, uint32_t offset)
{
	struct code_value value = load(s, &s->reg[CODE_SP]);

	s->reg[CODE_SP] = plus(s->reg[CODE_SP], 8);
	set_register(s, reg, value, offset);
}

static void call(struct code_state *s)
{
	static const uint8_t changed[] = {CODE_AX, CODE_CX, CODE_DX, 6, 7, 8, 9, 10, 11};

	for (size_t i = 0; i < sizeof(changed); i++)
		s->reg[changed[i]] = unknown;
	forget_below(s);
}

static void leave(struct code_state *s, uint32_t offset)
{
	set_register(s, CODE_SP, s->reg[CODE_BP], offset);
	pop(s, CODE_BP, offset);
}

static void enter(struct code_state *s, int32_t bytes)
{
	push(s, &s->reg[CODE_BP]);
	s->reg[CODE_BP] = s->reg[CODE_SP];
	s->reg[CODE_SP] = plus(s->reg[CODE_SP], -(int64_t)bytes);
}

static void swap(struct code_state *s, unsigned int a, unsigned int b, uint32_t offset)
{
	struct code_value x = s->reg[a];

	set_register(s, a, s->reg[b], offset);
	set_register(s, b, x, offset);
}

/* Whether the instruction involves any known value; most do not. */
static bool matters(const struct code_state *s, const struct code_insn *insn)
{
	unsigned int changed = insn->writes;

	switch (insn->kind) {
	case CODE_LEA:
		return (s->known >> insn->a | s->known >> insn->b) & 1;
	case CODE_LOAD:
		return s->known >> insn->a & 1 || s->reg[insn->b].kind >= CODE_FRAME;
	case CODE_STORE:
	case CODE_WRITE:
		return s->reg[insn->a].kind >= CODE_FRAME || changed & s->known;
	case CODE_SWAP:
		return (s->known >> insn->a | s->known >> insn->b) & 1;
	case CODE_OTHER:
	case CODE_ADD:
	case CODE_JCC:
	case CODE_JMP:
	case CODE_JMP_INDIRECT:
	case CODE_RET:
	case CODE_SYSTEM:
	case CODE_STOP:
		return changed & s->known;
	default:
		return true;
	}
}

bool code_state_apply(struct code_state *s, const struct code_insn *insn, uint32_t offset)
{
	unsigned int a = insn->a, b = insn->b;
	struct code_value at;

	if (!matters(s, insn))
		return false;
	switch (insn->kind) {
	case CODE_PUSH:
		push(s, &s->reg[a]);
		break;
	case CODE_PUSH_OTHER:
		push(s, &unknown);
		break;
	case CODE_POP:
		pop(s, a, offset);
		break;
	case CODE_POP_OTHER:
		s->reg[CODE_SP] = plus(s->reg[CODE_SP], 8);
		break;
	case CODE_LEA:
		set_register(s, a, plus(s->reg[b], insn->value), offset);
		break;
	case CODE_AND:
		set_register(s, a, unknown, offset);
		break;
	case CODE_STORE:
		at = plus(s->reg[a], insn->value);
		store(s, &at, &s->reg[b]);
		break;
	case CODE_LOAD:
		at = plus(s->reg[b], insn->value);
		set_register(s, a, load(s, &at), offset);
		break;
	case CODE_WRITE:
		at = plus(s->reg[a], insn->value);
		overwrite(s, &at, b);
		break;
	case CODE_SWAP:
		swap(s, a, b, offset);
		break;
	case CODE_LEAVE:
		leave(s, offset);
		break;
	case CODE_ENTER:
		enter(s, insn->value);
		break;
	case CODE_CALL:
	case CODE_CALL_INDIRECT:
		call(s);
		break;
	default:
		break;
	}
	for (unsigned int i = 0; insn->writes >> i; i++)
		if (insn->writes >> i & 1)
			set_register(s, i, unknown, offset);
	/* The stack pointer's value is too far away to be followed: it gets an origin. */
	if (s->reg[CODE_SP].kind < CODE_FRAME)
		set_register(s, CODE_SP, unknown, offset);
	note_known(s);
	return true;
}

bool code_state_merge(struct code_state *to, const struct code_state *from)
{
	bool changed = false;

	for (unsigned int i = 0; i < CODE_NR; i++) {
		if (to->reg[i].kind && !code_value_equal(&to->reg[i], &from->reg[i])) {
			to->reg[i] = unknown;
			changed = true;
		}
	}
	for (unsigned int i = to->nr_slots; i-- > 0;) {
		struct code_value there = load(from, &to->slots[i].at);

		if (!code_value_equal(&there, &to->slots[i].holds)) {
			drop_slot(to, i);
			changed = true;
		}
	}
	if (changed)
		note_known(to);
	return changed;
}

/* ---- the rule ---- */

/*
 * Finds a slot at a known distance from a register, holding an address at a known distance from the
 * CFA.
 */
static bool cfa_in_slot(const struct code_state *s, unsigned int reg, struct kprof_unwind_rule *r)
{
	for (unsigned int i = 0; i < s->nr_slots; i++) {
		const struct code_slot *slot = &s->slots[i];

		if (slot->holds.kind != CODE_FRAME || !comparable(&slot->at, &s->reg[reg]) ||
		    -slot->holds.offset > INT16_MAX || slot->holds.offset > 0)
			continue;
		/*
		 * Signal handlers may overwrite what is below the stack pointer, except for the red
		 * zone.
		 */
		if (reg == CODE_SP && slot->at.offset < s->reg[reg].offset - RED_ZONE_BYTES)
			continue;
		r->how = reg == CODE_SP ? KPROF_UNWIND_SP_AT : KPROF_UNWIND_BP_AT;
		r->cfa = (int32_t)(slot->at.offset - s->reg[reg].offset);
		r->add = (int16_t)-slot->holds.offset;
		return true;
	}
	return false;
}

static bool cfa_rule(const struct code_state *s, struct kprof_unwind_rule *r)
{
	/* DWARF's numbers of the processor's registers. */
	static const uint8_t dwarf[CODE_NR] = {0, 2, 1,  3,  7,  6,  4,  5,
					       8, 9, 10, 11, 12, 13, 14, 15};
	static const uint8_t by_register[][2] = {
		{CODE_SP, KPROF_UNWIND_SP}, {CODE_BP, KPROF_UNWIND_BP}, {CODE_BX, KPROF_UNWIND_BX}};

	for (size_t i = 0; i < sizeof(by_register) / sizeof(by_register[0]); i++) {
		const struct code_value *v = &s->reg[by_register[i][0]];

		if (v->kind == CODE_FRAME) {
			r->how = by_register[i][1];
			r->cfa = (int32_t)-v->offset;
			return true;
		}
	}
	if (cfa_in_slot(s, CODE_SP, r) || cfa_in_slot(s, CODE_BP, r))
		return true;
	for (unsigned int i = 0; i < CODE_NR; i++) {
		if (s->reg[i].kind == CODE_FRAME) {
			r->how = (uint8_t)(KPROF_UNWIND_REGISTER + dwarf[i]);
			r->cfa = (int32_t)-s->reg[i].offset;
			return true;
		}
	}
	return false;
}

static uint8_t saved_rule(const struct code_state *s, unsigned int reg, int32_t *offset)
{
	const struct code_value *now = &s->reg[reg];

	if (now->kind == CODE_CALLERS && now->offset == (int32_t)reg)
		return KPROF_UNWIND_SAME;
	for (unsigned int i = 0; i < s->nr_slots; i++) {
		const struct code_slot *slot = &s->slots[i];

		if (slot->holds.kind != CODE_CALLERS || slot->holds.offset != (int32_t)reg)
			continue;
		if (slot->at.kind == CODE_FRAME) {
			*offset = (int32_t)slot->at.offset;
			return KPROF_UNWIND_SAVED;
		}
		if (comparable(&slot->at, &s->reg[CODE_BP])) {
			*offset = (int32_t)(slot->at.offset - s->reg[CODE_BP].offset);
			return KPROF_UNWIND_AT_BP;
		}
	}
	return KPROF_UNWIND_LOST;
}

void code_state_rule(const struct code_state *s, struct kprof_unwind_rule *rule)
{
	uint8_t bp;

	memset(rule, 0, sizeof(*rule));
	if (s->trust == CODE_NOWHERE || !cfa_rule(s, rule)) {
		rule->how = KPROF_UNWIND_UNKNOWN;
		return;
	}
	bp = saved_rule(s, CODE_BP, &rule->bp);
	rule->regs = KPROF_UNWIND_REGS(bp, saved_rule(s, CODE_BX, &rule->bx));
}
