/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that kprof's BPF programs read, with just the fields they need. CO-RE
 * relocates each access to the running kernel's layout, so that no vmlinux.h has to be generated
 * (which needs a kernel with BTF on the machine that builds).
 */
#ifndef KPROF_BPF_KERNEL_H
#define KPROF_BPF_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <stdbool.h>
#include <stddef.h>

#define __relocated __attribute__((preserve_access_index))

typedef struct {
	int counter;
} __relocated atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
} __relocated;

struct mm_struct;

struct thread_struct {
	unsigned long fsbase; /* x86-64: the thread's control block, what pthread_self() returns */
} __relocated;

struct task_struct {
	struct mm_struct *mm;
	struct thread_struct thread;
	int pid;
	int tgid;
	char comm[16];
	struct signal_struct *signal;
} __relocated;

#endif
