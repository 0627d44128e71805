/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space is told of a process that it does not know. */
#ifndef KPROF_BPF_SEEN_H
#define KPROF_BPF_SEEN_H

#include "common.h"

/* As tell_of_process(), though it may be ending: then its memory may be gone, and its arguments. */
static __always_inline int tell_of_any(__u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf(), *leader = task->group_leader;
	struct kprof_wire_seen *e;
	struct kprof_hit hit;
	__u64 args, bytes;

	if (!count_hit(&hit, KPROF_WIRE_SOURCE_TASKS))
		return 0;
	e = reserve(&hit, sizeof(*e));
	if (!e)
		return 0;
	if (task->flags & PF_KTHREAD)
		flags |= KPROF_WIRE_SEEN_KERNEL;
	fill_header(&e->h, bpf_get_current_pid_tgid(), 0, flags, KPROF_WIRE_SEEN, sizeof(*e));
	e->ppid = BPF_CORE_READ(leader, real_parent, tgid);
	e->ns_pid = innermost_number(leader);
	e->uid = BPF_CORE_READ(leader, cred, euid.val);
	e->start_ns = BPF_CORE_READ(leader, start_time);
	e->start_boot_ns = BPF_CORE_READ(leader, start_boottime);
	BPF_CORE_READ_INTO(&e->comm, leader, comm);
	args = BPF_CORE_READ(task, mm, arg_start);
	bytes = BPF_CORE_READ(task, mm, arg_end) - args;
	if (bytes > sizeof(e->args))
		bytes = sizeof(e->args);
	if (!args || bpf_probe_read_user(e->args, bytes, (void *)args))
		bytes = 0;
	e->args_bytes = bytes;
	bpf_ringbuf_submit(e, at_once());
	return 1;
}

/*
 * Tells of the process that runs here; flags: KPROF_WIRE_SEEN_PLACED. Returns 0 if there was no
 * room for that, or if it is ending: user space knows one that does, if it was worth it.
 */
static __always_inline int tell_of_process(__u32 flags)
{
	return bpf_get_current_task_btf()->flags & PF_EXITING ? 0 : tell_of_any(flags);
}

#endif
