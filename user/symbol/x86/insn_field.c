// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which field of an object a function reads first: a straight walk through its code that keeps book
 * of where the argument (a pointer to the object) lies: registers, stack slots, with what has been
 * added to it.
 */
#include "symbol/x86/insn.h"

#include <errno.h>
#include <string.h>

#include "symbol/x86/insn_priv.h"

#define MAX_STEPS 256
#define MAX_SLOTS 8
#define RBP 5

struct pointer {
	bool known;
	int64_t added; /* to the argument */
};

struct slot {
	bool used;
	int64_t at; /* relative to the stack pointer at entry */
	struct pointer value;
};

struct walk {
	struct insn_decoder d;
	struct pointer reg[16];
	struct slot slots[MAX_SLOTS];
	struct pointer sp, frame; /* rsp and rbp relative to the stack pointer at entry */
};

/* The stack slot that a memory operand names; false: not the stack. */
static bool stack_slot(const struct walk *w, const x86_op_mem *mem, int64_t *at)
{
	int base = insn_gpr(mem->base);
	const struct pointer *p = base == INSN_RSP ? &w->sp : base == RBP ? &w->frame : NULL;

	if (!p || !p->known || mem->index != X86_REG_INVALID || mem->segment != X86_REG_INVALID)
		return false;
	*at = p->added + mem->disp;
	return true;
}

static void store_slot(struct walk *w, int64_t at, struct pointer value)
{
	struct slot *free_slot = NULL;

	for (int i = 0; i < MAX_SLOTS; i++) {
		struct slot *s = &w->slots[i];

		/* A narrower or overlapping store spoils what was there. */
		if (s->used && at > s->at - 8 && at < s->at + 8)
			s->used = false;
		if (!s->used)
			free_slot = s;
	}
	if (value.known && free_slot)
		*free_slot = (struct slot){.used = true, .at = at, .value = value};
}

static struct pointer load_slot(const struct walk *w, int64_t at)
{
	for (int i = 0; i < MAX_SLOTS; i++) {
		if (w->slots[i].used && w->slots[i].at == at)
			return w->slots[i].value;
	}
	return (struct pointer){.known = false};
}

/*
 * The operand that the instruction loads from memory, or NULL. Capstone marks some SSE stores as
 * loads: memory in the first place is a load only where nothing can be written to it.
 */
static const x86_op_mem *loaded_operand(const struct walk *w)
{
	const cs_x86 *x86 = &w->d.insn->detail->x86;

	if (w->d.insn->id == X86_INS_LEA || w->d.insn->id == X86_INS_NOP)
		return NULL;
	for (int i = 0; i < x86->op_count; i++) {
		if (x86->operands[i].type != X86_OP_MEM)
			continue;
		if (i > 0)
			return &x86->operands[i].mem;
		switch (w->d.insn->id) {
		case X86_INS_CMP:
		case X86_INS_TEST:
		case X86_INS_PUSH:
		case X86_INS_CALL:
		case X86_INS_JMP:
			return &x86->operands[i].mem;
		default:
			return NULL;
		}
	}
	return NULL;
}

static bool is_field(const struct walk *w, int32_t min_disp, int32_t *disp)
{
	const x86_op_mem *mem = loaded_operand(w);
	int base = mem ? insn_gpr(mem->base) : -1;
	int64_t at;

	if (base < 0 || !w->reg[base].known || mem->index != X86_REG_INVALID ||
	    mem->segment != X86_REG_INVALID)
		return false;
	at = w->reg[base].added + mem->disp;
	if (at < min_disp || at > INT32_MAX)
		return false;
	*disp = (int32_t)at;
	return true;
}

/* What the first operand, a 64-bit register, holds after the instruction. */
static struct pointer new_value(const struct walk *w, const struct pointer old[16])
{
	const cs_x86_op *op = w->d.insn->detail->x86.operands;
	struct pointer value = {.known = false};
	int64_t at, sign = 1;
	int from;

	switch (w->d.insn->id) {
	case X86_INS_MOV:
		if (op[1].type == X86_OP_REG && (from = insn_gpr(op[1].reg)) >= 0)
			return old[from];
		if (op[1].type == X86_OP_MEM && stack_slot(w, &op[1].mem, &at))
			return load_slot(w, at);
		return value;
	case X86_INS_LEA:
		from = insn_gpr(op[1].mem.base);
		if (from < 0 || op[1].mem.index != X86_REG_INVALID)
			return value;
		value = old[from];
		value.added += op[1].mem.disp;
		return value;
	case X86_INS_SUB:
		sign = -1;
		/* fall through */
	case X86_INS_ADD:
		from = insn_gpr(op[0].reg);
		if (op[1].type != X86_OP_IMM || from < 0)
			return value;
		value = old[from];
		value.added += sign * op[1].imm;
		return value;
	default:
		return value;
	}
}

