// SPDX-License-Identifier: BSD-2-Clause
/*
 * The effects of instructions without VEX and EVEX on general registers, the stack and their memory
 * operand.
 */
#include "symbol/x86/decode.h"

#define SSE_BYTES 16

/* ---- one byte ---- */

/* op is the number of the operation, in this order: add, or, adc, sbb, and, sub, xor, cmp. */
static void arithmetic_rm(struct code_decoder *d, uint8_t op, bool byte, bool immediate)
{
	if (op == 7)
		return;
	if (immediate && !byte && wide(d) && d->mod == 3) {
		if (op == 0)
			return set(d, CODE_LEA, d->rm, d->rm, d->imm);
		if (op == 5 && d->imm != INT32_MIN)
			return set(d, CODE_LEA, d->rm, d->rm, -d->imm);
		if (op == 4)
			return set(d, CODE_AND, d->rm, 0, d->imm);
	}
	writes_rm(d, byte);
}

static void arithmetic(struct code_decoder *d)
{
	uint8_t op = d->op >> 3;

	if (!op && d->mod == 3 && wide(d))
		d->out->kind = CODE_ADD;
	switch (d->op & 7) {
	case 0:
	case 1:
		arithmetic_rm(d, op, !(d->op & 1), false);
		break;
	case 2:
	case 3:
		if (op != 7)
			writes_reg(d, !(d->op & 1));
		break;
	default:
		if (op != 7)
			d->out->writes |= BIT(CODE_AX);
	}
}

static void move(struct code_decoder *d)
{
	if (d->op == 0x8a)
		return writes_reg(d, true);
	if (d->op == 0x88)
		return writes_rm(d, true);
	copies_rm(d, d->op == 0x89);
	if (!wide(d))
		return d->op == 0x8b ? writes_reg(d, false) : writes_rm(d, false);
	if (d->mod == 3)
		return d->op == 0x8b ? set(d, CODE_LEA, d->reg, d->rm, 0)
				     : set(d, CODE_LEA, d->rm, d->reg, 0);
	if (d->op == 0x89)
		d->out->memory = CODE_MEMORY_WRITTEN;
	if (d->base == NONE)
		return d->op == 0x8b ? writes_reg(d, false) : (void)0;
	if (d->op == 0x8b)
		set(d, CODE_LOAD, d->reg, d->base, d->out->disp);
	else
		set(d, CODE_STORE, d->base, d->reg, d->out->disp);
}

static void load_address(struct code_decoder *d)
{
	d->out->memory = CODE_MEMORY_ADDRESS;
	if (wide(d) && d->base != NONE)
		set(d, CODE_LEA, d->reg, d->base, d->out->disp);
	else
		writes_reg(d, false);
}

static void exchange(struct code_decoder *d, uint8_t a, uint8_t b)
{
	if (wide(d) && a == b)
		return;
	if (wide(d))
		set(d, CODE_SWAP, a, b, 0);
	else
		d->out->writes |= BIT(a) | BIT(b);
}

/* Opcodes f6 and f7: test, (unused), not, neg, mul, imul, div, idiv. */
static void group3(struct code_decoder *d)
{
	uint8_t which = d->reg & 7;

	if (which == 2 || which == 3)
		writes_rm(d, d->op == 0xf6);
	else if (which > 3)
		d->out->writes |= BIT(CODE_AX) | BIT(CODE_DX);
}

/* A push or pop of 16 bits is not followed: it makes the registers unknown. */
static void push_pop(struct code_decoder *d, enum code_kind kind, uint8_t reg)
{
	if (d->size16)
		d->out->writes |= BIT(CODE_SP) | BIT(reg);
	else
		set(d, kind, reg, 0, 0);
}

/* Opcodes fe and ff: inc, dec, call, far call, jmp, far jmp, push. */
static void group5(struct code_decoder *d)
{
	uint8_t which = d->reg & 7;

	switch (which) {
	case 0:
	case 1:
		if (d->op == 0xff && wide(d) && d->mod == 3)
			set(d, CODE_LEA, d->rm, d->rm, which ? -1 : 1);
		else
			writes_rm(d, d->op == 0xfe);
		return;
	case 2:
	case 3:
		return set(d, CODE_CALL_INDIRECT, 0, 0, 0);
	case 4:
	case 5:
		return set(d, CODE_JMP_INDIRECT, d->indexed, d->mod == 3 ? d->rm : CODE_NR, 0);
	case 6:
		return push_pop(d, CODE_PUSH_OTHER, CODE_SP);
	}
}

