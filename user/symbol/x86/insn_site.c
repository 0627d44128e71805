// SPDX-License-Identifier: BSD-2-Clause
/* Where to probe a function's entry, and the return from a call. */
#include "symbol/x86/insn.h"

#include <errno.h>

#include "symbol/x86/insn_priv.h"

/* How far behind the first instruction an entry's site may lie. */
#define ENTRY_SPAN_BYTES 16
/* How far behind the return address a return site may lie. */
#define RETURN_SPAN_BYTES 200
#define MAX_INSN_BYTES 15

/* rdi, rsi, rdx, rcx, r8, r9, and rsp: what entry probes read from. */
#define ARGUMENT_GPRS (1u << 7 | 1u << 6 | 1u << 2 | 1u << 1 | 1u << 8 | 1u << 9 | 1u << INSN_RSP)

static bool leaves_line(const struct insn_decoder *d)
{
	return insn_in_group(d, CS_GRP_JUMP) || insn_in_group(d, CS_GRP_CALL) ||
	       insn_in_group(d, CS_GRP_RET) || insn_in_group(d, CS_GRP_INT) ||
	       insn_in_group(d, CS_GRP_IRET) || insn_in_group(d, CS_GRP_PRIVILEGE) ||
	       d->insn->id == X86_INS_SYSCALL || d->insn->id == X86_INS_SYSENTER ||
	       d->insn->id == X86_INS_UD2 || d->insn->id == X86_INS_LOOP ||
	       d->insn->id == X86_INS_LOOPE || d->insn->id == X86_INS_LOOPNE ||
	       d->insn->id == X86_INS_XBEGIN;
}

/*
 * Whether the instruction may write memory. Capstone's access flags miss the SSE stores, so: a
 * memory operand that comes first, but in instructions that only look; string instructions name theirs.
 */
static bool may_write_memory(const struct insn_decoder *d)
{
	const cs_x86 *x86 = &d->insn->detail->x86;

	switch (d->insn->id) {
	case X86_INS_CMP:
	case X86_INS_TEST:
	case X86_INS_NOP:
	case X86_INS_LEA:
		return false;
	default:
		return x86->op_count && x86->operands[0].type == X86_OP_MEM;
	}
}

/* Bytes that a push takes from the stack; 0: no push. */
static uint32_t pushed_bytes(const struct insn_decoder *d)
{
	bool narrow = d->insn->detail->x86.prefix[2] == 0x66;

	switch (d->insn->id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHFQ:
		return narrow ? 2 : 8;
	default:
		return 0;
	}
}

/*
 * Behind the first instruction only a push is taken: a push is not where a loop jumps to, since the
 * stack would grow with each turn, while a jump or a nop may be, and would be hit more than once
 * a call. What is stepped over neither changes what a probe reads nor leaves the line.
 */
static void move_to_push(struct insn_decoder *d, uint32_t skip, struct insn_entry *out)
{
	uint32_t bias = 0;

	while (insn_decoder_next(d) && d->at <= ENTRY_SPAN_BYTES) {
		const uint8_t *code = d->code + d->at;
		uint32_t pushed = pushed_bytes(d);

		if (pushed == 8 && insn_is_emulated(code, d->insn->size)) {
			out->skip_bytes = skip + (uint32_t)d->at;
			out->sp_bias_bytes = bias;
			out->cost = INSN_EMULATED;
			return;
		}
		if (leaves_line(d))
			return;
		if (pushed) {
			bias += pushed;
			continue;
		}
		if ((insn_written_gprs(d) & ARGUMENT_GPRS) || may_write_memory(d))
			return;
	}
}

int insn_entry_site(const uint8_t *code, size_t bytes, struct insn_entry *out)
{
	struct insn_decoder d;
	uint32_t skip = 0;
	int err;

	*out = (struct insn_entry){.cost = INSN_FORBIDDEN};
	if (insn_is_endbr64(code, bytes))
		skip = 4;
	code += skip;
	bytes -= skip;
	out->skip_bytes = skip;
	if (insn_is_emulated(code, bytes)) {
		out->cost = INSN_EMULATED;
		return 0;
	}
	out->cost = insn_cost(code, bytes);
	err = insn_decoder_open(&d, code, bytes);
	if (!err)
		move_to_push(&d, skip, out);
	insn_decoder_close(&d);
	/* endbr64 itself can be probed, if what follows cannot. */
	if (!err && out->cost == INSN_FORBIDDEN && skip)
		*out = (struct insn_entry){.cost = INSN_STEPPED};
	return err;
}

/* What an instruction does to the line that is followed from a return address. */
enum effect {
	EFFECT_NONE,
	EFFECT_SP,   /* adds a known number of bytes to the stack pointer */
	EFFECT_RET,  /* plain ret: pops the next return address */
	EFFECT_STOP, /* leaves the line, may take long, or the stack pointer gets unknown */
};

