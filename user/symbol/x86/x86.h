/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 machine code: one decoder, and what kprof asks of it.
 *
 * code_insn_*: one instruction: its length, what it does to the stack pointer and to the general
 * registers, and its memory operand (decode.c, effect.c, vector.c).
 *
 * code_flow_*: the unwind rules of a function without call frame information, from its instructions
 * (flow.c, state.c).
 *
 * insn_*: where to place uprobes, what they cost there (cost.c, site.c), and which field of an
 * object a function reads first (field.c).
 */
#ifndef KPROF_SYMBOL_X86_H
#define KPROF_SYMBOL_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"

/* ---- one instruction ---- */

/* The machine's numbers of the registers that are named in the code. */
enum { CODE_AX = 0, CODE_CX = 1, CODE_DX = 2, CODE_BX = 3, CODE_SP = 4, CODE_BP = 5, CODE_NR = 16 };

enum code_kind {
	CODE_OTHER = 0, /* nothing but .writes; of a store: b bytes at most, 0: any number */
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
	CODE_JMP, /* likewise */
	/* a: through an array; b: the register that holds the target, or CODE_NR */
	CODE_JMP_INDIRECT,
	CODE_JCC,    /* likewise; .writes rcx: loop */
	CODE_RET,    /* value: bytes taken off the stack after the return address; 0: plain */
	CODE_SYSTEM, /* system call, software interrupt, transaction: .writes */
	CODE_STOP,   /* execution does not go on after it: ud2, hlt, int3 */
	CODE_PADDING,
};

/* What is done to the memory operand. */
enum code_memory {
	CODE_MEMORY_NONE = 0, /* there is none; push, pop and call have none of their own */
	CODE_MEMORY_ADDRESS,  /* only its address is used: lea, nop, prefetch */
	CODE_MEMORY_READ,
	CODE_MEMORY_WRITTEN, /* or both */
};

/* Where it lies: register number .place + .disp, or one of these. */
enum code_place {
	CODE_PLACE_RELATIVE = CODE_NR, /* the instruction's end + .disp */
	CODE_PLACE_ABSOLUTE,           /* .disp; also the first element of an array */
	CODE_PLACE_OTHER,              /* an index register, a segment, 32-bit addresses */
};

struct code_insn {
	uint8_t length;
	uint8_t kind; /* enum code_kind */
	uint8_t a, b;
	uint16_t writes; /* bit n: register n gets a value that is not followed */
	uint8_t memory;  /* enum code_memory */
	uint8_t place;   /* a register or enum code_place */
	int32_t value;
	int32_t disp;
};

/*
 * Decodes the instruction at code, of which so many bytes are there. False: it is not known, or not
 * complete.
 */
bool code_insn_decode(const uint8_t *code, size_t bytes, struct code_insn *out);
/* Bit n: general register n is written, in whatever way. */
uint16_t code_insn_written(const struct code_insn *insn);

/* ---- unwind rules of a function ---- */

/*
 * Which register or place on the stack leads to the caller's frame at each instruction, and where
 * the caller's rbp and rbx lie. The rules follow every path that direct branches make from the
 * function's first byte, so long as all paths to a place agree. Where they do not, or where the
 * stack pointer gets a value that is not understood, the rule is KPROF_UNWIND_UNKNOWN: a walk ends
 * there, and reports no wrong caller. The rules of a function that would return with another stack
 * pointer than it was entered with are discarded as a whole.
 */
#define CODE_FLOW_MAX_BYTES (4u << 20) /* larger functions are not analysed */
#define CODE_FLOW_TOO_BIG (-10001)     /* these two are no errno */
#define CODE_FLOW_DOUBTFUL (-10002)

struct code_flow;
int code_flow__new(struct code_flow **out);
void code_flow__free(struct code_flow *f);

struct code_function {
	const uint8_t *code;
	size_t bytes;
	uint64_t vaddr;
	/*
	 * That a function begins there is a guess: it is CODE_FLOW_DOUBTFUL, and has no rows,
	 * unless every path through it is one of known instructions and ends with a return, with
	 * the caller's stack pointer, rbp and rbx.
	 */
	bool guessed;
};
/*
 * The function's rows, in order of address, the first at its start. 0, what fn returned that was
 * negative, -ENOMEM, CODE_FLOW_TOO_BIG or CODE_FLOW_DOUBTFUL: it has no rows.
 */
int code_flow__run(struct code_flow *f, const struct code_function *function,
		   int (*fn)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule),
		   void *ctx);

/* ---- probe points ---- */

/*
 * What a uprobe costs (arch/x86/kernel/uprobes.c; measured, table in cost.c): push, nop, jmp, jcc
 * and call are emulated in the breakpoint handler; everything else is single-stepped out of line,
 * ten to thirty times as dear. Forbidden is what a kernel refuses, and what it accepts but executes
 * wrongly: see cost.c before relaxing it.
 */
enum insn_cost { INSN_EMULATED, INSN_STEPPED, INSN_FORBIDDEN /* a uprobe cannot go here */ };

enum insn_cost insn_cost(const uint8_t *code, size_t bytes);

/*
 * The cheapest place for an entry probe of a function: past an endbr64, and on to the first push as
 * long as no argument register, nor the stack pointer except by push, has been changed.
 */
struct insn_entry {
	uint32_t skip_bytes;    /* from the function's first byte */
	uint32_t sp_bias_bytes; /* pushed before it: entry sp = sp at the probe + this */
	enum insn_cost cost;
};
void insn_entry_site(const uint8_t *code, size_t bytes, struct insn_entry *out);

/*
 * Where to see that a call has returned: decodes in a straight line from the return address, to the
 * first emulated instruction; where none comes before the line ends (indirect branch, unknown stack
 * pointer, system call, repeated string instruction, 200 bytes), the first instruction that can be
 * probed.
 *
 * sp_delta_bytes is what the instructions before the site have added to the stack pointer: at the
 * probe, sp - sp_delta_bytes is the stack pointer right after the return. It is never negative, so
 * that at every site the returned frame's entry sp lies below the current one.
 *
 * keeps_result: no instruction before the site (FOLLOW: before the ret) writes the result register,
 * rax. One that loads it anew, or widens it in place, does.
 */
enum insn_return_kind {
	INSN_RETURN_SITE,   /* probe at skip_bytes */
	INSN_RETURN_FOLLOW, /* nothing but an epilogue and ret: the next return address lies
			     * follow_bytes above the stack pointer right after this return */
	INSN_RETURN_NONE,   /* cannot be decoded, or no safe place */
};
struct insn_return {
	enum insn_return_kind kind;
	uint32_t skip_bytes;
	int32_t sp_delta_bytes;
	int32_t follow_bytes;
	enum insn_cost cost;
	bool keeps_result;
};
void insn_return_site(const uint8_t *code, size_t bytes, struct insn_return *out);

/*
 * The displacement of the first load through an argument (this): how a field's offset is learnt
 * from a small accessor's code. arg: 1 = rdi, 2 = rsi (this, where the result goes through a hidden
 * pointer, as for a returned std::string) … 6 = r9. min_disp: smaller displacements are passed over
 * (vtable pointer …). Follows copies, spills and additions, through calls. -ENOENT: no such load
 * within the code.
 */
int insn_first_field(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disp);

#endif
