/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is what a thread does now to be recorded, or is it outside of what was asked for (--within)? To
 * be included where python.h is.
 */
#ifndef KPROF_BPF_INSIDE_H
#define KPROF_BPF_INSIDE_H

#include "within_python.h"
#include "within_symbol.h"

/* Where no function is entered. */
static __always_inline bool within_here(void)
{
	if (!with_within)
		return true;
	if (within_in_python())
		return within_python(0);
	if (within_of == KPROF_WITHIN_SYMBOL)
		return within_symbol_now();
	return within_any(within_thread(bpf_get_current_task_btf()));
}

/* Where a function is entered with this stack pointer. */
static __always_inline bool within_entered(__u64 sp)
{
	if (!with_within)
		return true;
	if (within_in_python())
		return within_python(sp);
	if (within_of == KPROF_WITHIN_SYMBOL)
		return within_symbol(sp);
	return within_any(within_thread(bpf_get_current_task_btf()));
}

/* A call was recorded whose return address lies there. */
static __always_inline void within_returns_at(__u64 slot)
{
	struct within_thread *t;

	if (!with_within || within_of == KPROF_WITHIN_ANNOTATIONS)
		return;
	t = within_thread(bpf_get_current_task_btf());
	if (t && t->top < slot)
		t->top = slot;
}

/*
 * Is a return site to be recorded? Those of calls that are not do no harm. What was called inside
 * has returned when the outermost of these calls has.
 */
static __always_inline bool within_returned(__u64 sp)
{
	struct within_thread *t;
	bool inside;

	if (!with_within)
		return true;
	t = within_thread(bpf_get_current_task_btf());
	if (within_of == KPROF_WITHIN_ANNOTATIONS)
		return within_any(t);
	inside = t && t->top;
	if (inside && sp - 8 >= t->top)
		t->top = 0;
	if (inside && sp - 8 >= t->sp)
		t->sp = 0;
	return inside;
}

#endif
