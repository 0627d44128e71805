/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of this room share: `kprof top` without its screen.
 *
 *   sched.c    how long a thread ran and waited
 *   top.c      all processes and their numbers, from /proc
 *   closely.c  what runs in a process, looked up once
 *   threads.c  the threads of one process
 *   gpu.c      shares of GPUs, from NVIDIA's library
 *   watch.c    a recording that is read while it goes on
 */
#ifndef KPROF_CAPTURE_LIVE_IMPL_H
#define KPROF_CAPTURE_LIVE_IMPL_H

#include "capture/process/process.h"
#include "kprof/top.h"

#define LIVE_NAMES_BYTES 128

/* What /proc/…/schedstat says: time on a CPU, and time in which only a CPU was missing. */
struct sched_times {
	bool known;
	uint64_t run_ns, wait_ns;
};

struct top_process {
	struct kprof_top_process shown; /* its texts are those below */
	char comm[PROC_COMM_BYTES];
	char *cmdline; /* NULL: not known */
	char frameworks[LIVE_NAMES_BYTES], runtimes[LIVE_NAMES_BYTES];
	char python[DISCOVER_VERSION_BYTES];
	uint64_t cpu_ticks, read_ns; /* at the look before */
	struct sched_times sched;
	uint64_t due_ns,
		wait_ns; /* when it is looked at closely, and how long until the next time */
	bool unreadable;
};

/* ---- sched.c ---- */

/* Of the first thread of a process, or of another if tid is not 0. */
struct sched_times top_sched(pid_t pid, pid_t tid);
/* The shares since the times before; below 0: not known. */
void top_shares(const struct sched_times *before, const struct sched_times *now,
		uint64_t elapsed_ns, double *runnable, double *blocked);

/* ---- closely.c ---- */

/* Looks at a process: its user, its arguments, its libraries. */
void top_look_closely(struct top_process *p, uint64_t now_ns);

/* ---- threads.c ---- */

struct top_threads;
void top_threads__free(struct top_threads *threads);

/* ---- gpu.c ---- */

struct top_gpu;
/* NULL: there is no NVIDIA GPU, or no library for it. */
struct top_gpu *top_gpu__new(void);
void top_gpu__look(struct top_gpu *g);
/* The share of the time since the look before in which a GPU was busy for the process. */
double top_gpu__share(const struct top_gpu *g, pid_t pid);
void top_gpu__free(struct top_gpu *g); /* NULL is fine */

struct kprof_top {
	struct kprof_top_opts opts;
	struct kprof_top_info info;
	struct top_process **processes; /* in order of PID */
	size_t nr;
	uint64_t looked_ns, own_ns; /* at the look before: when, and own CPU time */
	uint64_t boot_ns;           /* CLOCK_BOOTTIME at this look */
	struct top_gpu *gpu;
	struct top_threads *threads; /* NULL: none were asked for yet */
};

#endif
