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
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include <stddef.h>

#define __relocated __attribute__((preserve_access_index))

typedef struct {
	int counter;
} __relocated atomic_t;

struct signal_struct {
	atomic_t live;                        /* threads that have not begun to exit */
	unsigned long long sum_sched_runtime; /* ns: CPU time of the threads that are gone */
	unsigned int flags;
	int group_exit_code; /* with SIGNAL_GROUP_EXIT: of all threads, as from wait(2) */
} __relocated;
/* A bit of its flags; the same in all kernels since 2.6 (include/linux/sched/signal.h). */
#define SIGNAL_GROUP_EXIT 0x00000004

/* What a signal says of itself. */
struct kernel_siginfo {
	int si_code;
} __relocated;

/* the page of a process that the kernel's probes execute code in */
struct xol_area {
	unsigned long vaddr;
} __relocated;

struct uprobes_state {
	struct xol_area *xol_area;
} __relocated;

struct super_block {
	__u32 s_dev;
} __relocated;

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
} __relocated;

struct qstr {
	const unsigned char *name;
} __relocated;

struct dentry {
	struct qstr d_name;
	struct inode *d_inode;
} __relocated;

struct path {
	struct dentry *dentry;
} __relocated;

struct file {
	struct path f_path;
} __relocated;

/* A file below one of an overlay: begins with its struct file. */
struct backing_file {
	struct path user_path;
} __relocated;

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
} __relocated;

struct mm_struct {
	unsigned long arg_start, arg_end; /* where the program's arguments are */
	unsigned long start_stack;        /* where its first thread's stack begins, upwards */
	struct uprobes_state uprobes_state;
} __relocated;

/* A number in one PID namespace. */
struct upid {
	int nr;
} __relocated;

struct pid {
	unsigned int level; /* of the innermost namespace, from 0 */
	struct upid numbers[1];
} __relocated;

struct thread_struct {
	unsigned long fsbase; /* x86-64: the thread's control block, what pthread_self() returns */
} __relocated;

typedef struct {
	__u32 val;
} __relocated kuid_t;

struct cred {
	kuid_t uid;
	kuid_t euid;
} __relocated;

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 nr_migrations;
} __relocated;

struct task_struct {
	struct mm_struct *mm;
	struct pid *thread_pid;
	struct thread_struct thread;
	int pid;
	int tgid;
	struct task_struct *real_parent, *group_leader;
	const struct cred *real_cred;
	const struct cred *cred;
	__u64 start_time;     /* ns, CLOCK_MONOTONIC */
	__u64 start_boottime; /* ns, CLOCK_BOOTTIME */
	char comm[16];
	struct signal_struct *signal;
	unsigned int __state;
	unsigned int flags;
	int exit_code; /* as from wait(2), once it ends */
	int on_cpu;
	unsigned long nvcsw, nivcsw;    /* switches that it asked for, and others */
	unsigned long min_flt, maj_flt; /* page faults without and with a disk */
	unsigned in_iowait : 1;
	unsigned in_execve : 1;
	struct sched_entity se;
} __relocated;

/* Bits of task_struct.flags; they are the same in all kernels since 2.6. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/* The registers by DWARF's numbers (System V ABI, figure 3.36). */
static __always_inline void dwarf_registers(__u64 to[16], const struct pt_regs *regs)
{
	to[0] = regs->rax;
	to[1] = regs->rdx;
	to[2] = regs->rcx;
	to[3] = regs->rbx;
	to[4] = regs->rsi;
	to[5] = regs->rdi;
	to[6] = regs->rbp;
	to[7] = regs->rsp;
	to[8] = regs->r8;
	to[9] = regs->r9;
	to[10] = regs->r10;
	to[11] = regs->r11;
	to[12] = regs->r12;
	to[13] = regs->r13;
	to[14] = regs->r14;
	to[15] = regs->r15;
}

#endif