static void moves_string(struct code_decoder *d)
{
	uint16_t si = BIT(6), di = BIT(7);

	d->out->writes |= d->rep ? BIT(CODE_CX) : 0;
	d->out->place = CODE_PLACE_OTHER;
	d->out->memory = CODE_MEMORY_READ;
	switch (d->op & 0xfe) {
	case 0xa6: /* cmps */
		d->out->writes |= si | di;
		return;
	case 0xac: /* lods */
		d->out->writes |= si | BIT(CODE_AX);
		return;
	case 0x6e: /* outs */
		d->out->writes |= si;
		return;
	case 0xae: /* scas */
		d->out->writes |= di;
		return;
	default: /* movs, stos, ins */
		d->out->memory = CODE_MEMORY_WRITTEN;
		d->out->writes |= (d->op & 0xfe) == 0xa4 ? si | di : di;
	}
}

/* Opcodes d8 to df: the stores of the floating-point unit, and fnstsw ax. */
static void float_unit(struct code_decoder *d)
{
	static const uint8_t stores = BIT(1) | BIT(2) | BIT(3) | BIT(6) | BIT(7);

	if (d->mod == 3 && d->op == 0xdf && d->reg == 4 && d->rm == 0)
		d->out->writes |= BIT(CODE_AX);
	if (d->mod != 3 && d->op & 1 && stores >> (d->reg & 7) & 1)
		d->out->memory = CODE_MEMORY_WRITTEN;
}

/* Opcodes c6 and c7: mov; with 7 in ModRM's reg field: xabort, xbegin. */
static void move_immediate(struct code_decoder *d)
{
	if (d->mod == 3 && (d->reg & 7) == 7)
		set(d, CODE_SYSTEM, 0, 0, 0);
	writes_rm(d, !(d->op & 1));
}

static void nop_or_exchange(struct code_decoder *d)
{
	uint8_t reg = (uint8_t)((d->op & 7) | (d->rex & 1) << 3);

	if (reg == CODE_AX)
		set(d, CODE_PADDING, 0, 0, 0);
	else
		exchange(d, CODE_AX, reg);
}

static void effect_of_column(struct code_decoder *d)
{
	uint8_t low = (uint8_t)((d->op & 7) | (d->rex & 1) << 3);

	switch (d->op & 0xf8) {
	case 0x50:
		return push_pop(d, CODE_PUSH, low);
	case 0x58:
		return push_pop(d, CODE_POP, low);
	case 0x70:
	case 0x78:
		return set(d, CODE_JCC, 0, 0, d->imm);
	case 0x90:
		return nop_or_exchange(d);
	case 0xb0:
		d->out->writes |= BIT(byte_register(d, low));
		return;
	case 0xb8:
		d->out->writes |= BIT(low);
		return;
	}
	if (d->op < 0x40)
		arithmetic(d);
}

