/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One thread as bpf/dump.bpf.c reports it to `kprof dump`. */
#ifndef KPROF_TASK_H
#define KPROF_TASK_H

#include "kprof/python.h"
#include "kprof/wire.h"

#define KPROF_TASK_KERNEL_FRAMES 32
/* Bytes copied of the stack of a running thread, at most; a multiple of the page size. */
#define KPROF_TASK_STACK_BYTES (256u << 10)
#define KPROF_TASK_COPY_BYTES 4096

enum kprof_task_flags {
	/* the thread runs: its registers are those of an earlier entry into the kernel */
	KPROF_TASK_ON_CPU = 1 << 0,
	/* a thread of the kernel (such as a worker of io_uring): it has no user stack */
	KPROF_TASK_KERNEL = 1 << 1,
	KPROF_TASK_COMPAT = 1 << 2, /* its registers are those of 32-bit code */
	/* caught running in the kernel, on behalf of the thread */
	KPROF_TASK_IN_KERNEL = 1 << 3,
};

struct kprof_task {
	kprof_u64 regs[16]; /* registers in user space, by DWARF's numbers */
	kprof_u64 ip;
	/* orig_ax: number of the system call; a number that no call has: none */
	kprof_u64 call;
	kprof_u64 fs_base;  /* pthread_self() */
	kprof_u64 switches; /* how often the thread has been switched off a CPU */
	/* CPU time that the thread has used, in ns, as last updated by the scheduler */
	kprof_u64 cpu_ns;
	kprof_u32 tgid, tid;
	kprof_u32 state; /* task_struct.__state */
	kprof_u32 flags; /* enum kprof_task_flags */
	kprof_u32 nr_kernel;
	kprof_u32 pad;
	kprof_u64 kernel[KPROF_TASK_KERNEL_FRAMES]; /* innermost first */
};

/* A thread that a timer's tick found running. */
struct kprof_task_running {
	struct kprof_task task;
	kprof_u32 stack_bytes; /* bytes copied to stack[], from the address in regs[7] (rsp) on */
	kprof_u32 has_python;
	struct kprof_python_walk python;
	kprof_u8 stack[KPROF_TASK_STACK_BYTES];
};

_Static_assert(sizeof(struct kprof_task) == 16 * 8 + 5 * 8 + 6 * 4 + KPROF_TASK_KERNEL_FRAMES * 8,
	       "task");

#endif
