/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of threads that are not stopped: the loader of bpf/dump.bpf.c. */
#ifndef KPROF_CAPTURE_DUMP_TASKS_H
#define KPROF_CAPTURE_DUMP_TASKS_H

#include <stddef.h>
#include <sys/types.h>

#include "kprof/python.h"
#include "kprof/task.h"

struct dump_tasks;

/* Fails, with words of class MACHINE, where the kernel or the user's rights don't allow it. */
int dump_tasks__new(struct dump_tasks **out);
void dump_tasks__free(struct dump_tasks *d);
/* What comes is of this process from now on; python: its interpreter, NULL: it has none. */
int dump_tasks__select(struct dump_tasks *d, pid_t pid, const struct kprof_python *python);
/*
 * The process's threads as they are now. *tasks belongs to d until the next call. Registers of one
 * that runs (KPROF_TASK_ON_CPU) are old.
 */
int dump_tasks__read(struct dump_tasks *d, const struct kprof_task **tasks, size_t *nr);

/*
 * From now on this thread is caught when a tick finds it on a CPU: the first of these calls starts
 * a timer on each CPU. Does nothing if it is waited for already.
 */
int dump_tasks__chase(struct dump_tasks *d, pid_t tid);
/* No thread any more; the timers end. */
void dump_tasks__give_up(struct dump_tasks *d);
/* Calls fn for those that were caught; waits for the first one. How many; -errno. */
int dump_tasks__caught(struct dump_tasks *d, int timeout_ms,
		       void (*fn)(void *ctx, const struct kprof_task_running *r), void *ctx);

#endif
