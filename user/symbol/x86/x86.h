/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 machine code: a decoder, and what kprof finds out with it.
 *
 * code_insn_*: one instruction: its length, its effect on the stack pointer and the general
 * registers, and its memory operand (decode.c, effect.c, vector.c).
 *
 * code_flow_*: the unwind rules of a function without call frame information, from its instructions
 * (flow.c, state.c).
 *
 * insn_*: where to place uprobes, what they cost there (cost.c, site.c), where a call's result is
 * (result.c), and which field of an object a function reads first (field.c).
 */
#ifndef KPROF_SYMBOL_X86_H
#define KPROF_SYMBOL_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"

/* ---- one instruction ---- */

/* The processor's numbers of the registers that the code names. */
enum { CODE_AX = 0, CODE_CX = 1, CODE_DX = 2, CODE_BX = 3, CODE_SP = 4, CODE_BP = 5, CODE_NR = 16 };

enum code_kind {
	CODE_OTHER = 0, /* only what .writes says; a store: of at most b bytes, 0: any number */
	CODE_ADD,       /* like CODE_OTHER: adds one register to another */
	CODE_PUSH,      /* pushes register a */
	CODE_PUSH_OTHER,
	CODE_POP, /* into register a */
	CODE_POP_OTHER,
	CODE_LEA,   /* a = b + value: also mov, add, sub, inc, dec */
	CODE_AND,   /* a &= value */
	CODE_STORE, /* 8 bytes of register b to [a + value] */
	CODE_LOAD,  /* register a from [b + value], 8 bytes */
	CODE_WRITE, /* at most b bytes of an unknown value to [a + value] */
	CODE_SWAP,  /* a with b */
	CODE_LEAVE,
	CODE_ENTER, /* value: the bytes of the frame */
	CODE_CALL,  /* to the end of the instruction + value */
	CODE_CALL_INDIRECT,
	CODE_JMP, /* to the end of the instruction + value */
	/* a: the target is from an array; b: the register with the target, or CODE_NR */
	CODE_JMP_INDIRECT,
	CODE_JCC, /* to the end of the instruction + value; loop: .writes rcx */
	CODE_RET, /* value: bytes removed from the stack after the return address; 0: plain ret */
	CODE_SYSTEM, /* system call, software interrupt, transaction: .writes */
	CODE_STOP,   /* execution does not continue after it: ud2, hlt, int3 */
	CODE_PADDING,
};

/* What the instruction does to its memory operand. */
enum code_memory {
	CODE_MEMORY_NONE = 0, /* it has none; push, pop and call do not count */
	CODE_MEMORY_ADDRESS,  /* only its address is used: lea, nop, prefetch */
	CODE_MEMORY_READ,
	CODE_MEMORY_WRITTEN, /* written, or read and written */
};

/* The address of the memory operand: register number .place + .disp, or one of these. */
enum code_place {
	CODE_PLACE_RELATIVE = CODE_NR, /* the instruction's end + .disp */
	CODE_PLACE_ABSOLUTE,           /* .disp; also the first element of an array */
	CODE_PLACE_OTHER,              /* with an index register, a segment or 32-bit addresses */
};

struct code_insn {
	uint8_t length;
	uint8_t kind; /* enum code_kind */
	uint8_t a, b;
	uint16_t writes; /* bit n: register n gets an unknown value */
	uint8_t memory;  /* enum code_memory */
	uint8_t place;   /* a register or enum code_place */
	int32_t value;
	int32_t disp;
	/*
	 * It copies at least the low 4 bytes of .from to .to, unchanged: register numbers, or
	 * CODE_NR for the memory operand.
	 */
	bool copies;
	uint8_t from, to;
};

/*
 * Decodes the instruction at `code`, where `bytes` bytes are available. False: it is unknown or
 * incomplete.
 */
bool code_insn_decode(const uint8_t *code, size_t bytes, struct code_insn *out);
/* The general registers that the instruction writes in any way: bit n is register n. */
uint16_t code_insn_written(const struct code_insn *insn);

/* ---- unwind rules of a function ---- */

/*
 * For each instruction: which register or place on the stack leads to the caller's frame, and where
 * the caller's rbp and rbx are. The rules follow all paths of direct branches from the function's
 * first byte, as long as all paths to a place agree. Where paths disagree, or the stack pointer
 * gets a value that is not understood, the rule is KPROF_UNWIND_UNKNOWN: a walk ends there instead
 * of reporting a wrong caller. If a function would return with another stack pointer than it was
 * entered with, all its rules are discarded.
 */