void code_effect_one_byte(struct code_decoder *d)
{
	switch (d->op) {
	case 0x63: /* movsxd */
		copies_rm(d, false);
		return writes_reg(d, false);
	case 0x69: /* imul */
	case 0x6b:
		return writes_reg(d, false);
	case 0x68:
	case 0x6a:
		return push_pop(d, CODE_PUSH_OTHER, CODE_SP);
	case 0x6c ... 0x6f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		return moves_string(d);
	case 0x80:
	case 0x81:
	case 0x83:
		return arithmetic_rm(d, d->reg & 7, d->op == 0x80, true);
	case 0x86:
		d->out->writes |= BIT(byte_register(d, d->reg));
		return writes_rm(d, true);
	case 0x87:
		if (d->mod == 3)
			return exchange(d, d->reg, d->rm);
		d->out->writes |= BIT(d->reg);
		return writes_rm(d, false);
	case 0x88 ... 0x8b:
		return move(d);
	case 0x8c:
		return writes_rm(d, false);
	case 0x8d:
		return load_address(d);
	case 0x8f:
		if (d->mod == 3)
			return push_pop(d, CODE_POP, d->rm);
		d->out->memory = CODE_MEMORY_WRITTEN;
		return push_pop(d, CODE_POP_OTHER, CODE_SP);
	case 0x98: /* cltq widens eax in place; the shorter forms replace its upper half */
		d->out->copies = wide(d);
		d->out->writes |= BIT(CODE_AX);
		return;
	case 0x9f:
	case 0xd7:
	case 0xe4:
	case 0xe5:
	case 0xec:
	case 0xed:
		d->out->writes |= BIT(CODE_AX);
		return;
	case 0x99:
		d->out->writes |= BIT(CODE_DX);
		return;
	case 0x9c:
		return push_pop(d, CODE_PUSH_OTHER, CODE_SP);
	case 0x9d:
		return push_pop(d, CODE_POP_OTHER, CODE_SP);
	case 0xa0 ... 0xa3:
		d->out->place = CODE_PLACE_OTHER;
		d->out->memory = d->op < 0xa2 ? CODE_MEMORY_READ : CODE_MEMORY_WRITTEN;
		d->out->writes |= d->op < 0xa2 ? BIT(CODE_AX) : 0;
		return;
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return writes_rm(d, !(d->op & 1));
	case 0xc6:
	case 0xc7:
		return move_immediate(d);
	case 0xc2:
	case 0xc3:
		return set(d, CODE_RET, 0, 0, d->imm);
	case 0xca: /* a far return, or one from an interrupt, also pops a segment */
	case 0xcb:
	case 0xcf:
		return set(d, CODE_RET, 0, 0, 8);
	case 0xc8:
		set(d, CODE_ENTER, 0, 0, d->imm);
		/* nested frames, which compilers do not generate */
		if (d->imm >> 16 || d->size16) {
			set(d, CODE_OTHER, 0, 0, 0);
			d->out->writes |= BIT(CODE_SP) | BIT(CODE_BP);
		}
		return;
	case 0xc9:
		return set(d, CODE_LEAVE, 0, 0, 0);
	case 0xcc:
	case 0xf1:
	case 0xf4:
		return set(d, CODE_STOP, 0, 0, 0);
	case 0xcd: /* int */
		return set(d, CODE_SYSTEM, 0, 0, 0);
	case 0xd9:
	case 0xdb:
	case 0xdd:
	case 0xdf:
		return float_unit(d);
	case 0xe0 ... 0xe2:
		d->out->writes |= BIT(CODE_CX);
		return set(d, CODE_JCC, 0, 0, d->imm);
	case 0xe3:
		return set(d, CODE_JCC, 0, 0, d->imm);
	case 0xe8:
		return set(d, CODE_CALL, 0, 0, d->imm);
	case 0xe9:
	case 0xeb:
		return set(d, CODE_JMP, 0, 0, d->imm);
	case 0xf6:
	case 0xf7:
		return group3(d);
	case 0xfe:
	case 0xff:
		return group5(d);
	}
	effect_of_column(d);
}

/* ---- 0f ---- */

/* Whether the instruction writes the general register in ModRM's reg field. */
static bool two_bytes_write_reg(const struct code_decoder *d)
{
	switch (d->op) {
	case 0x02:          /* lar */
	case 0x03:          /* lsl */
	case 0x50:          /* movmsk */
	case 0xaf:          /* imul */
	case 0xb2:          /* lss */
	case 0xb4 ... 0xb8: /* lfs, lgs, movzx, popcnt */
	case 0xbc ... 0xbf: /* bsf, bsr, movsx */
	case 0xc5:          /* pextrw */
	case 0xd7:          /* pmovmskb */
		return true;
	case 0x2c: /* cvt… */
	case 0x2d:
		return d->rep;
	}
	return (d->op & 0xf0) == 0x40; /* cmov */
}