/* The stack pointer, and rbp where it is a copy of it. */
static void track_stack(struct walk *w)
{
	const cs_x86 *x86 = &w->d.insn->detail->x86;
	const cs_x86_op *op = x86->operands;
	unsigned int id = w->d.insn->id;
	int from;

	if (id == X86_INS_PUSH) {
		w->sp.added -= 8;
		from = op[0].type == X86_OP_REG ? insn_gpr(op[0].reg) : -1;
		if (w->sp.known)
			store_slot(w, w->sp.added,
				   from >= 0 ? w->reg[from] : (struct pointer){.known = false});
	} else if (id == X86_INS_POP) {
		w->sp.added += 8;
	} else if ((id == X86_INS_SUB || id == X86_INS_ADD) && op[0].type == X86_OP_REG &&
		   op[0].reg == X86_REG_RSP && op[1].type == X86_OP_IMM) {
		w->sp.added += id == X86_INS_ADD ? op[1].imm : -op[1].imm;
	} else if (!insn_in_group(&w->d, CS_GRP_CALL) && insn_writes_gpr(&w->d, INSN_RSP)) {
		w->sp.known = false;
	}
	if (insn_writes_gpr(&w->d, RBP)) {
		w->frame.known = false;
		if (id == X86_INS_MOV && op[1].type == X86_OP_REG && op[1].reg == X86_REG_RSP)
			w->frame = w->sp;
	}
}

/* What the instruction stores into a stack slot. */
static void track_store(struct walk *w)
{
	const cs_x86 *x86 = &w->d.insn->detail->x86;
	const cs_x86_op *op = x86->operands;
	struct pointer value = {.known = false};
	int64_t at;
	int from;

	if (!x86->op_count || op[0].type != X86_OP_MEM || !stack_slot(w, &op[0].mem, &at))
		return;
	if (w->d.insn->id == X86_INS_MOV && op[1].type == X86_OP_REG && op[1].size == 8 &&
	    (from = insn_gpr(op[1].reg)) >= 0)
		value = w->reg[from];
	store_slot(w, at, value);
}

static void track_registers(struct walk *w)
{
	/* rax, rcx, rdx, rsi, rdi, r8 … r11: a call may change them. */
	const uint16_t scratch = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 6 | 1u << 7 | 0xfu << 8;
	const cs_x86_op *op = w->d.insn->detail->x86.operands;
	uint16_t written = insn_written_gprs(&w->d);
	struct pointer old[16];

	memcpy(old, w->reg, sizeof(old));
	if (insn_in_group(&w->d, CS_GRP_CALL))
		written |= scratch;
	for (int i = 0; i < 16; i++) {
		if (written >> i & 1)
			w->reg[i].known = false;
	}
	if (w->d.insn->detail->x86.op_count == 2 && op[0].type == X86_OP_REG && op[0].size == 8) {
		int to = insn_gpr(op[0].reg);

		if (to >= 0 && to != INSN_RSP && (written >> to & 1))
			w->reg[to] = new_value(w, old);
	}
}

/*
 * Follows a direct jump within the code; at a conditional one the walk goes straight on. False: the
 * walk ends here.
 */
static bool follow_jump(struct walk *w)
{
	const cs_x86 *x86 = &w->d.insn->detail->x86;

	if (insn_in_group(&w->d, CS_GRP_RET))
		return false;
	if (w->d.insn->id != X86_INS_JMP)
		return true;
	if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM ||
	    (uint64_t)x86->operands[0].imm >= w->d.bytes)
		return false;
	w->d.next = (size_t)x86->operands[0].imm;
	return true;
}

int insn_first_field(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disp)
{
	static const uint8_t arguments[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */
	struct walk w = {.sp.known = true};
	int err;

	if (arg < 1 || arg > (int)sizeof(arguments))
		return -EINVAL;
	err = insn_decoder_open(&w.d, code, bytes);
	if (err)
		goto out;
	w.reg[arguments[arg - 1]].known = true;
	err = -ENOENT;
	for (int i = 0; i < MAX_STEPS && insn_decoder_next(&w.d); i++) {
		if (is_field(&w, min_disp, disp)) {
			err = 0;
			break;
		}
		track_store(&w);
		track_registers(&w);
		track_stack(&w);
		if (!follow_jump(&w))
			break;
	}
out:
	insn_decoder_close(&w.d);
	return err;
}
