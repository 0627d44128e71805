/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 instructions, as far as probing needs them: what a uprobe costs where, and where the
 * cheap places are. Built on capstone.
 *
 * Cost classes (arch/x86/kernel/uprobes.c; measured, table in insn.c): push, nop, jmp, jcc and call
 * are emulated in the breakpoint handler; everything else is single-stepped out of line, ten to
 * thirty times as dear. Forbidden is what a kernel refuses, and what it accepts but executes
 * wrongly: see insn.c before relaxing it.
 */
#ifndef KPROF_INSN_H
#define KPROF_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_cost { INSN_EMULATED, INSN_STEPPED, INSN_FORBIDDEN /* a uprobe cannot go here */ };

enum insn_cost insn_cost(const uint8_t *code, size_t bytes);

/*
 * The cheapest place for an entry probe of a function: past an endbr64, and on to the first push as long
 * as no argument register, nor the stack pointer except by push, has been changed.
 */
struct insn_entry {
	uint32_t skip_bytes;    /* from the function's first byte */
	uint32_t sp_bias_bytes; /* pushed before it: entry sp = sp at the probe + this */
	enum insn_cost cost;
};
int insn_entry_site(const uint8_t *code, size_t bytes, struct insn_entry *out);

/*
 * Where to see that a call has returned: decodes in a straight line from the return address, to the
 * first emulated instruction; where none comes before the line ends (indirect branch, unknown stack
 * pointer, system call, repeated string instruction, 200 bytes), the first instruction that can be probed.
 *
 * sp_delta_bytes is what the instructions before the site have added to the stack pointer: at the
 * probe, sp - sp_delta_bytes is the stack pointer right after the return. It is never negative, so
 * that at every site the returned frame's entry sp lies below the current one.
 *
 * keeps_result: no instruction before the site (FOLLOW: before the ret) writes the result register, rax. One that
 * loads it anew, or widens it in place, does.
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
int insn_return_site(const uint8_t *code, size_t bytes, struct insn_return *out);

/*
 * The displacement of the first load through an argument (this): how a field's offset is learnt
 * from a small accessor's code. arg: 1 = rdi, 2 = rsi (this, where the result goes through a hidden
 * pointer, as for a returned std::string) … 6 = r9. min_disp: smaller displacements are passed over
 * (vtable pointer …). Follows copies, spills and additions, through calls. -ENOENT: no such load
 * within the code.
 */
int insn_first_field(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disp);

#endif
