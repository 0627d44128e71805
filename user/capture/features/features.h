/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this kernel and this user's rights allow, found by trying, never by a version number. Each
 * feature is tried once per process, and the result kept.
 */
#ifndef KPROF_CAPTURE_FEATURES_H
#define KPROF_CAPTURE_FEATURES_H

#include <stdbool.h>

/* What a session must know before it starts. Finding it takes about a millisecond. */
struct features {
	/* Effective capabilities. CAP_SYS_ADMIN implies the first two. */
	bool cap_bpf, cap_perfmon, cap_sys_ptrace;
	bool btf;           /* /sys/kernel/btf/vmlinux can be read */
	bool uprobe_multi;  /* many functions through one link (6.6+) */
	bool single_uprobe; /* the kernel has the uprobe PMU */
	bool map_files;     /* links in /proc/PID/map_files open (deleted files, memfds) */
	/* kprof is in the initial PID namespace, whose PIDs the kernel's tracing shows */
	bool initial_pidns;
	/*
	 * errno of what was refused; 0: allowed. err_multi and err_tasks (a raw tracepoint, by
	 * which fork, exec and exit can be seen) are not tried where no program loads (err_prog).
	 */
	int err_ring, err_prog, err_multi, err_tasks;
	int perf_event_paranoid; /* sysctl; -2: unknown */
};

/* Never NULL: trying does not fail, it finds features missing. */
const struct features *features_get(void);

/*
 * Places a probe on a function of kprof itself and removes it: takes some 200 ms, most of which the
 * kernel waits at the removal. Returns 0, or the negative errno of the refusal.
 */
int features_try_uprobe_multi(void);
int features_try_single_uprobe(void);

/*
 * Returns 0 when commands that need BPF programs, and uprobes where that is said, can work. Else
 * -EPERM (rights) or -ENOTSUP (kernel), with an error of class MACHINE that names what is missing.
 */
int features_require(bool uprobes);

/* The number in a file of procfs or sysfs; `otherwise` if the file cannot be read. */
int features_read_int(const char *path, int otherwise);

/*
 * Passes libbpf's messages to kprof's log as debug messages: they are of use only when something
 * failed.
 */
void features_log_libbpf(void);

#endif
