// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of tasks: threads and processes that fork, execute, map files or exit. */
#include <errno.h>
#include <string.h>

#include "capture/session/session.h"

/* The string id of the thread's name (comm) in the record. */
static uint32_t comm_of(struct kprof_session *s, const struct kprof_wire_task *e)
{
	return store_writer__string(recorder__store(s->recorder), e->comm,
				    strnlen(e->comm, sizeof(e->comm)));
}

static int exit_event(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e)
{
	struct thread *th;

	if (e->h.id == KPROF_WIRE_EXIT_PROCESS && e->exit_status != KPROF_WIRE_STILL_RUNS) {
		t->exit_known = true;
		t->exit_status = e->exit_status;
	}
	if (s->machine) {
		machine__on_exit(t, e->h.time_ns);
		return 0;
	}
	if (!session_wants(s, e->h.pid_tgid))
		return e->h.id == KPROF_WIRE_EXIT_PROCESS ? process__on_exit(s, t, e->h.time_ns)
							  : 0;
	th = thread__of(s, t, e->h.pid_tgid, e->h.time_ns);
	if (!th)
		return -ENOMEM;
	th->comm = comm_of(s, e);
	if (e->h.id == KPROF_WIRE_EXIT_PROCESS)
		return process__on_exit(s, t, e->h.time_ns);
	return thread__end(s, th, e->h.time_ns);
}

static int exec_event(struct kprof_session *s, struct target *t, const struct kprof_wire_exec *exec)
{
	const struct kprof_wire_task *e = &exec->t;
	struct thread *th, *next;
	int err = 0;

	/*
	 * exec ends every thread but one. That one gets a new stack, so its spans end, and a new
	 * name.
	 */
	THREADS_EACH (s->threads, th, next) {
		if (err || th->target != t)
			continue;
		if (th->pid_tgid != e->h.pid_tgid) {
			err = thread__end(s, th, e->h.time_ns);
			continue;
		}
		if (s->observed)
			err = observed__thread_ends(s, th);
		if (!err)
			err = spans__close_all(s->spans, th->spans, e->h.time_ns);
		th->comm = comm_of(s, e);
		if (!err)
			err = thread__record(s, th, 0);
		if (!err)
			err = thread_names__drop(s->thread_names, th);
	}
	return err ? err : process__on_exec(s, t, exec);
}

int tasks__event(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_task *e = (const struct kprof_wire_task *)h;

	if (h->kind == KPROF_WIRE_MAPS) {
		process__on_maps(s, t, h);
		return 0;
	}
	if (h->kind == KPROF_WIRE_FORK)
		return e->child_pid == t->pid ? 0 : process__on_fork(s, t, e);
	return h->kind == KPROF_WIRE_EXEC ? exec_event(s, t, (const struct kprof_wire_exec *)h)
					  : exit_event(s, t, e);
}
