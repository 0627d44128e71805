// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forks, execs and exits in the recorded processes, and libraries that are mapped or unmapped.
 * These events are rare: each wakes user space.
 */
#include "seen.h"
#include "within.h"

const volatile bool follow_children = false; /* a target's child becomes a target at its fork */
const volatile bool until_exec = false;      /* with the program, a target's recording ends */

/* Read by user space: children that the table of targets had no room for. */
__u64 children_refused;

static __u32 next_space = KPROF_WIRE_FIRST_SPACE;

static __always_inline void fill_task(struct kprof_wire_task *e, struct task_struct *task,
				      __u16 kind, __u32 id, __u16 size)
{
	fill_header(&e->h, (__u64)task->tgid << 32 | (__u32)task->pid, 0, id, kind, size);
	e->child_pid = 0;
	e->child_tid = 0;
	e->child_ns_pid = 0;
	e->space = 0;
	BPF_CORE_READ_INTO(&e->comm, task, comm);
}

/* Reserves the record of a task. NULL: dropped, and counted. */
static __always_inline void *reserve_task(const __u64 bytes)
{
	struct kprof_hit hit;

	return count_hit(&hit, KPROF_WIRE_SOURCE_TASKS) ? reserve(&hit, bytes) : NULL;
}

/* The child has not run yet: what it does is recorded from its first instruction on. */
static __always_inline void forked(struct task_struct *parent, struct task_struct *child)
{
	__u32 *space = target_space(parent->tgid);
	__u32 child_pid = child->tgid, inherited;
	struct kprof_wire_task *e;

	/* of all processes, a child is recorded from its first sample on */
	if (stopped || all_processes || !space || *space == KPROF_WIRE_LEFT_OUT)
		return;
	if (shed & KPROF_WIRE_SHED_CHILDREN && child_pid != parent->tgid)
		return;
	inherited = *space;
	if (follow_children && child_pid != parent->tgid &&
	    bpf_map_update_elem(&targets, &child_pid, &inherited, BPF_ANY))
		__sync_fetch_and_add(&children_refused, 1);
	within_forked(parent->tgid, child_pid);
	e = reserve_task(sizeof(*e));
	if (!e)
		return;
	fill_task(e, parent, KPROF_WIRE_FORK,
		  parent->mm == child->mm ? KPROF_WIRE_FORK_SHARES_MEMORY : 0, sizeof(*e));
	e->child_pid = child_pid;
	e->child_tid = child->pid;
	e->child_ns_pid = innermost_number(child);
	e->space = inherited;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(kprof_fork, struct task_struct *parent, struct task_struct *child)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	forked(parent, child);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

static __always_inline void executed(struct task_struct *task, int old_tid)
{
	__u64 args = task->mm->arg_start, bytes = task->mm->arg_end - args;
	__u32 pid = task->tgid, space, *known;
	struct kprof_wire_exec *e;

	within_forget(task);
	known = stopped ? NULL : target_space(pid);
	if (!known)
		return;
	if (*known == KPROF_WIRE_LEFT_OUT) { /* it may be another case now */
		bpf_map_delete_elem(&targets, &pid);
		return;
	}
	space = __sync_fetch_and_add(&next_space, 1);
	bpf_map_update_elem(&targets, &pid, &space, BPF_EXIST);
	e = reserve_task(sizeof(*e));
	if (!e)
		return;
	fill_task(&e->t, task, KPROF_WIRE_EXEC, old_tid, sizeof(*e));
	e->t.space = space;
	if (bytes > sizeof(e->args))
		bytes = sizeof(e->args);
	/* user space may find the process gone already; the kernel has just written this memory */
	if (bpf_probe_read_user(e->args, bytes, (void *)args))
		bytes = 0;
	e->args_bytes = bytes;
	e->pad = 0;
	bpf_ringbuf_submit(e, at_once());
}

/* A target's process, or only this thread of it, is to be recorded no more. */
static __always_inline void tell_of_end(struct task_struct *task, bool of_process, __u32 status)
{
	struct kprof_wire_task *e = reserve_task(sizeof(*e));

	if (!e)
		return;
	fill_task(e, task, KPROF_WIRE_EXIT, of_process ? KPROF_WIRE_EXIT_PROCESS : 0, sizeof(*e));
	e->exit_status = status;
	bpf_ringbuf_submit(e, all_processes ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/*
 * The new program may have rights that who asked for the recording does not have: nothing of it is
 * recorded, from its first instruction on.
 */
static __always_inline void left_program(struct task_struct *task)
{
	__u32 pid = task->tgid;

	within_forget(task);
	if (stopped || !target_space(pid))
		return;
	bpf_map_delete_elem(&targets, &pid);
	tell_of_end(task, true, KPROF_WIRE_STILL_RUNS);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(kprof_exec, struct task_struct *task, int old_tid)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	if (until_exec)
		left_program(task);
	else
		executed(task, old_tid);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/* As its parent is told: of the group if that was ended, else of the last thread. */
static __always_inline __u32 exit_status(struct task_struct *task)
{
	if (task->signal->flags & SIGNAL_GROUP_EXIT)
		return task->signal->group_exit_code;
	return task->exit_code;
}

static __always_inline void exited(struct task_struct *task)
{
	bool last = task->signal->live.counter == 0;
	__u32 pid = task->tgid, *space = target_space(pid);
	bool recorded = space && *space != KPROF_WIRE_LEFT_OUT;

	/* of all processes, user space finds the threads that have ended itself */
	if (stopped || !space || (all_processes && !last))
		return;
	/* here, since another process may get the number before user space reads the record */
	if (last)
		bpf_map_delete_elem(&targets, &pid);
	if (recorded)
		tell_of_end(task, last, last ? exit_status(task) : 0);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(kprof_exit, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	exited(task);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/* ---- processes that take another name ---- */

/*
 * Filled here, emptied by user space now and then: a process that takes names without end has one
 * entry.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_WIRE_MAX_RENAMED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* process id */
	__type(value, __u8);
} renamed SEC(".maps");

/* User space chooses by names: who is left out by the old one may be recorded by the new one. */
static __always_inline void took_name(struct task_struct *task)
{
	__u32 pid = task->tgid;
	__u8 yes = 1;

	/* a new program is told of by executed() */
	if (stopped || task->pid != task->tgid || !target_space(pid) ||
	    (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve)))
		return;
	bpf_map_update_elem(&renamed, &pid, &yes, BPF_NOEXIST);
}

SEC("tp_btf/task_rename")
int BPF_PROG(kprof_rename, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	took_name(task);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/* ---- signals by which somebody asks ---- */

const volatile __u64 asking_signals = 0; /* bits 1 << number */
struct kprof_wire_asked asked;           /* read by user space */

/* Of a struct siginfo, by kill(2) and sigqueue(3); the kernel's own are below that address. */
#define SI_USER 0
#define SI_QUEUE -1
#define LAST_SPECIAL_SIGINFO 4095

/*
 * Is it one that a program has sent to the whole process on purpose? Not what the kernel sends (by
 * terminals, timers, sockets), nor what a program's threads send each other: a runtime may use any
 * signal for that.
 */
static __always_inline bool sent_by_kill(const struct kernel_siginfo *info, int of_process)
{
	int code;

	if (!of_process || (__u64)info <= LAST_SPECIAL_SIGINFO)
		return false;
	code = BPF_CORE_READ(info, si_code);
	return code == SI_USER || code == SI_QUEUE;
}

/* Whoever may send a process signals need not be its owner: a capability may have let them. */
static __always_inline void signal_sent(int signal, const struct kernel_siginfo *info,
					struct task_struct *task, int of_process)
{
	__u32 sender = bpf_get_current_uid_gid(), owner = BPF_CORE_READ(task, real_cred, uid.val);

	if (stopped || !is_target(task->tgid) || !sent_by_kill(info, of_process) ||
	    (sender && sender != owner))
		return;
	asked.last = (__u64)sender << KPROF_WIRE_ASKED_UID_SHIFT |
		     (__u64)signal << KPROF_WIRE_ASKED_PID_BITS | task->tgid;
	__sync_fetch_and_add(&asked.times, 1);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(kprof_signal, int signal, struct kernel_siginfo *info, struct task_struct *task,
	     int of_process)
{
	__u64 since_ns;

	if (signal < 0 || signal > 63 || !(asking_signals >> signal & 1))
		return 0;
	since_ns = cost_begin(KPROF_PROGRAM_TASK);
	signal_sent(signal, info, task, of_process);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/* ---- what a process maps ---- */

/* Filled by user space: files that have their probes in every process, or need none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kprof_wire_file);
	__type(value, struct kprof_wire_placed);
} placed_files SEC(".maps");

/* The kernel's iterator over the mappings of a task; kernels before 6.7 have none. */
struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 addr) __weak __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __weak __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __weak __ksym;

#define VM_EXEC 4

/* What user space has said of a file, by one of its names. NULL: nothing. */
static __always_inline struct kprof_wire_placed *placed_at(struct dentry *dentry)
{
	struct kprof_wire_file key = {0};
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);

	key.inode = BPF_CORE_READ(inode, i_ino);
	key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	bpf_probe_read_kernel_str(key.name, sizeof(key.name), BPF_CORE_READ(dentry, d_name.name));
	return bpf_map_lookup_elem(&placed_files, &key);
}

/*
 * The same of a mapping's file. An overlay maps the file below it, behind whose struct stands the
 * path in the overlay, as in /proc/PID/maps. No flag that is the same in all kernels tells that,
 * but what stands behind another file is no path of a file that user space has named.
 */
static __always_inline struct kprof_wire_placed *placed_file(struct file *file)
{
	struct kprof_wire_placed *placed = placed_at(BPF_CORE_READ(file, f_path.dentry));

	if (placed || !bpf_core_type_exists(struct backing_file))
		return placed;
	return placed_at(BPF_CORE_READ((struct backing_file *)file, user_path.dentry));
}

/* Have all files their probes whose code is among these mappings? */
static __always_inline bool all_placed_among(struct bpf_iter_task_vma *it)
{
	__u64 searched = ~0ull, called_for = 0;
	struct kprof_wire_placed *placed;
	struct vm_area_struct *vma;
	struct file *file;

	while ((vma = bpf_iter_task_vma_next(it))) {
		file = BPF_CORE_READ(vma, vm_file);
		if (!file || !(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
			continue;
		placed = placed_file(file);
		if (!placed)
			return false;
		searched &= placed->searched;
		called_for |= placed->calls_for;
	}
	return !(called_for & ~searched);
}

static long wait_a_turn(__u32 turn, void *ctx)
{
	return 0;
}

/*
 * Have all files whose code this process maps their probes? If in doubt, no. Whoever places a probe
 * locks the mappings for some ten microseconds.
 */
#define TRIES 16
#define TURNS_BETWEEN 8000 /* some ten microseconds */

static __always_inline bool all_placed(void)
{
	struct bpf_iter_task_vma it;
	bool all;

	if (!bpf_ksym_exists(bpf_iter_task_vma_new))
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (!bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), 0)) {
			all = all_placed_among(&it);
			bpf_iter_task_vma_destroy(&it);
			return all;
		}
		bpf_iter_task_vma_destroy(&it);
		bpf_loop(TURNS_BETWEEN, wait_a_turn, NULL, 0);
	}
	return false;
}

/* See join(). */
int kprof_tell_of_joining(void)
{
	return tell_of_process(all_placed() ? KPROF_WIRE_SEEN_PLACED : 0);
}

/*
 * The dynamic linker calls an empty function before its list of libraries changes, and after. No
 * code of a new library has run by then, so that a process that ends before user space has looked
 * at it has lost no event if the files that it maps have their probes.
 */
static __always_inline void maps_changed(struct pt_regs *ctx)
{
	struct kprof_wire_hdr *e;
	struct kprof_hit hit;
	bool placed;

	/* every process has a dynamic linker: these hits are not counted as foreign */
	if (!is_target(bpf_get_current_pid_tgid() >> 32) || !take_hit_of_any(ctx, &hit))
		return;
	placed = all_placed();
	e = reserve(&hit, sizeof(*e));
	if (!e)
		return;
	fill_hit_header(e, &hit, KPROF_WIRE_MAPS, sizeof(*e));
	e->id = placed ? KPROF_WIRE_MAPS_PLACED : 0;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

SEC("uprobe.multi")
int kprof_maps(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_MAPS);

	maps_changed(ctx);
	cost_end(KPROF_PROGRAM_MAPS, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
