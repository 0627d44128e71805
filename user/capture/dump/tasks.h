/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of threads that are not stopped: the loader of bpf/dump.bpf.c. */
#ifndef KPROF_CAPTURE_DUMP_TASKS_H
#define KPROF_CAPTURE_DUMP_TASKS_H

#include <stddef.h>
#include <sys/types.h>

#include "kprof/python.h"
#include "kprof/task.h"

struct dump_tasks;

/* Fails with an error of class MACHINE where the kernel or the user's rights do not allow it. */
int dump_tasks__new(struct dump_tasks **out);
void dump_tasks__free(struct dump_tasks *d);
/*
 * Selects the process that the following calls are about. To be called once. python: its
 * interpreter; .runtime 0: it has none.
 */
int dump_tasks__select(struct dump_tasks *d, pid_t pid, const struct kprof_python *python);
/*
 * Reads the threads of the process as they are now. *tasks belongs to d, and is valid until the
 * next call. The registers of a thread that runs (KPROF_TASK_ON_CPU) are old.
 */
int dump_tasks__read(struct dump_tasks *d, const struct kprof_task **tasks, size_t *nr);

/*
 * From now on this thread is caught when a timer's tick finds it on a CPU. The first call starts a
 * timer on each CPU. Does nothing if the thread is being waited for already.
 */
void dump_tasks__chase(struct dump_tasks *d, pid_t tid);
/* Stops waiting for threads, and ends the timers. */
void dump_tasks__give_up(struct dump_tasks *d);
/*
 * Calls fn for each thread that was caught; waits for the first one at most timeout_ms.
 */
void dump_tasks__caught(struct dump_tasks *d, int timeout_ms,
			void (*fn)(void *ctx, const struct kprof_task_running *r), void *ctx);

#endif
