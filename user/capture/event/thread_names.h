/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names that Python gives its threads. Read from the process's memory when a new thread is met,
 * every few seconds (the program may rename threads; less often while none changes), and at the
 * end. No code runs in the target.
 */
#ifndef KPROF_CAPTURE_THREAD_NAMES_H
#define KPROF_CAPTURE_THREAD_NAMES_H

#include "capture/probe/probe.h"

struct kprof_python;
struct ration;
struct thread_names;

struct thread_names_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct probe_set *probes;
	/*
	 * The layout of the process's interpreter in memory, from a part that has found it already.
	 * *known: true when that part looks at this process; its answer then holds (NULL: not
	 * found, or not found yet).
	 */
	const struct kprof_python *(*layout)(void *ctx, const struct target *t, bool *known);
	struct ration *reading; /* names are read by it, but for those at the end */
	void *ctx;
};

int thread_names__new(const struct thread_names_opts *opts, struct thread_names **out);
void thread_names__free(struct thread_names *n);
/* A new thread was met: its name should be read soon. */
void thread_names__want(struct thread_names *n, struct target *t, uint64_t now_ns);
int thread_names__tend(struct thread_names *n, uint64_t now_ns);
/* The thread executes another program (exec), in which Python, if it runs there, names it anew. */
int thread_names__drop(struct thread_names *n, struct thread *th);
/* Reads the names of all threads that live once more, at the end of the recording. */
int thread_names__last(struct thread_names *n);
/* The layout of the process's interpreter in memory; NULL: not found (yet), or none. */
const struct kprof_python *thread_names__layout(struct thread_names *n, struct target *t);
void thread_names__forget(struct thread_names *n, struct target *t);

#endif
