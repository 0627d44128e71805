// SPDX-License-Identifier: BSD-2-Clause
/* The threads of the one process that is looked at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/live/impl.h"
#include "util/error.h"
#include "util/util.h"

struct top_thread {
	pid_t tid;
	uint64_t read_ns;
	struct sched_times sched;
};

struct top_threads {
	pid_t pid;
	uint64_t start_ticks;
	size_t nr;
	struct top_thread all[KPROF_TOP_MAX_THREADS]; /* in order of TID */
};

void top_threads__free(struct top_threads *threads)
{
	free(threads);
}

/* The thread at the call before; NULL: it was not there. */
static const struct top_thread *find(const struct top_threads *before, size_t *at, pid_t tid)
{
	while (*at < before->nr && before->all[*at].tid < tid)
		++*at;
	return *at < before->nr && before->all[*at].tid == tid ? &before->all[*at] : NULL;
}

static void set_shares(const struct top_thread *before, const struct top_thread *now,
		       struct kprof_top_thread *shown)
{
	shown->cpu = shown->runnable = shown->blocked = -1;
	if (!before || now->sched.run_ns < before->sched.run_ns) /* or another thread of that TID */
		return;
	top_shares(&before->sched, &now->sched, now->read_ns - before->read_ns, &shown->runnable,
		   &shown->blocked);
	if (shown->runnable >= 0)
		shown->cpu = (double)(now->sched.run_ns - before->sched.run_ns) /
			     (double)(now->read_ns - before->read_ns);
	if (shown->cpu > 1)
		shown->cpu = 1;
}

static int look_at(struct top_threads *now, const struct top_threads *before, pid_t pid,
		   const pid_t *tids, size_t nr,
		   int (*fn)(void *ctx, const struct kprof_top_thread *thread), void *ctx)
{
	char comm[PROC_COMM_BYTES];
	int stop = 0;
	size_t at = 0;

	for (size_t i = 0; i < nr && !stop; i++) {
		struct kprof_top_thread shown = {.tid = tids[i], .name = comm};
		struct top_thread *th = &now->all[now->nr];

		if (proc_thread_comm(pid, tids[i], comm))
			continue; /* it has ended */
		*th = (struct top_thread){.tid = tids[i]};
		th->sched = top_sched(pid, tids[i]);
		th->read_ns = clock_mono_ns();
		shown.state = proc_thread_state(pid, tids[i]);
		set_shares(find(before, &at, tids[i]), th, &shown);
		now->nr++;
		stop = fn(ctx, &shown);
	}
	return stop;
}

int kprof_top_threads(struct kprof_top *t, pid_t pid, uint64_t start_ticks,
		      int (*fn)(void *ctx, const struct kprof_top_thread *thread), void *ctx)
{
	static const struct top_threads none;
	const struct top_threads *before = &none;
	struct top_threads *now;
	pid_t *tids;
	size_t nr;
	int err;

	error_clear();
	if (!proc_alive(pid, start_ticks))
		return error_set(-ESRCH, NULL, "process %d has ended", (int)pid);
	if (t->threads && t->threads->pid == pid && t->threads->start_ticks == start_ticks)
		before = t->threads;
	now = calloc(1, sizeof(*now));
	if (!now)
		return error_set(-ENOMEM, NULL, "no memory for threads");
	now->pid = pid;
	now->start_ticks = start_ticks;
	err = proc_threads(pid, &tids, &nr);
	if (!err) {
		err = look_at(now, before, pid, tids,
			      nr < KPROF_TOP_MAX_THREADS ? nr : KPROF_TOP_MAX_THREADS, fn, ctx);
		free(tids);
	}
	free(t->threads);
	t->threads = now;
	return err;
}
