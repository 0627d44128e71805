/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one x86-64 instruction does to the stack pointer and to the general registers, and how long it is: enough to
 * follow a frame through code that nothing describes, at some hundred megabytes a second (a library of maths
 * routines has tens of megabytes of such code). Intel's manual, volume 2, appendix A has the opcode maps.
 */
#ifndef KPROF_SYMBOL_CODE_INSN_H
#define KPROF_SYMBOL_CODE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The machine's numbers of the registers that code_flow.c knows by name. */
enum { CODE_AX = 0, CODE_CX = 1, CODE_DX = 2, CODE_BX = 3, CODE_SP = 4, CODE_BP = 5, CODE_NR = 16 };

enum code_kind {
	CODE_OTHER = 0, /* nothing but .writes */
	CODE_ADD,       /* the same, of one register to another: .writes */
	CODE_PUSH,      /* of register a */
	CODE_PUSH_OTHER,
	CODE_POP, /* into register a */
	CODE_POP_OTHER,
	CODE_LEA,   /* a = b + value: also mov, add, sub, inc, dec */
	CODE_AND,   /* a &= value */
	CODE_STORE, /* 8 bytes of register b to [a + value] */
	CODE_LOAD,  /* register a from [b + value], 8 bytes */
	CODE_WRITE, /* b bytes at most of something to [a + value] */
	CODE_SWAP,  /* a with b */
	CODE_LEAVE,
	CODE_ENTER, /* value bytes of room */
	CODE_CALL,  /* to the instruction's end + value */
	CODE_CALL_INDIRECT,
	CODE_JMP,          /* likewise */
	CODE_JMP_INDIRECT, /* a: through an array; b: the register that says where to, or CODE_NR */
	CODE_JCC,          /* likewise; .writes rcx: loop */
	CODE_RET,
	CODE_STOP, /* nothing comes behind it: ud2, hlt, int3 */
	CODE_PADDING,
};

struct code_insn {
	uint8_t length;
	uint8_t kind; /* enum code_kind */
	uint8_t a, b;
	uint16_t writes; /* bit n: register n gets a value that is not followed */
	uint8_t refers;  /* enum code_refers */
	int32_t value;
	int32_t place; /* what it refers to */
};

/* Memory at an address that the instruction itself says. */
enum code_refers {
	CODE_REFERS_NOT = 0,
	CODE_REFERS_RELATIVE, /* to the instruction's end */
	CODE_REFERS_ABSOLUTE, /* as an array's begin, too */
};

/* The instruction at code, of which so many bytes are there. False: none that is known. */
bool code_insn_decode(const uint8_t *code, size_t bytes, struct code_insn *out);

#endif
