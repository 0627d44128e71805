// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known of a thread at a moment at which it was not looked at, and what a file before has
 * of it.
 */
#include "capture/wait/impl.h"

static void take_off(uint64_t *sum, uint64_t ns)
{
	*sum -= ns < *sum ? ns : *sum;
}

/* Adds what it has waited up to the border. */
static void wait_until(struct kprof_wait *k, uint64_t at_ns)
{
	if (k->state == KPROF_WAIT_RUNNABLE)
		k->wake_ns = k->off_ns;
	else if (!k->wake_ns || k->wake_ns > at_ns)
		k->wake_ns = at_ns;
	else if (k->wake_ns < k->off_ns)
		k->wake_ns = k->off_ns;
	k->blocked_ns += k->wake_ns - k->off_ns;
	k->runnable_ns += at_ns - k->wake_ns;
}

uint64_t wait_at(struct kprof_wait *k, uint64_t at_ns)
{
	/* it has changed since: what it does now, it has done since then */
	if (at_ns < k->since_ns)
		at_ns = k->since_ns;
	if (k->state == KPROF_WAIT_RUNS)
		k->on_ns += at_ns - k->since_ns;
	else
		wait_until(k, at_ns);
	k->since_ns = at_ns;
	return at_ns;
}

void wait_part(struct kprof_wait *k, const struct wait_told *told)
{
	uint64_t life_ns;

	if (!told->end_ns || k->since_ns < told->end_ns)
		return;
	k->start_ns = told->end_ns;
	life_ns = k->since_ns - k->start_ns;
	take_off(&k->runnable_ns, told->runnable_ns);
	take_off(&k->blocked_ns, told->blocked_ns);
	take_off(&k->switches, told->switches);
	take_off(&k->told, told->told);
	if (k->runnable_ns > life_ns)
		k->runnable_ns = life_ns;
	if (k->blocked_ns > life_ns - k->runnable_ns)
		k->blocked_ns = life_ns - k->runnable_ns;
	k->on_ns = life_ns - k->runnable_ns - k->blocked_ns;
}

bool waits_keep(struct waits *w, const struct thread *th, const struct kprof_wait *k,
		uint64_t end_ns, const struct store_record *r)
{
	uint64_t border_ns = w->border_ns; /* of one that had ended by then, or begins later */
	struct store_record *kept;

	if (th->wait_told.end_ns >= w->begin_ns)
		border_ns = th->wait_told.end_ns;
	else if (map64__get(&w->unknown, th->pid_tgid) || k->start_ns >= w->begin_ns)
		border_ns = 0;
	if (!w->bordering || end_ns <= border_ns)
		return false;
	kept = vec_push(&w->kept, sizeof(*kept));
	if (kept)
		*kept = *r;
	return kept;
}
