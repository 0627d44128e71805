/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all processes do now, again and again: kprof top. A part of the library beside kprof.h,
 * whose rules hold here, too.
 *
 *   top     all processes, by /proc and NVIDIA's library; costs next to nothing
 *   watch   some processes, recorded from now on so that the recording can be read meanwhile
 */
#ifndef KPROF_TOP_H
#define KPROF_TOP_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all processes ---- */

struct kprof_top_process {
	pid_t pid;
	uint64_t start_ticks; /* since boot, in clock ticks: tells it from another of that PID */
	/* What a closer look finds, which comes later than the numbers: known says whether. */
	bool known;
	uid_t uid;
	const char *cmdline;    /* its arguments, joined by blanks, control characters escaped */
	const char *frameworks; /* "pytorch 2.15.0"; "" none found */
	const char *runtimes, *python;
	const char *comm; /* the kernel's short name, as the process set it: any bytes */
	char state;       /* as in proc(5): 'R', 'S', 'D' … */
	uint32_t nr_threads;
	uint64_t rss_bytes;
	/* Since the look before; of a process that is new, since its start. */
	double cpu; /* CPUs that it used, 1.0: one of them all the time */
	/* Shares of the time in which its first thread waited for a CPU, or for anything else. */
	double runnable, blocked; /* below 0: not known */
	double gpu;      /* share of the time that a GPU was busy for it; below 0: unknown */
	uint64_t cpu_ns; /* CPU time since its start */
};

struct kprof_top_info {
	uint64_t interval_ns; /* between the last two looks; 0: there was only one */
	uint64_t look_ns;     /* how long the last look took */
	uint64_t time_real_ns;
	uint32_t nr_cpus;
	double cpu;           /* CPUs that all processes used */
	double own_cpu;       /* of this process */
	bool has_gpu;         /* NVIDIA's library answers, so that shares of GPUs are known */
	size_t nr_unreadable; /* processes that may not be looked at closely */
};

struct kprof_top_opts {
	size_t sz;
	/*
	 * How long one call of look() may look closely at processes that are new; the others wait.
	 * 0: until all are known.
	 */
	uint64_t closely_ns;
};

struct kprof_top;
int kprof_top_new(const struct kprof_top_opts *opts, struct kprof_top **out);
/* Looks at all processes but the kernel's. Shares are those of the time between two looks. */
int kprof_top_look(struct kprof_top *t);
const struct kprof_top_info *kprof_top_info(const struct kprof_top *t);
size_t kprof_top_nr(const struct kprof_top *t);
/* In order of PID. Valid until the next look. NULL: past the end. */
const struct kprof_top_process *kprof_top_process(const struct kprof_top *t, size_t i);
/*
 * Looks closely at one of them now, whatever is known of it. NULL: it was not there at the last
 * look. Valid until the next.
 */
const struct kprof_top_process *kprof_top_closely(struct kprof_top *t, pid_t pid,
						  uint64_t start_ticks);

/* Whether it still is the process that began then. */
bool kprof_top_alive(pid_t pid, uint64_t start_ticks);

struct kprof_top_thread {
	pid_t tid;
	const char *name; /* as the thread set it: any bytes */
	char state;
	/* Since the call before; below 0: not known, as of a thread that is new. */
	double cpu, runnable, blocked;
};
#define KPROF_TOP_MAX_THREADS 4096 /* those beyond are left out */
/*
 * Calls fn for each thread of one process, in order of TID. -ESRCH: the process has ended. fn
 * returns non-zero to stop; that value is returned.
 */
int kprof_top_threads(struct kprof_top *t, pid_t pid, uint64_t start_ticks,
		      int (*fn)(void *ctx, const struct kprof_top_thread *thread), void *ctx);
void kprof_top_free(struct kprof_top *t); /* NULL is fine */

/* ---- some processes, recorded ---- */

enum kprof_watch_what {
	KPROF_WATCH_SAMPLES,   /* stacks; nothing is placed in the process */
	KPROF_WATCH_OPERATORS, /* the same, and operators: places probes */
	KPROF_WATCH_STEPS,     /* only annotations: places a few probes */
};

struct kprof_watch_opts {
	size_t sz;
	enum kprof_watch_what what;
	uint32_t sample_hz;
	const pid_t *pids; /* copied */
	const uint64_t *start_ticks;
	size_t nr;
};

struct kprof_watch;
/*
 * Begins to record the processes, of those that have ended meanwhile none, to a file that loses its
 * name before anything is recorded. So nothing of that is left, however this process ends.
 */
int kprof_watch_new(const struct kprof_watch_opts *opts, struct kprof_watch **out);
/* Records another process, too, from now on. One that cannot be is left out. */
int kprof_watch_add(struct kprof_watch *w, pid_t pid, uint64_t start_ticks);
/* To be called repeatedly, as kprof_session_poll(). 1: all of the processes have ended. */
int kprof_watch_poll(struct kprof_watch *w, int timeout_ms);
/*
 * Makes readable what was recorded so far; *path is for kprof_capture_open(), in this process,
 * until the next poll. Once the file is large or old, the recording begins anew; what was recorded
 * before can then not be read any more.
 */
int kprof_watch_read(struct kprof_watch *w, const char **path);
void kprof_watch_free(struct kprof_watch *w); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif /* KPROF_TOP_H */
