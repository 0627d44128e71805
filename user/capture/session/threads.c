// SPDX-License-Identifier: BSD-2-Clause
/* Threads that begin and end during a recording. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "capture/session/session.h"

int thread__record(struct kprof_session *s, const struct thread *th, uint64_t exit_ns)
{
	struct store_record r = {
		.type = STORE_THREAD,
		.thread =
			{
				.index = th->index,
				.pid = (uint32_t)(th->pid_tgid >> 32),
				.tid = (uint32_t)th->pid_tgid,
				.name = th->given_name ? th->given_name : th->comm,
				.start_ns = th->start_ns,
				.exit_ns = exit_ns,
			},
	};

	return recorder__put(s->recorder, &r);
}

struct thread *thread__of(struct kprof_session *s, struct target *t, uint64_t pid_tgid,
			  uint64_t time_ns)
{
	struct thread *th = threads__find(s->threads, pid_tgid);
	char comm[PROC_COMM_BYTES];

	if (th)
		return th;
	th = threads__add(s->threads, t, pid_tgid);
	if (!th)
		return NULL;
	th->start_ns = time_ns;
	th->spans = spans__thread(s->spans, th->index, t->pid);
	/* of all processes, new names are followed (renames.c); /proc tells more of the kernel's */
	if (s->machine && (uint32_t)pid_tgid == t->pid && t->comm && !t->kernel_thread)
		th->comm = t->comm;
	else if (!proc_thread_comm((pid_t)t->pid, (pid_t)(uint32_t)pid_tgid, comm))
		th->comm = recorder__string(s->recorder, comm);
	else if ((uint32_t)pid_tgid == t->pid)
		th->comm = t->comm; /* it has ended; the first thread has the process's name */
	if (!th->spans || thread__record(s, th, 0)) {
		threads__remove(s->threads, th);
		return NULL;
	}
	thread_names__want(s->thread_names, t, time_ns);
	return th;
}

int thread__end(struct kprof_session *s, struct thread *th, uint64_t time_ns)
{
	int held_err = s->observed ? observed__thread_ends(s, th) : 0;
	int err = spans__thread_end(s->spans, th->spans, time_ns);

	if (!err)
		err = held_err;
	if (!err)
		err = thread__record(s, th, time_ns);
	agents__thread_ended(s->agents, th, time_ns);
	threads__remove(s->threads, th);
	return err;
}

int threads__end(struct kprof_session *s, const struct target *t, uint64_t time_ns)
{
	struct thread *th, *next;
	int first = 0;

	THREADS_EACH (s->threads, th, next) {
		int err = th->target == t ? thread__end(s, th, time_ns) : 0;

		if (!first)
			first = err;
	}
	return first;
}

/* Is it gone since the look before this one? Its last records have been read by then. */
static bool is_gone(struct thread *th, uint64_t time_ns)
{
	uint64_t gone_ns = th->gone_ns;

	th->gone_ns = 0;
	if (!tgkill((pid_t)th->target->pid, (pid_t)(uint32_t)th->pid_tgid, 0) || errno != ESRCH)
		return false;
	th->gone_ns = gone_ns ? gone_ns : time_ns;
	return gone_ns;
}

int threads__sweep(struct kprof_session *s, uint64_t time_ns)
{
	struct thread *th, *next;
	int err = 0;

	s->threads_gone = false;
	THREADS_EACH (s->threads, th, next) {
		if (!err && is_gone(th, time_ns))
			err = thread__end(s, th, th->gone_ns);
		else if (th->gone_ns)
			s->threads_gone = true;
	}
	return err;
}
