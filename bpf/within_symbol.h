/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where only what happens inside of a function of native code is recorded. It has a probe at its
 * entry, which keeps the stack pointer and the return address that lies there. A thread is inside
 * as long as it calls from further down the stack, and that address is where it was: what is called
 * after the function has returned, or was left by an exception or longjmp(), either is further up
 * or has put its own there.
 *
 * Two functions that are called from the same place put the same one there. So that place must be
 * one that calls this function only, or where the return is seen: at the return site of the call,
 * which is learnt as that of any call.
 */
#ifndef KPROF_BPF_WITHIN_SYMBOL_H
#define KPROF_BPF_WITHIN_SYMBOL_H

#include "within.h"

/* Is the thread inside, whose stack pointer is, or was at the entry of a function, this one? */
static __always_inline bool within_holds(const struct within_thread *t, __u64 sp)
{
	__u64 ret_addr = 0;

	return t->sp && sp <= t->sp &&
	       !bpf_probe_read_user(&ret_addr, sizeof(ret_addr), (void *)t->sp) &&
	       ret_addr == t->ret_addr;
}

/* Is the thread inside? sp: the stack pointer at the entry of a function. */
static __always_inline bool within_symbol(__u64 sp)
{
	struct within_thread *t = within_thread(bpf_get_current_task_btf());

	if (!t)
		return false;
	if (within_holds(t, sp))
		return true;
	t->sp = 0;
	if (t->top < sp) /* calls that were recorded are over */
		t->top = 0;
	return false;
}

/* The same of a thread that is interrupted. */
static __always_inline bool within_symbol_now(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct within_thread *t = within_thread(task);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return t && within_holds(t, PT_REGS_SP(regs));
}

#endif
