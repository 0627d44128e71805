// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/x86/result.h"

#include "util/util.h"

#define RESULT_BYTES 4

/* The memory operand, in the terms of a slot. False: its address cannot be compared. */
static bool operand_of(const struct code_insn *insn, size_t at, int64_t sp_delta,
		       struct insn_slot *out)
{
	*out = (struct insn_slot){insn->place, insn->disp};
	if (insn->place == CODE_SP)
		out->disp += sp_delta;
	else if (insn->place == CODE_PLACE_RELATIVE)
		out->disp += (int64_t)at + insn->length;
	return insn->memory != CODE_MEMORY_NONE && insn->place <= CODE_PLACE_RELATIVE;
}

static bool holds(const struct insn_results *r, const struct insn_slot *slot)
{
	for (uint8_t i = 0; i < r->nr; i++)
		if (r->slots[i].base == slot->base && r->slots[i].disp == slot->disp)
			return true;
	return false;
}

/* How many bytes the instruction writes to its memory operand; 0: not known. */
static uint8_t bytes_of(const struct code_insn *insn)
{
	switch (insn->kind) {
	case CODE_STORE:
		return 8;
	case CODE_WRITE:
	case CODE_OTHER:
		return insn->b;
	default:
		return 0;
	}
}

/*
 * Whether a write may change the slot. Behind two registers may be the same address. A variable of
 * the file is not on the stack, which rsp and rbp point to: code that uses rbp for something else
 * would have to write one variable in two ways before the next branch.
 */
static bool may_overlap(const struct insn_slot *slot, const struct insn_slot *to, uint8_t bytes)
{
	if (slot->base == to->base)
		return !bytes ||
		       (to->disp < slot->disp + RESULT_BYTES && slot->disp < to->disp + bytes);
	if (to->base == CODE_PLACE_RELATIVE)
		return slot->base != CODE_SP && slot->base != CODE_BP;
	return slot->base != CODE_PLACE_RELATIVE || (to->base != CODE_SP && to->base != CODE_BP);
}

/* Removes the slots that the instruction may change, or whose base register it changes. */
static void forget(struct insn_results *r, const struct code_insn *insn, const struct insn_slot *to,
		   bool comparable)
{
	bool writes = insn->memory == CODE_MEMORY_WRITTEN || insn->kind == CODE_PUSH ||
		      insn->kind == CODE_PUSH_OTHER || insn->kind == CODE_ENTER;
	uint16_t written = code_insn_written(insn) & (uint16_t) ~(1u << CODE_SP);
	uint8_t kept = 0;

	comparable = comparable && insn->memory == CODE_MEMORY_WRITTEN;
	for (uint8_t i = 0; i < r->nr; i++) {
		const struct insn_slot *slot = &r->slots[i];

		if (slot->base < CODE_NR && written >> slot->base & 1)
			continue;
		if (writes && (!comparable || may_overlap(slot, to, bytes_of(insn))))
			continue;
		r->slots[kept++] = *slot;
	}
	r->nr = kept;
}

void insn_results__step(struct insn_results *r, const struct code_insn *insn, size_t at,
			int64_t sp_delta)
{
	struct insn_slot operand;
	bool comparable = operand_of(insn, at, sp_delta, &operand);
	bool copied = false;

	if (insn->copies)
		copied = insn->from < CODE_NR ? r->registers >> insn->from & 1
					      : comparable && holds(r, &operand);
	forget(r, insn, &operand, comparable);
	r->registers &= (uint16_t)~code_insn_written(insn);
	if (!copied)
		return;
	if (insn->to < CODE_NR)
		r->registers |= (uint16_t)(1u << insn->to);
	else if (comparable && r->nr < ARRAY_SIZE(r->slots))
		r->slots[r->nr++] = operand;
}

bool insn_results__find(const struct insn_results *r, int64_t sp_delta, struct insn_result *out)
{
	if (r->registers) {
		*out = (struct insn_result){.reg = (uint8_t)__builtin_ctz(r->registers)};
		return true;
	}
	for (uint8_t i = 0; i < r->nr; i++) {
		const struct insn_slot *slot = &r->slots[i];
		int64_t disp = slot->disp - (slot->base == CODE_SP ? sp_delta : 0);

		/* What lies below the stack pointer may be overwritten at any time. */
		if (slot->base >= CODE_NR || disp != (int16_t)disp ||
		    (slot->base == CODE_SP && disp < 0))
			continue;
		*out = (struct insn_result){slot->base, true, (int16_t)disp};
		return true;
	}
	return false;
}
