/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One thread as `kprof dump` sees it, handed over by bpf/dump.bpf.c. */
#ifndef KPROF_TASK_H
#define KPROF_TASK_H

#include "kprof/python.h"
#include "kprof/wire.h"

#define KPROF_TASK_KERNEL_FRAMES 32
#define KPROF_TASK_STACK_BYTES \
	(256u << 10) /* of a thread that is caught running; a multiple of pages */
#define KPROF_TASK_COPY_BYTES 4096

enum kprof_task_flags {
	KPROF_TASK_ON_CPU =
		1 << 0, /* it runs: registers are those of an earlier entry into the kernel */
	KPROF_TASK_KERNEL =
		1 << 1, /* of the kernel's own (io_uring's workers): it has no user stack */
	KPROF_TASK_COMPAT = 1 << 2,    /* its registers are those of 32-bit code */
	KPROF_TASK_IN_KERNEL = 1 << 3, /* caught running: in the kernel, for the thread */
};

struct kprof_task {
	kprof_u64 regs[16]; /* the user's, by DWARF's numbers */
	kprof_u64 ip;
	kprof_u64 call;     /* orig_ax: the system call's number; beyond: none */
	kprof_u64 fs_base;  /* pthread_self() */
	kprof_u64 switches; /* how often it has been switched off a CPU */
	kprof_u64 cpu_ns;   /* run time so far, as the scheduler last updated it */
	kprof_u32 tgid, tid;
	kprof_u32 state; /* task_struct.__state */
	kprof_u32 flags; /* enum kprof_task_flags */
	kprof_u32 nr_kernel;
	kprof_u32 pad;
	kprof_u64 kernel[KPROF_TASK_KERNEL_FRAMES]; /* innermost first */
};

/* Caught running, by a timer's tick. */
struct kprof_task_running {
	struct kprof_task task;
	kprof_u32 stack_bytes; /* copied, from regs[7] on */
	kprof_u32 has_python;
	struct kprof_python_walk python;
	kprof_u8 stack[KPROF_TASK_STACK_BYTES];
};

_Static_assert(sizeof(struct kprof_task) == 16 * 8 + 5 * 8 + 6 * 4 + KPROF_TASK_KERNEL_FRAMES * 8,
	       "task");

#endif
