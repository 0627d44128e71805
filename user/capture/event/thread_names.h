/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Python calls its threads: read in the process's memory when a thread is first met, now and
 * then (the program may have renamed one), and at the end. Nothing runs in the target.
 */
#ifndef KPROF_CAPTURE_THREAD_NAMES_H
#define KPROF_CAPTURE_THREAD_NAMES_H

#include "capture/probe/probe.h"

struct kprof_python;
struct thread_names;

struct thread_names_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct probe_set *probes;
	/*
	 * Where the process's interpreter keeps what, from a part that has found it already.
	 * *known: that part looks at this process, and its answer (NULL: not found, or not yet)
	 * holds.
	 */
	const struct kprof_python *(*layout)(void *ctx, const struct target *t, bool *known);
	void *ctx;
};

int thread_names__new(const struct thread_names_opts *opts, struct thread_names **out);
void thread_names__free(struct thread_names *n);
/* A thread was met whose name is not known. */
void thread_names__want(struct thread_names *n, struct target *t, uint64_t now_ns);
int thread_names__tend(struct thread_names *n, uint64_t now_ns);
/*
 * The thread goes on in another program (exec), where Python, if it is there, calls it something
 * else.
 */
int thread_names__drop(struct thread_names *n, struct thread *th);
/* Once more, of all that live. */
int thread_names__last(struct thread_names *n);
void thread_names__forget(struct thread_names *n, struct target *t);

#endif
