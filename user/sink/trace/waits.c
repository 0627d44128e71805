// SPDX-License-Identifier: BSD-2-Clause
/* What traces say of waits. */
#include "sink/trace/trace.h"

#include <stdio.h>

void trace__wait_name(const char *reason, char name[TRACE_WAIT_NAME_BYTES])
{
	snprintf(name, TRACE_WAIT_NAME_BYTES, "wait: %s", reason);
}

bool trace__waker(struct kprof_capture *t, const struct store_record *r,
		  char text[TRACE_WAKER_BYTES])
{
	if (timeline__woken_by_interrupt(t, r))
		snprintf(text, TRACE_WAKER_BYTES, "an interrupt");
	else if (r->wait.waker_tid)
		snprintf(text, TRACE_WAKER_BYTES, "%s (%u)",
			 timeline__string(t, r->wait.waker_comm), r->wait.waker_tid);
	else
		return false;
	return true;
}

const struct tl_thread *trace__waking_thread(const struct trace *tr, const struct store_record *r)
{
	const struct tl_thread *thread;

	/* at its end, a wait's slice is over; one that nobody was seen to end has no arrow */
	if (!r->wait.waker_tid || r->wait.wake_ns >= r->wait.end_ns ||
	    timeline__woken_by_interrupt(tr->t, r))
		return NULL;
	thread = timeline__thread_at(tr->t, (pid_t)r->wait.waker_pid, (pid_t)r->wait.waker_tid,
				     r->wait.wake_ns);
	return thread && (!tr->opts->pid || thread->pid == tr->opts->pid) ? thread : NULL;
}
