/* SPDX-License-Identifier: GPL-2.0-only */
/* The registers at a hit: by the number of the argument that they are, or by the processor's. */
#ifndef KPROF_BPF_REGISTERS_H
#define KPROF_BPF_REGISTERS_H

#include "common.h"

/* reg: enum kprof_reg; sp: the stack pointer at the function's entry */
static __always_inline __u64 argument(struct pt_regs *ctx, __u8 reg, __u64 sp)
{
	switch (reg) {
	case KPROF_REG_ARG1:
		return PT_REGS_PARM1(ctx);
	case KPROF_REG_ARG2:
		return PT_REGS_PARM2(ctx);
	case KPROF_REG_ARG3:
		return PT_REGS_PARM3(ctx);
	case KPROF_REG_ARG4:
		return PT_REGS_PARM4(ctx);
	case KPROF_REG_ARG5:
		return PT_REGS_PARM5(ctx);
	case KPROF_REG_ARG6:
		return PT_REGS_PARM6(ctx);
	case KPROF_REG_SP:
		return sp;
	}
	return 0;
}

/*
 * The content of a register, by the processor's number. The barriers keep the compiler from making
 * one load at a computed offset of all, which the verifier refuses.
 */
static __always_inline __u64 general_register(struct pt_regs *ctx, __u32 number)
{
	__u64 v = 0;

#define REGISTER(n, field)      \
	case n:                 \
		v = ctx->field; \
		barrier_var(v); \
		break;
	switch (number) {
		REGISTER(0, rax)
		REGISTER(1, rcx)
		REGISTER(2, rdx)
		REGISTER(3, rbx)
		REGISTER(4, rsp)
		REGISTER(5, rbp)
		REGISTER(6, rsi)
		REGISTER(7, rdi)
		REGISTER(8, r8)
		REGISTER(9, r9)
		REGISTER(10, r10)
		REGISTER(11, r11)
		REGISTER(12, r12)
		REGISTER(13, r13)
		REGISTER(14, r14)
		REGISTER(15, r15)
	}
#undef REGISTER
	return v;
}

#endif
