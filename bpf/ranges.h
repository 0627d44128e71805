/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is read at the entry of a function to name a hit, and what the names of ranges say of what
 * is recorded (within.h). For span.bpf.c alone.
 */
#ifndef KPROF_BPF_RANGES_H
#define KPROF_BPF_RANGES_H

#include "inside.h"
#include "registers.h"

/* Recipes of the probes that read a text or a value, by index. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KPROF_WIRE_MAX_PROBES);
	__type(key, __u32);
	__type(value, struct kprof_wire_probe);
} probes SEC(".maps");

const volatile char within_end[KPROF_WIRE_TEXT_SHORT] = {0}; /* the text by which ranges end */

static __always_inline __u64 evaluate(struct pt_regs *ctx, const struct kprof_recipe *r, __u64 sp)
{
	__u64 v;

	if (!r->reg)
		return 0;
	v = argument(ctx, r->reg, sp);
	for (int i = 0; i < KPROF_RECIPE_MAX && i < r->nr_off; i++)
		if (bpf_probe_read_user(&v, sizeof(v), (void *)(v + r->off[i])))
			return 0;
	return v + r->add;
}

/* The value and the address of the text that name the hit, each 0 where there is none. */
static __always_inline void find_text(struct pt_regs *ctx, const struct kprof_wire_probe *probe,
				      __u64 sp, __u64 *value, __u64 *text_addr)
{
	*value = evaluate(ctx, &probe->value, sp);
	*text_addr = 0;
	if (!probe->text_conditional || (*value & 0xfff) == probe->text_if_value_low12)
		*text_addr = evaluate(ctx, &probe->text, sp);
}

static __always_inline bool within_is_end(__u64 text_addr)
{
	char text[KPROF_WIRE_TEXT_SHORT] = {};

	if (bpf_probe_read_user_str(text, sizeof(text), (void *)text_addr) <= 0)
		return false;
	for (int i = 0; i < KPROF_WIRE_TEXT_SHORT; i++) {
		if (text[i] != within_end[i])
			return false;
		if (!text[i])
			break;
	}
	return true;
}

/* Lies the address on the used part of the thread's stack? A thread's variables are above it. */
static __always_inline bool within_on_stack(struct task_struct *task, __u64 sp, __u64 address)
{
	__u64 top = BPF_CORE_READ(task, thread.fsbase);

	if (top < sp)
		top = BPF_CORE_READ(task, mm, start_stack);
	return address >= sp && address < top;
}

/* A range begins or ends, whose probe has a text or a value. */
static __always_inline bool within_range(struct pt_regs *ctx, __u64 cookie)
{
	__u32 role = KPROF_COOKIE_WITHIN_ROLE(cookie), kind = KPROF_COOKIE_WITHIN_KIND(cookie);
	__u64 sp = PT_REGS_SP(ctx) + KPROF_COOKIE_BIAS(cookie), value, text_addr;
	struct task_struct *task = bpf_get_current_task_btf();
	struct within_thread *t = within_thread(task);
	__u32 index = KPROF_COOKIE_INDEX(cookie);
	struct kprof_wire_probe *probe;

	/* of a thread that is outside, no end is of interest */
	if (role == KPROF_WITHIN_NONE || (role != KPROF_WITHIN_BEGIN && !within_any(t)))
		return within_any(t);
	probe = bpf_map_lookup_elem(&probes, &index);
	if (!probe)
		return within_any(t);
	find_text(ctx, probe, sp, &value, &text_addr);
	if ((value & probe->value_mask) != probe->value_is)
		return within_any(t);
	if (role == KPROF_WITHIN_BEGIN)
		return within_begins(kind, text_addr);
	if ((role == KPROF_WITHIN_END_TEXT && !within_is_end(text_addr)) ||
	    (role == KPROF_WITHIN_END_HEAP && within_on_stack(task, sp, value)))
		return within_any(t);
	return within_ends(t, kind);
}

/* A process that is not met yet is to be looked at, or it is never known what is inside. */
static __always_inline void within_join(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	if (joining && !stopped && !target_space(pid))
		join(pid);
}

/* Is the hit to be recorded? with_text: its probe may have a text or a value. */
static __always_inline bool within(struct pt_regs *ctx, const bool with_text)
{
	struct within_thread *t;
	__u64 cookie;
	__u32 role;

	if (!with_within)
		return true;
	cookie = bpf_get_attach_cookie(ctx);
	if (within_of != KPROF_WITHIN_ANNOTATIONS) {
		within_join();
		if (KPROF_COOKIE_WITHIN_ROLE(cookie) == KPROF_WITHIN_FUNCTION)
			return true;
		return within_entered(PT_REGS_SP(ctx) + KPROF_COOKIE_BIAS(cookie));
	}
	if (with_text)
		return within_range(ctx, cookie);
	t = within_thread(bpf_get_current_task_btf());
	role = KPROF_COOKIE_WITHIN_ROLE(cookie);
	if (role == KPROF_WITHIN_BEGIN) /* it has no name that could be read */
		return within_begins(KPROF_COOKIE_WITHIN_KIND(cookie), 0);
	return role == KPROF_WITHIN_END ? within_ends(t, KPROF_COOKIE_WITHIN_KIND(cookie))
					: within_any(t);
}

/* Is the instruction before a call whose target lies in it? */
static __always_inline bool within_called_directly(__u64 ret_addr)
{
	__u8 code = 0;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)(ret_addr - 5)) && code == 0xe8;
}

/* The function is entered. sited: where this call returns, that is seen. */
static __noinline int within_function(__u64 sp, __u64 ret_addr, bool sited)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct within_thread *t;

	t = bpf_task_storage_get(&within_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	if (t->round != within_round(task)) {
		t->round = within_round(task);
		t->top = 0;
		t->sp = 0;
	}
	if (within_holds(t, sp) && sp < t->sp) /* it calls itself */
		return 0;
	t->sp = 0;
	if (!sited && !within_called_directly(ret_addr)) {
		__sync_fetch_and_add(&within_unknown, 1);
		return 0;
	}
	t->ret_addr = ret_addr;
	t->sp = sp;
	__sync_fetch_and_add(&within_met, 1);
	return 0;
}

#endif
