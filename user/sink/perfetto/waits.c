// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits: slices on their thread's track; in each another one for the time after the thread was
 * woken, to which an arrow leads from who woke it: from a slice of a nanosecond on the waker's
 * track.
 */
#include "sink/perfetto/impl.h"

#include "util/util.h"

/* Whether the wait has a part for which the thread could have gone on. */
static bool is_runnable(const struct store_record *r)
{
	return r->wait.start_ns < r->wait.wake_ns && r->wait.wake_ns < r->wait.end_ns;
}

static int put_end(void *ctx, const struct store_record *whole)
{
	const struct tl_thread *waker;
	struct store_record cut, *r = &cut;
	struct pftrace *p = ctx;

	if (!trace__wait(p->t, whole, &cut))
		return 0;
	if (is_runnable(r)) {
		waker = trace__waking_thread(&p->tr, r);
		if (waker) {
			pf_event(p, PF_END, pf_thread_track(waker->index));
			pf_name(p, "wakes");
			pf_put(p, r->wait.wake_ns + 1);
		}
		pf_event(p, PF_END, pf_thread_track(r->wait.thread));
		pf_name(p, "runnable");
		pf_put(p, r->wait.end_ns);
	}
	pf_event(p, PF_END, pf_thread_track(r->wait.thread));
	pf_name_wait(p, timeline__wait_reason(p->t, r));
	pf_put(p, r->wait.end_ns);
	return p->err;
}

int pf_waits_ends(struct pftrace *p)
{
	return timeline__waits(p->t, p->opts->pid, put_end, p);
}

/* Returns whether an arrow leads to the wait. */
static bool put_waker(struct pftrace *p, const struct store_record *r)
{
	const struct tl_thread *waker = trace__waking_thread(&p->tr, r);

	if (!waker)
		return false;
	pf_event(p, PF_BEGIN, pf_thread_track(waker->index));
	pf_category(p, "wait");
	pf_name(p, "wakes");
	pf_arg_u64(p, "thread", (uint64_t)timeline__thread(p->t, r->wait.thread)->tid);
	pf_flow(p, PF_FLOW_WAKES | ++p->nr_wakes);
	pf_slice(p, pf_thread_track(waker->index), r->wait.wake_ns, r->wait.wake_ns + 1);
	return true;
}

static int put_wait(void *ctx, const struct store_record *whole)
{
	struct store_record cut, *r = &cut;
	struct pftrace *p = ctx;
	const char *reason = timeline__wait_reason(p->t, whole);
	char waker[TRACE_WAKER_BYTES];
	bool arrow;

	if (!trace__wait(p->t, whole, &cut))
		return 0;
	pf_event(p, PF_BEGIN, pf_thread_track(r->wait.thread));
	pf_category(p, "wait");
	pf_name_wait(p, reason);
	pf_arg_string(p, "reason", reason);
	if (trace__waker(p->t, r, waker))
		pf_arg_text(p, "woken by", waker);
	pf_arg_u64(p, "run queue (ns)", r->wait.end_ns - r->wait.wake_ns);
	pf_arg_stack(p, "stack", r->wait.stack);
	if (r->wait.flags & STORE_WAIT_FROM_START)
		pf_arg_bool(p, "started", false);
	if (r->wait.flags & STORE_WAIT_TO_END)
		pf_arg_bool(p, "finished", false);
	pf_slice(p, pf_thread_track(r->wait.thread), r->wait.start_ns, r->wait.end_ns);
	if (!is_runnable(r))
		return p->err;
	arrow = put_waker(p, r);
	pf_event(p, PF_BEGIN, pf_thread_track(r->wait.thread));
	pf_category(p, "wait");
	pf_name(p, "runnable");
	if (arrow)
		pf_flow_end(p, PF_FLOW_WAKES | p->nr_wakes);
	pf_slice(p, pf_thread_track(r->wait.thread), r->wait.wake_ns, r->wait.end_ns);
	return p->err;
}

int pf_waits(struct pftrace *p)
{
	return timeline__waits(p->t, p->opts->pid, put_wait, p);
}
