// SPDX-License-Identifier: GPL-2.0-only
/*
 * `kprof dump`: the registers of threads that are not stopped. The registers of a thread that is
 * off the CPU do not change; an iterator reports them (BPF_TRACE_ITER, bpf_task_pt_regs(): kernel
 * 5.15). A thread that runs is caught by the next tick of a timer on its CPU, with a copy of the
 * top of its stack. This is a BPF object of its own, so that recordings do not wait until it is
 * loaded.
 */
#include "kernel.h"
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "kprof/task.h"

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address) ? -1 : 0;
}
#include "python.h"

#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x00000010
#define USER_CS 0x33 /* __USER_CS, arch/x86/include/asm/segment.h: 64-bit code */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __relocated;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __relocated;

/* Set by user space: the process whose threads are wanted. */
__u32 wanted_tgid;

/* Set by user space: the interpreter of that process; runtime 0: it has none. */
struct kprof_python interpreter;

/* Buffer for the thread that is reported next. One is enough, since one iterator runs at a time. */
struct kprof_task iterated;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* user space sets the real size, by the number of CPUs */
} caught SEC(".maps");

/* Ids of the threads that are to be caught running. A thread is removed once it was caught. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} runners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kprof_python_walk);
} walks SEC(".maps");

static __always_inline void fill_regs(struct kprof_task *t, const struct pt_regs *regs)
{
	dwarf_registers(t->regs, regs);
	t->ip = regs->rip;
	t->call = regs->orig_rax;
	if ((__u16)regs->cs != USER_CS)
		t->flags |= KPROF_TASK_COMPAT;
}

static __always_inline void fill_task(struct kprof_task *t, const struct task_struct *task)
{
	t->tid = BPF_CORE_READ(task, pid);
	t->tgid = BPF_CORE_READ(task, tgid);
	t->state = BPF_CORE_READ(task, __state);
	t->flags = BPF_CORE_READ(task, on_cpu) ? KPROF_TASK_ON_CPU : 0;
	if (BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		t->flags |= KPROF_TASK_KERNEL;
	t->fs_base = BPF_CORE_READ(task, thread.fsbase);
	t->switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	t->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	t->nr_kernel = 0;
}

SEC("iter/task")
int kprof_dump_tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct kprof_task *t = &iterated;
	struct pt_regs *regs;
	long bytes;

	if (!task || task->tgid != (int)wanted_tgid)
		return 0;
	fill_task(t, task);
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (regs)
		fill_regs(t, regs);
	/* The kernel cannot walk the kernel stack of a thread that runs. */
	if (!(t->flags & KPROF_TASK_ON_CPU)) {
		bytes = bpf_get_task_stack(task, t->kernel, sizeof(t->kernel), 0);
		if (bytes > 0)
			t->nr_kernel = (__u32)bytes / sizeof(t->kernel[0]);
	}
	bpf_seq_write(seq, t, sizeof(*t));
	return 0;
}

/* Copies the stack page by page, up to the first page that cannot be read. */
static __always_inline void copy_stack(struct kprof_task_running *r)
{
	__u64 from = r->task.regs[7];
	__u32 done = 0, first = KPROF_TASK_COPY_BYTES - (from & (KPROF_TASK_COPY_BYTES - 1));

	/* First to the end of the page, so that each further copy lies in one page. */
	if (first > KPROF_TASK_COPY_BYTES || bpf_probe_read_user(r->stack, first, (void *)from))
		first = 0;
	for (int i = 0; first && i < KPROF_TASK_STACK_BYTES / KPROF_TASK_COPY_BYTES - 1; i++) {
		__u32 at = first + (__u32)i * KPROF_TASK_COPY_BYTES;

		if (at > KPROF_TASK_STACK_BYTES - KPROF_TASK_COPY_BYTES ||
		    bpf_probe_read_user(r->stack + at, KPROF_TASK_COPY_BYTES, (void *)(from + at)))
			break;
		done = at + KPROF_TASK_COPY_BYTES;
	}
	r->stack_bytes = done ?: first;
}

static long step(__u32 i, struct kprof_python_walk **w)
{
	return python_step(&interpreter, *w);
}

static __always_inline void walk_python(struct kprof_task_running *r)
{
	__u32 zero = 0;
	struct kprof_python_walk *w = bpf_map_lookup_elem(&walks, &zero);

	r->has_python = 0;
	if (!interpreter.runtime || !w)
		return;
	w->thread = r->task.fs_base;
	w->hint = w->futex = 0;
	python_begin(w);
	bpf_loop(KPROF_PYTHON_MAX_STEPS, step, &w, 0);
	r->has_python = !bpf_probe_read_kernel(&r->python, sizeof(r->python), w);
}

SEC("perf_event")
int kprof_dump_running(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (const struct pt_regs *)&ctx->regs;
	struct kprof_task_running *r;
	__u32 tid = (__u32)task->pid;
	long bytes;

	/* Only the first tick that finds the thread reports it. */
	if (bpf_map_delete_elem(&runners, &tid))
		return 0;
	r = bpf_ringbuf_reserve(&caught, sizeof(*r), 0);
	if (!r)
		return 0;
	fill_task(&r->task, task);
	if ((ctx->regs.cs & 3) == 3) {
		r->task.flags &= ~KPROF_TASK_IN_KERNEL;
		fill_regs(&r->task, regs);
		r->task.call = -1;
	} else {
		r->task.flags |= KPROF_TASK_IN_KERNEL;
		fill_regs(&r->task, (struct pt_regs *)bpf_task_pt_regs(task));
		bytes = bpf_get_stack(ctx, r->task.kernel, sizeof(r->task.kernel), 0);
		if (bytes > 0)
			r->task.nr_kernel = (__u32)bytes / sizeof(r->task.kernel[0]);
	}
	copy_stack(r);
	walk_python(r);
	bpf_ringbuf_submit(r, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
