// SPDX-License-Identifier: BSD-2-Clause
/* What traces say of waits. */
#include "sink/trace/trace.h"

#include <stdio.h>

/*
 * Spans that are open when the recording ends have their ends there, each a nanosecond before that
 * of the span around it (timeline/spans.c). A wait that is inside of all of them ends before: by
 * more than there are levels.
 */
#define OPEN_SPANS_NS 1000

bool trace__wait(const struct kprof_capture *t, const struct store_record *r,
		 struct store_record *out)
{
	uint64_t from_ns = timeline__recorded_from(t);

	*out = *r;
	if (r->wait.start_ns < from_ns) {
		out->wait.start_ns = from_ns;
		out->wait.flags |= STORE_WAIT_FROM_START;
		if (r->wait.wake_ns < from_ns)
			out->wait.wake_ns = from_ns;
	}
	if (r->wait.flags & STORE_WAIT_TO_END) {
		if (out->wait.end_ns - out->wait.start_ns <= OPEN_SPANS_NS)
			return false;
		out->wait.end_ns -= OPEN_SPANS_NS;
		if (out->wait.wake_ns > out->wait.end_ns)
			out->wait.wake_ns = out->wait.end_ns;
	}
	return out->wait.start_ns < out->wait.end_ns;
}

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
