// SPDX-License-Identifier: GPL-2.0-only
/*
 * Of all processes of the machine, those that begin and end during the recording: how many, by
 * name, and how much CPU time they took. Most are too short to be sampled.
 */
#include "common.h"

/* Set by user space when the recording begins. */
__u64 machine_since_ns;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_WIRE_MAX_ENDED);
	__type(key, struct kprof_wire_name);
	__type(value, struct kprof_wire_ended);
} ended_processes SEC(".maps");

/* The counts of processes with this name, or of all names that the map has no room for. */
static __always_inline struct kprof_wire_ended *ended_at(const struct kprof_wire_name *name)
{
	struct kprof_wire_ended *e = bpf_map_lookup_elem(&ended_processes, name), none = {0};
	struct kprof_wire_name others = {0};

	if (e)
		return e;
	bpf_map_update_elem(&ended_processes, name, &none, BPF_NOEXIST);
	e = bpf_map_lookup_elem(&ended_processes, name);
	return e ? e : bpf_map_lookup_elem(&ended_processes, &others);
}

/* The counts that the process with this first thread belongs to. NULL: it began before. */
static __always_inline struct kprof_wire_ended *ended_of(struct task_struct *leader)
{
	struct kprof_wire_name name = {0};

	if (stopped || !machine_since_ns || BPF_CORE_READ(leader, start_time) < machine_since_ns)
		return NULL;
	BPF_CORE_READ_INTO(&name.comm, leader, comm);
	return ended_at(&name);
}

static __always_inline void process_exited(struct task_struct *task)
{
	struct kprof_wire_ended *e;

	if (task->signal->live.counter)
		return;
	e = ended_of(task->group_leader);
	if (e)
		__sync_fetch_and_add(&e->processes, 1);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(kprof_process_exit, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	process_exited(task);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/*
 * A process's CPU time has been summed up only when the kernel gives its memory back, some moments
 * after its parent has waited for it.
 */
static __always_inline void process_freed(struct task_struct *task)
{
	struct kprof_wire_ended *e;

	if (task->pid != task->tgid)
		return;
	e = ended_of(task);
	if (!e)
		return;
	__sync_fetch_and_add(&e->summed, 1);
	__sync_fetch_and_add(&e->cpu_ns, task->signal->sum_sched_runtime);
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(kprof_process_free, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	process_freed(task);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
