// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forks, execs and exits in the recorded processes, and libraries that are mapped or unmapped.
 * These events are rare: each wakes user space.
 */
#include "common.h"

const volatile bool follow_children = false; /* a target's child becomes a target at its fork */

static __always_inline int emit(struct task_struct *task, __u16 kind, __u32 id,
				struct task_struct *child)
{
	struct kprof_wire_task *e;
	struct kprof_hit hit;

	if (!count_hit(&hit, KPROF_WIRE_SOURCE_TASKS))
		return 0;
	e = reserve(&hit, sizeof(*e));
	if (!e)
		return 0;
	fill_header(&e->h, (__u64)task->tgid << 32 | (__u32)task->pid, 0, id, kind, sizeof(*e));
	e->child_pid = child ? child->tgid : 0;
	e->child_tid = child ? child->pid : 0;
	BPF_CORE_READ_INTO(&e->comm, task, comm);
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(kprof_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 child_pid = child->tgid;
	__u32 one = 1;

	if (stopped || !is_target(parent->tgid))
		return 0;
	if (follow_children && child_pid != parent->tgid)
		bpf_map_update_elem(&targets, &child_pid, &one, BPF_ANY);
	return emit(parent, KPROF_WIRE_FORK,
		    parent->mm == child->mm ? KPROF_WIRE_FORK_SHARES_MEMORY : 0, child);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(kprof_exec, struct task_struct *task, int old_tid)
{
	if (stopped || !is_target(task->tgid))
		return 0;
	return emit(task, KPROF_WIRE_EXEC, old_tid, NULL);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(kprof_exit, struct task_struct *task)
{
	if (stopped || !is_target(task->tgid))
		return 0;
	return emit(task, KPROF_WIRE_EXIT,
		    task->signal->live.counter == 0 ? KPROF_WIRE_EXIT_PROCESS : 0, NULL);
}

/* The dynamic linker calls an empty function whenever its list of libraries changes. */
SEC("uprobe.multi")
int kprof_maps(struct pt_regs *ctx)
{
	record_hit(ctx, KPROF_WIRE_MAPS, BPF_RB_FORCE_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
