// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "symbol/x86/decode.h"

#define MAX_LENGTH 15
/* The decoder may read up to this many bytes after an instruction's first byte. */
#define MARGIN 48

/* clang-format off */
static const uint8_t one_byte[256] = {
	M, M, M, M, I1, I4, X, X,  M, M, M, M, I1, I4, X, X, /* 00 */
	M, M, M, M, I1, I4, X, X,  M, M, M, M, I1, I4, X, X, /* 10 */
	M, M, M, M, I1, I4, X, X,  M, M, M, M, I1, I4, X, X, /* 20 */
	M, M, M, M, I1, I4, X, X,  M, M, M, M, I1, I4, X, X, /* 30 */
	X, X, X, X, X, X, X, X,    X, X, X, X, X, X, X, X, /* 40: REX, seen before */
	0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0, /* 50 */
	X, X, X, M, X, X, X, X,    I4, M|I4, I1, M|I1, 0, 0, 0, 0, /* 60 */
	I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, /* 70 */
	M|I1, M|I4, X, M|I1, M, M, M, M, M, M, M, M, M, M, M, M, /* 80 */
	0, 0, 0, 0, 0, 0, 0, 0,    0, 0, X, 0, 0, 0, 0, 0, /* 90 */
	0, 0, 0, 0, 0, 0, 0, 0,    I1, I4, 0, 0, 0, 0, 0, 0, /* a0: moffs by hand */
	I1, I1, I1, I1, I1, I1, I1, I1, I4, I4, I4, I4, I4, I4, I4, I4, /* b0 */
	M|I1, M|I1, 0, 0, X, X, M|I1, M|I4, 0, 0, 0, 0, 0, I1, X, 0, /* c0 */
	M, M, M, M, X, X, X, 0,    M, M, M, M, M, M, M, M, /* d0 */
	I1, I1, I1, I1, I1, I1, I1, I1, I4, I4, X, I1, 0, 0, 0, 0, /* e0 */
	X, 0, X, X, 0, 0, M, M,    0, 0, 0, 0, 0, 0, M, M, /* f0 */
};

/* After 0f. */
static const uint8_t two_bytes[256] = {
	M, M, M, M, X, 0, 0, 0,    0, 0, X, 0, X, M, 0, M|I1, /* 00 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* 10 */
	M, M, M, M, X, X, X, X,    M, M, M, M, M, M, M, M, /* 20 */
	0, 0, 0, 0, 0, 0, X, 0,    X, X, X, X, X, X, X, X, /* 30: 38, 3a seen before */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* 40 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* 50 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* 60 */
	M|I1, M|I1, M|I1, M|I1, M, M, M, 0, M, M, X, X, M, M, M, M, /* 70 */
	I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, I4, /* 80 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* 90 */
	0, 0, 0, M, M|I1, M, X, X, 0, 0, 0, M, M|I1, M, M, M, /* a0 */
	M, M, M, M, M, M, M, M,    M, M, M|I1, M, M, M, M, M, /* b0 */
	M, M, M|I1, M, M|I1, M|I1, M|I1, M, 0, 0, 0, 0, 0, 0, 0, 0, /* c0 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* d0 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* e0 */
	M, M, M, M, M, M, M, M,    M, M, M, M, M, M, M, M, /* f0 */
};
/* clang-format on */

static int32_t signed8(uint8_t v)
{
	return (int32_t)(v ^ 0x80) - 0x80;
}

static int32_t signed32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void read_modrm(struct code_decoder *d)
{
	uint8_t byte = *d->at++, rm = byte & 7, sib;
	struct code_insn *out = d->out;

	d->mod = byte >> 6;
	d->reg = (uint8_t)((byte >> 3 & 7) | (d->rex & 4) << 1);
	d->rm = (uint8_t)(rm | (d->rex & 1) << 3);
	d->base = NONE;
	if (d->mod == 3)
		return;
	out->memory = CODE_MEMORY_READ; /* code_effect_*() may change this */
	out->place = CODE_PLACE_OTHER;
	d->base = d->rm;
	if (rm == 4) {
		sib = *d->at++;
		d->base = (uint8_t)((sib & 7) | (d->rex & 1) << 3);
		d->indexed = (sib >> 3 & 7) != 4 || d->rex & 2;
		if (d->indexed)
			d->base = NONE;
		rm = sib & 7;
	}
	if (d->mod == 1) {
		out->disp = signed8(*d->at++);
	} else if (d->mod == 2 || (d->mod == 0 && rm == 5)) {
		out->disp = signed32(d->at);
		d->at += 4;
		if (d->mod == 0) {
			d->base = NONE;
			out->place = d->segment        ? CODE_PLACE_OTHER
				     : (byte & 7) == 4 ? CODE_PLACE_ABSOLUTE
						       : CODE_PLACE_RELATIVE;
		}
	}
	if (d->address32 || d->segment)
		d->base = NONE;
	if (d->base != NONE)
		out->place = d->base;
}