void code_effect_two_bytes(struct code_decoder *d)
{
	if ((d->op & 0xf0) == 0x80)
		return set(d, CODE_JCC, 0, 0, d->imm);
	if ((d->op & 0xf8) == 0xc8) { /* bswap */
		d->out->writes |= BIT((d->op & 7) | (d->rex & 1) << 3);
		return;
	}
	if ((d->op & 0xf0) == 0x90) /* setcc */
		return writes_rm(d, true);
	if (two_bytes_write_reg(d))
		return writes_reg(d, false);
	switch (d->op) {
	case 0x34: /* sysenter */
		return set(d, CODE_SYSTEM, 0, 0, 0);
	case 0x05: /* syscall */
		set(d, CODE_SYSTEM, 0, 0, 0);
		d->out->writes |= BIT(CODE_AX) | BIT(CODE_CX) | BIT(11);
		return;
	case 0x0b: /* ud2, ud1, ud0, sysret, sysexit */
	case 0xb9:
	case 0xff:
	case 0x07:
	case 0x35:
		return set(d, CODE_STOP, 0, 0, 0);
	case 0x0d: /* prefetch, nop */
	case 0x18 ... 0x1d:
		d->out->memory = d->mod == 3 ? CODE_MEMORY_NONE : CODE_MEMORY_ADDRESS;
		return;
	case 0x1e: /* rdssp writes a register; endbr64 and the rest are nops */
		if (d->mod != 3)
			d->out->memory = CODE_MEMORY_ADDRESS;
		if (d->rep == 0xf3 && d->mod == 3 && (d->reg & 7) == 1)
			d->out->writes |= BIT(d->rm);
		return;
	case 0x1f:
		d->out->memory = d->mod == 3 ? CODE_MEMORY_NONE : CODE_MEMORY_ADDRESS;
		return set(d, CODE_PADDING, 0, 0, 0);
	case 0x00: /* sldt, str */
		return writes_rm(d, false);
	case 0x01: /* smsw; rdtscp, rdpkru, xgetbv and more */
		if ((d->reg & 7) == 4)
			return writes_rm(d, false);
		if (d->mod == 3)
			d->out->writes |= BIT(CODE_AX) | BIT(CODE_CX) | BIT(CODE_DX);
		return;
	case 0x20: /* mov from a control register */
	case 0x21:
	case 0xc3: /* movnti */
	case 0xa4: /* shld, shrd */
	case 0xa5:
	case 0xac:
	case 0xad:
	case 0xab: /* bts, btr, btc */
	case 0xb3:
	case 0xbb:
		return writes_rm(d, false);
	case 0xba:
		return (d->reg & 7) == 4 ? (void)0 : writes_rm(d, false);
	case 0x31 ... 0x33: /* rdtsc, rdmsr, rdpmc */
		d->out->writes |= BIT(CODE_AX) | BIT(CODE_DX);
		return;
	case 0x7e: /* movd, movq; with f3 between vector registers */
		return d->rep == 0xf3 ? (void)0 : writes_rm(d, false);
	case 0xa0: /* push, pop of fs, gs */
	case 0xa8:
		return push_pop(d, CODE_PUSH_OTHER, CODE_SP);
	case 0xa1:
	case 0xa9:
		return push_pop(d, CODE_POP_OTHER, CODE_SP);
	case 0xa2: /* cpuid */
		d->out->writes |= BIT(CODE_AX) | BIT(CODE_BX) | BIT(CODE_CX) | BIT(CODE_DX);
		return;
	case 0xae: /* rdfsbase, rdgsbase; fxsave, stmxcsr, xsave, xsaveopt */
		if (d->rep == 0xf3 && d->mod == 3 && (d->reg & 7) < 2)
			d->out->writes |= BIT(d->rm);
		if (d->mod != 3 && (BIT(0) | BIT(3) | BIT(4) | BIT(6)) >> (d->reg & 7) & 1)
			d->out->memory = CODE_MEMORY_WRITTEN;
		return;
	case 0xb0: /* cmpxchg */
	case 0xb1:
		d->out->writes |= BIT(CODE_AX);
		return writes_rm(d, d->op == 0xb0);
	case 0xc0: /* xadd */
	case 0xc1:
		writes_reg(d, d->op == 0xc0);
		return writes_rm(d, d->op == 0xc0);
	case 0xc7: /* cmpxchg16b; rdrand, rdseed, rdpid */
		if (d->mod == 3)
			d->out->writes |= BIT(d->rm);
		else
			d->out->writes |= BIT(CODE_AX) | BIT(CODE_DX);
		d->out->memory = d->mod == 3 ? CODE_MEMORY_NONE : CODE_MEMORY_WRITTEN;
		return;
	}
	if (d->mod != 3 && d->out->memory && code_stores_vector(1, d->op))
		code_store(d, SSE_BYTES);
}

/* Opcodes after 0f 38 and 0f 3a. */
void code_effect_three_bytes(struct code_decoder *d, uint8_t map)
{
	if (map == 3) {
		if (d->op >= 0x14 && d->op <= 0x17) /* pextr */
			writes_rm(d, false);
		if (d->op == 0x61 || d->op == 0x63) /* pcmpestri, pcmpistri */
			d->out->writes |= BIT(CODE_CX);
		return;
	}
	if (d->op == 0xf0 || (d->op == 0xf1 && d->rep == 0xf2) ||
	    d->op == 0xf6) /* movbe, crc32, adx */
		writes_reg(d, false);
	else if (d->op == 0xf1 || d->op == 0xf9)
		writes_rm(d, false);
}