#define CODE_FLOW_MAX_BYTES (4u << 20) /* larger functions are not analysed */
#define CODE_FLOW_TOO_BIG (-10001)     /* these two are not an errno */
#define CODE_FLOW_DOUBTFUL (-10002)

struct code_flow;
int code_flow__new(struct code_flow **out);
void code_flow__free(struct code_flow *f);

struct code_function {
	const uint8_t *code;
	size_t bytes;
	uint64_t vaddr;
	/*
	 * It is a guess that a function begins here. The result is CODE_FLOW_DOUBTFUL, without
	 * rows, unless every path has only known instructions and ends with a return, at which the
	 * stack pointer, rbp and rbx are the caller's.
	 */
	bool guessed;
};
/*
 * Reports the function's rows in order of address, the first at its start. 0, the negative number
 * that fn returned, -ENOMEM; CODE_FLOW_TOO_BIG, CODE_FLOW_DOUBTFUL: there are no rows.
 */
int code_flow__run(struct code_flow *f, const struct code_function *function,
		   int (*fn)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule),
		   void *ctx);

/* ---- probe points ---- */

/*
 * The cost of a uprobe on an instruction (arch/x86/kernel/uprobes.c; measured, table in cost.c).
 * push, nop, jmp, jcc and call are emulated in the breakpoint handler; everything else is
 * single-stepped out of line, which costs ten to thirty times as much. Forbidden is what a kernel
 * refuses, and what it accepts but executes wrongly: see cost.c before relaxing this.
 */
enum insn_cost { INSN_EMULATED, INSN_STEPPED, INSN_FORBIDDEN /* a uprobe cannot go here */ };

enum insn_cost insn_cost(const uint8_t *code, size_t bytes);

/*
 * The cheapest place for a function's entry probe: after an endbr64, and further to the first push,
 * as long as no argument register has been changed, and the stack pointer only by pushes.
 */
struct insn_entry {
	uint32_t skip_bytes; /* bytes from the function's first byte */
	/* bytes pushed before the probe: sp at entry = sp at the probe + this */
	uint32_t sp_bias_bytes;
	enum insn_cost cost;
};
void insn_entry_site(const uint8_t *code, size_t bytes, struct insn_entry *out);

/*
 * The return site of a call, where its end is seen. Decodes in a straight line from the return
 * address to the first emulated instruction. If none comes before the line ends (at an indirect
 * branch, an unknown stack pointer, a system call, a repeated string instruction, or after 200
 * bytes), the first instruction that can be probed is used.
 *
 * sp_delta_bytes is what the instructions before the site add to the stack pointer: sp at the probe
 * - sp_delta_bytes is the stack pointer right after the return. It is never negative, so that at
 * every site the entry sp of the returned frame is below the current sp.
 *
 * The call's result is an int in eax. The instructions before the site may overwrite eax, and may
 * have copied it to other registers or to memory before.
 */
enum insn_return_kind {
	INSN_RETURN_SITE, /* probe at skip_bytes */
	/*
	 * only an epilogue and ret follow: the next return address is follow_bytes above the stack
	 * pointer right after this return
	 */
	INSN_RETURN_FOLLOW,
	INSN_RETURN_NONE, /* cannot be decoded, or no safe place */
};
/* Where the result is: in a register's low half, or in 4 bytes at its content + disp_bytes. */
struct insn_result {
	uint8_t reg;
	bool in_memory;
	int16_t disp_bytes;
};
struct insn_return {
	enum insn_return_kind kind;
	uint32_t skip_bytes;
	int32_t sp_delta_bytes;
	int32_t follow_bytes;
	enum insn_cost cost;
	bool keeps_result; /* SITE: it is at .result; FOLLOW: it is in eax at the ret */
	struct insn_result result;
};
void insn_return_site(const uint8_t *code, size_t bytes, struct insn_return *out);

/*
 * How many bytes of arguments in memory the function reads at its beginning, in a straight line up
 * to its first return: to learn the size of a class that is handed over by value. The last of them
 * must be read into a general register. -ENOENT: it reads none, or in another way.
 */
int insn_memory_args(const uint8_t *code, size_t bytes);

/*
 * Finds the displacement of the first load through an argument (this), to learn a field's offset
 * from the code of a small accessor. arg: 1 = rdi, 2 = rsi (this, if the result goes through a
 * hidden pointer, as for a returned std::string) … 6 = r9. Smaller displacements than min_disp (the
 * vtable pointer …) are skipped. Follows copies, spills and additions, also across calls. -ENOENT:
 * the code has no such load.
 */
int insn_first_field(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disp);
/* The displacements of the first such loads, at most `max`. Returns their number, or -EINVAL. */
int insn_fields(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disps,
		int max);

#endif