static void read_immediate(struct code_decoder *d, uint8_t follows)
{
	if (follows & I1) {
		d->imm = signed8(*d->at++);
	} else if (follows & I4) {
		if (d->size16 && !(d->rex & 8)) {
			d->imm = (int16_t)(d->at[0] | d->at[1] << 8);
			d->at += 2;
		} else {
			d->imm = signed32(d->at);
			d->at += 4;
		}
	}
}

/* ---- vector instructions ---- */

static uint8_t vector_follows(uint8_t map, uint8_t op, bool evex)
{
	if (map == 3)
		return M | I1;
	if (map == 1)
		return op == 0x77 && !evex ? 0 : M | (two_bytes[op] & I1);
	return M;
}

/* Decodes VEX (c5, c4) and EVEX (62). EVEX map 4 (APX) is not supported. */
static bool decode_vector(struct code_decoder *d, uint8_t first)
{
	bool evex = first == 0x62;
	uint8_t map = 1, last;

	if (d->rex || d->size16 || d->rep || d->lock)
		return false;
	d->rex = d->at[0] & 0x80 ? 0 : 4;
	if (first != 0xc5) {
		map = d->at[0] & (evex ? 7 : 31);
		d->rex |= (uint8_t)((d->at[0] & 0x40 ? 0 : 2) | (d->at[0] & 0x20 ? 0 : 1));
		d->at++;
		if (evex && (!(d->at[0] & 4)))
			return false;
		d->rex |= d->at[0] & 0x80 ? 8 : 0;
	}
	last = *d->at++;
	d->at += evex;
	d->vector_bytes = evex ? 64 : last & 4 ? 32 : 16;
	if (!map || map > 6 || map == 4 || (map > 3 && !evex))
		return false;
	d->op = *d->at++;
	if (vector_follows(map, d->op, evex) & M)
		read_modrm(d);
	/* In EVEX, a displacement of one byte has a unit that depends on the instruction. */
	if (evex && d->mod == 1 && d->base != NONE) {
		d->base = NONE;
		d->out->place = CODE_PLACE_OTHER;
	}
	if (vector_follows(map, d->op, evex) & I1)
		d->at++;
	code_effect_vector(d, map, last & 3, (uint8_t)(~last >> 3 & 15));
	return true;
}

/* AMD's XOP shares its first byte with pop; its map numbers would be invalid operands of pop. */
static bool decode_xop(struct code_decoder *d)
{
	uint8_t map = d->at[0] & 31, last;

	d->rex = (uint8_t)((d->at[0] & 0x80 ? 0 : 4) | (d->at[0] & 0x40 ? 0 : 2) |
			   (d->at[0] & 0x20 ? 0 : 1));
	last = d->at[1];
	d->op = d->at[2];
	d->at += 3;
	if (map > 10)
		return false;
	read_modrm(d);
	d->at += map == 8 ? 1 : map == 10 ? 4 : 0;
	code_effect_xop(d, map, ~last >> 3 & 15);
	return true;
}

/* ---- the whole instruction ---- */

static bool read_prefixes(struct code_decoder *d)
{
	for (int i = 0; i < MAX_LENGTH; i++, d->at++) {
		switch (*d->at) {
		case 0x66:
			d->size16 = true;
			break;
		case 0x67:
			d->address32 = true;
			break;
		case 0xf2:
		case 0xf3:
			d->rep = *d->at;
			break;
		case 0xf0:
			d->lock = true;
			break;
		case 0x64:
		case 0x65:
			d->segment = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			break;
		default:
			return true;
		}
	}
	return false;
}

