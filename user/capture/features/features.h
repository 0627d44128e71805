/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this kernel and this user's rights allow, found by trying, never by a version number.
 * Each question is asked once per process and the answer kept.
 */
#ifndef KPROF_CAPTURE_FEATURES_H
#define KPROF_CAPTURE_FEATURES_H

#include <stdbool.h>

/* What a session wants to know before it starts: answered in about a millisecond. */
struct features {
	/* Effective capabilities. CAP_SYS_ADMIN stands in for the others but CAP_SYS_PTRACE. */
	bool cap_bpf, cap_perfmon, cap_sys_ptrace, cap_sys_admin;
	bool btf;           /* /sys/kernel/btf/vmlinux is there */
	bool ring_buffer;   /* a BPF ring buffer can be made */
	bool prog_load;     /* a uprobe program loads */
	bool uprobe_multi;  /* many functions through one link (6.6+) */
	bool single_uprobe; /* the uprobe PMU is there */
	bool task_tracing;  /* a raw tracepoint opens: fork, exec and exit can be seen */
	bool map_files;     /* links in /proc/PID/map_files open (deleted files, memfds) */
	bool initial_pidns; /* our pids are the ones that the kernel's tracing shows */
	/* errno of what was refused; 0: allowed, or not tried for lack of what comes first. */
	int err_ring, err_prog, err_multi, err_single, err_tasks;
	int perf_event_paranoid; /* sysctl; -2: unknown */
};

/* Never NULL: probing does not fail, it finds things missing. */
const struct features *features_get(void);

/*
 * Probes for real on a function of kprof itself: some 200 ms, most of it the kernel's own waiting
 * at removal. 0 or the negative errno of the refusal.
 */
int features_try_uprobe_multi(void);
int features_try_single_uprobe(void);

/*
 * 0 when attach can work; else -EPERM (rights) or -ENOTSUP (kernel) with an error of class
 * MACHINE that names what is missing.
 */
int features_require_attach(void);
/* The same for what needs BPF programs, but no uprobes. */
int features_require_tracing(void);

#endif