static bool is_rsp(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->reg == X86_REG_RSP;
}

/* lea disp(%rsp),%rsp */
static bool is_sp_lea(const cs_x86 *x86)
{
	const x86_op_mem *mem = &x86->operands[1].mem;

	return is_rsp(&x86->operands[0]) && mem->base == X86_REG_RSP &&
	       mem->index == X86_REG_INVALID && mem->segment == X86_REG_INVALID;
}

static enum effect sp_change(const struct insn_decoder *d, int64_t *bytes)
{
	const cs_x86 *x86 = &d->insn->detail->x86;
	const cs_x86_op *op = x86->operands;

	switch (d->insn->id) {
	case X86_INS_POP:
		/* Only whole registers, and not the stack pointer itself. */
		if (op[0].type != X86_OP_REG || op[0].size != 8 || is_rsp(&op[0]))
			return EFFECT_STOP;
		*bytes = 8;
		return EFFECT_SP;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (!is_rsp(&op[0]) || op[1].type != X86_OP_IMM)
			return EFFECT_STOP;
		*bytes = d->insn->id == X86_INS_ADD ? op[1].imm : -op[1].imm;
		return EFFECT_SP;
	case X86_INS_LEA:
		if (!is_sp_lea(x86))
			return EFFECT_STOP;
		*bytes = op[1].mem.disp;
		return EFFECT_SP;
	default:
		*bytes = -(int64_t)pushed_bytes(d);
		return *bytes ? EFFECT_SP : EFFECT_STOP;
	}
}

static enum effect effect_of(const struct insn_decoder *d, int64_t *bytes)
{
	const cs_x86 *x86 = &d->insn->detail->x86;

	if (d->insn->id == X86_INS_RET)
		return x86->op_count ? EFFECT_STOP : EFFECT_RET;
	if (leaves_line(d))
		return EFFECT_STOP;
	/* rep movs … of a megabyte would be counted as part of the call that has returned. */
	if ((x86->prefix[0] == 0xf2 || x86->prefix[0] == 0xf3) && insn_is_string_op(x86->opcode[0]))
		return EFFECT_STOP;
	if (insn_writes_gpr(d, INSN_RSP))
		return sp_change(d, bytes);
	return EFFECT_NONE;
}

int insn_return_site(const uint8_t *code, size_t bytes, struct insn_return *out)
{
	struct insn_decoder d = {.handle = 0};
	struct insn_return stepped = {.kind = INSN_RETURN_NONE, .cost = INSN_FORBIDDEN};
	int64_t delta = 0, change = 0;
	bool keeps_result = true;
	int err = 0;

	*out = stepped;
	if (insn_is_emulated(code, bytes)) {
		*out = (struct insn_return){
			.kind = INSN_RETURN_SITE, .cost = INSN_EMULATED, .keeps_result = true};
		return 0;
	}
	err = insn_decoder_open(&d, code, bytes);
	if (err)
		goto out;
	while (d.next < RETURN_SPAN_BYTES && delta >= 0 && delta <= INT32_MAX) {
		enum effect effect;

		if (insn_is_emulated(code + d.next, bytes - d.next)) {
			*out = (struct insn_return){.kind = INSN_RETURN_SITE,
						    .skip_bytes = (uint32_t)d.next,
						    .sp_delta_bytes = (int32_t)delta,
						    .cost = INSN_EMULATED,
						    .keeps_result = keeps_result};
			goto out;
		}
		if (!insn_decoder_next(&d)) {
			/* What ends too early may go on to anything; what is long enough is unknown. */
			if (bytes - d.next < MAX_INSN_BYTES)
				goto out;
			break;
		}
		effect = effect_of(&d, &change);
		if (effect == EFFECT_RET) {
			*out = (struct insn_return){.kind = INSN_RETURN_FOLLOW,
						    .follow_bytes = (int32_t)delta,
						    .cost = INSN_EMULATED,
						    .keeps_result = keeps_result};
			goto out;
		}
		if (stepped.kind == INSN_RETURN_NONE && insn_is_allowed(code + d.at, d.insn->size))
			stepped = (struct insn_return){.kind = INSN_RETURN_SITE,
						       .skip_bytes = (uint32_t)d.at,
						       .sp_delta_bytes = (int32_t)delta,
						       .cost = INSN_STEPPED,
						       .keeps_result = keeps_result};
		if (effect == EFFECT_STOP)
			break;
		if (effect == EFFECT_SP)
			delta += change;
		if (insn_writes_gpr(&d, INSN_RAX))
			keeps_result = false;
	}
	*out = stepped;
out:
	insn_decoder_close(&d);
	return err;
}