static bool decode_0f(struct code_decoder *d)
{
	uint8_t follows;

	d->op = *d->at++;
	if (d->op == 0x38 || d->op == 0x3a) {
		uint8_t map = d->op == 0x38 ? 2 : 3;

		d->op = *d->at++;
		read_modrm(d);
		d->at += map == 3;
		code_effect_three_bytes(d, map);
		return true;
	}
	follows = two_bytes[d->op];
	if (follows & X)
		return false;
	if (follows & M)
		read_modrm(d);
	/* A branch's displacement has 4 bytes even with prefix 66. */
	if (follows & I4)
		d->size16 = false;
	read_immediate(d, follows);
	if (d->op == 0x78 && (d->size16 || d->rep == 0xf2))
		d->at += 2; /* extrq, insertq */
	code_effect_two_bytes(d);
	return true;
}

/*
 * Reads what follows one-byte opcodes in cases that the table cannot express: operands that are not
 * always there, or have another size.
 */
static void read_rest(struct code_decoder *d)
{
	switch (d->op) {
	case 0xa0 ... 0xa3: /* mov from and to an address of 8 bytes */
		d->at += d->address32 ? 4 : 8;
		break;
	case 0xc2: /* ret, retf */
	case 0xca:
		d->imm = d->at[0] | d->at[1] << 8;
		d->at += 2;
		break;
	case 0xc8: /* enter: bytes, depth */
		d->imm = d->at[0] | d->at[1] << 8 | d->at[2] << 16;
		d->at += 3;
		break;
	case 0xf6: /* of these eight instructions only test has an immediate */
	case 0xf7:
		if ((d->reg & 7) < 2)
			read_immediate(d, d->op == 0xf6 ? I1 : I4);
		break;
	default:
		if ((d->op & 0xf8) == 0xb8 && d->rex & 8)
			d->at += 4; /* mov: the other half of 8 bytes */
	}
}

static bool decode(struct code_decoder *d)
{
	uint8_t follows;

	if (!read_prefixes(d))
		return false;
	if ((*d->at & 0xf0) == 0x40)
		d->rex = *d->at++;
	d->op = *d->at++;
	if (d->op == 0x0f)
		return decode_0f(d);
	if (d->op == 0xc4 || d->op == 0xc5 || d->op == 0x62)
		return decode_vector(d, d->op);
	if (d->op == 0x8f && d->at[0] & 0x38)
		return decode_xop(d);
	follows = one_byte[d->op];
	if (follows & X)
		return false;
	if (follows & M)
		read_modrm(d);
	if (d->op == 0xe8 || d->op == 0xe9)
		d->size16 = false;
	read_immediate(d, follows);
	read_rest(d);
	code_effect_one_byte(d);
	return d->op != 0xff || (d->reg & 7) != 7;
}

bool code_insn_decode(const uint8_t *code, size_t bytes, struct code_insn *out)
{
	uint8_t copy[MARGIN];
	struct code_decoder d = {.at = code, .out = out};
	const uint8_t *start = code;

	*out = (struct code_insn){0};
	if (bytes < MARGIN) {
		memset(copy, 0, sizeof(copy));
		memcpy(copy, code, bytes);
		d.at = start = copy;
	}
	if (!bytes || !decode(&d) || d.at - start > MAX_LENGTH || (size_t)(d.at - start) > bytes)
		return false;
	out->length = (uint8_t)(d.at - start);
	return true;
}

uint16_t code_insn_written(const struct code_insn *insn)
{
	uint16_t sp = BIT(CODE_SP), a = BIT(insn->a & 15);

	switch (insn->kind) {
	case CODE_PUSH:
	case CODE_PUSH_OTHER:
	case CODE_POP_OTHER:
	case CODE_CALL:
	case CODE_CALL_INDIRECT:
	case CODE_RET:
		return insn->writes | sp;
	case CODE_POP:
		return insn->writes | sp | a;
	case CODE_LEA:
	case CODE_AND:
	case CODE_LOAD:
		return insn->writes | a;
	case CODE_SWAP:
		return insn->writes | a | BIT(insn->b);
	case CODE_LEAVE:
	case CODE_ENTER:
		return insn->writes | sp | BIT(CODE_BP);
	default:
		return insn->writes;
	}
}
