/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by decode.c, which finds an instruction's parts, and effect.c and vector.c, which know
 * what they do.
 */
#ifndef KPROF_SYMBOL_X86_DECODE_H
#define KPROF_SYMBOL_X86_DECODE_H

#include "symbol/x86/x86.h"

#define BIT(r) ((uint16_t)(1u << (r)))
#define NONE 0xff

/* What follows an opcode, as bits. */
enum {
	M = 1,  /* a ModRM byte */
	I1 = 2, /* an immediate of 1 byte */
	I4 = 4, /* an immediate of 4 bytes, or 2 with prefix 66 */
	X = 8,  /* not an instruction */
};

struct code_decoder {
	const uint8_t *at; /* the next byte to be read */
	uint8_t rex, rep;  /* the REX byte; the prefix f2 or f3, or 0 */
	bool size16, address32, segment, lock, indexed;
	uint8_t op;
	uint8_t vector_bytes; /* size of the vector registers; 0: the instruction names none */
	/* ModRM */
	uint8_t mod, reg, rm; /* including the bits from prefixes */
	/* base register of the memory operand; NONE: it is not one register + displacement */
	uint8_t base;
	int32_t imm;
	struct code_insn *out;
};

/*
 * Fill in d->out, one function per opcode map: one byte; 0f; 0f 38 (map 2) and 0f 3a (map 3); VEX
 * and EVEX; XOP.
 */
void code_effect_one_byte(struct code_decoder *d);
void code_effect_two_bytes(struct code_decoder *d);
void code_effect_three_bytes(struct code_decoder *d, uint8_t map);
/* pp: the implied prefix as a number: none, 66, f3, f2. vvvv: the third register. */
void code_effect_vector(struct code_decoder *d, uint8_t map, uint8_t pp, uint8_t vvvv);
void code_effect_xop(struct code_decoder *d, uint8_t map, uint8_t vvvv);
/*
 * Whether a vector instruction without effect on general registers stores to its memory operand.
 * SSE is map 1.
 */
bool code_stores_vector(uint8_t map, uint8_t op);

/* The register that contains the operand of a byte instruction. */
static inline uint8_t byte_register(const struct code_decoder *d, uint8_t number)
{
	return number >= 4 && number < 8 && !d->rex ? number - 4 : number;
}

static inline bool wide(const struct code_decoder *d)
{
	return d->rex & 8;
}

static inline void set(struct code_decoder *d, enum code_kind kind, uint8_t a, uint8_t b,
		       int32_t value)
{
	d->out->kind = (uint8_t)kind;
	d->out->a = a;
	d->out->b = b;
	d->out->value = value;
}

/*
 * Notes that the instruction writes its register or memory operand, in the size that the prefixes
 * say.
 */
static inline void writes_rm(struct code_decoder *d, bool byte)
{
	uint8_t bytes = byte ? 1 : wide(d) ? 8 : d->size16 ? 2 : 4;

	if (d->mod == 3) {
		d->out->writes |= BIT(byte ? byte_register(d, d->rm) : d->rm);
		return;
	}
	d->out->memory = CODE_MEMORY_WRITTEN;
	if (d->base != NONE)
		set(d, CODE_WRITE, d->base, bytes, d->out->disp);
}

/* Notes a store of an unknown value. */
static inline void code_store(struct code_decoder *d, uint8_t bytes)
{
	d->out->memory = CODE_MEMORY_WRITTEN;
	if (d->out->kind == CODE_OTHER)
		d->out->b = bytes;
}

/* Notes that the ModRM's register is copied to its register or memory operand, or from there. */
static inline void copies_rm(struct code_decoder *d, bool to_rm)
{
	uint8_t rm = d->mod == 3 ? d->rm : CODE_NR;

	if (d->size16 && !wide(d))
		return;
	d->out->copies = true;
	d->out->from = to_rm ? d->reg : rm;
	d->out->to = to_rm ? rm : d->reg;
}

static inline void writes_reg(struct code_decoder *d, bool byte)
{
	d->out->writes |= BIT(byte ? byte_register(d, d->reg) : d->reg);
}

#endif
