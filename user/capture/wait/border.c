// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known of a thread at a moment at which it was not looked at, and what a file before has
 * of it.
 */
#include <errno.h>
#include <stdlib.h>

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

uint64_t wait_from(const struct kprof_wait *k, const struct wait_told *before, uint64_t min_wait_ns)
{
	return k->off_ns + min_wait_ns <= before->end_ns ? before->end_ns : k->off_ns;
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

/* ---- what files have ---- */

int wait_border_tell(struct wait_border *b, uint64_t number, const struct wait_told *told)
{
	uint64_t *at = map64__at(&b->at, number);
	struct wait_told *own = at ? vec_push(&b->told, sizeof(*own)) : NULL;

	if (!own)
		return -ENOMEM;
	*own = *told;
	*at = b->told.nr;
	return 0;
}

struct wait_told *wait_border_find(const struct wait_border *b, uint64_t number)
{
	struct wait_told *told = b->told.data;
	uint64_t at = map64__get(&b->at, number);

	return at ? &told[at - 1] : NULL;
}

void wait_border_free(struct wait_border *b)
{
	map64__free(&b->at);
	free(b->told.data);
	*b = (struct wait_border){0};
}

/*
 * A thread that is there since waits are recorded, and was not known at the border: it had had no
 * event, and so was off a CPU or on one all the time. False: it is not one of these.
 */
static bool did_the_same(const struct waits *w, const struct kprof_wait *k, uint64_t border_ns,
			 struct wait_told *out)
{
	uint64_t ns = border_ns - k->start_ns;

	if (k->start_ns > w->from_ns)
		return false;
	*out = (struct wait_told){.end_ns = border_ns};
	if (k->on_ns >= ns)
		return true;
	out->blocked_ns = k->blocked_ns < ns ? k->blocked_ns : ns;
	out->runnable_ns = ns - out->blocked_ns;
	return k->blocked_ns + k->runnable_ns >= ns;
}

struct wait_told waits_told(const struct waits *w, const struct kprof_wait *k, uint64_t end_ns)
{
	const struct wait_border *all[] = {&w->latest, &w->before};
	struct wait_told same;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const struct wait_told *told = wait_border_find(all[i], k->number);
		uint64_t border_ns = told ? told->end_ns : all[i]->at_ns;

		if (!border_ns || end_ns <= border_ns)
			continue;
		if (k->start_ns >= border_ns) /* or another thread had the number then */
			break;
		if (told)
			return *told;
		if (!wait_border_find(&w->before, k->number) &&
		    did_the_same(w, k, border_ns, &same))
			return same;
	}
	return (struct wait_told){0};
}

int waits_settle(struct waits *w, const struct kprof_wait *k)
{
	const struct wait_told *before = wait_border_find(&w->before, k->number);
	struct wait_told told = {.end_ns = WAIT_ENDED}, same;

	if (!w->bordering || wait_border_find(&w->latest, k->number))
		return 0;
	if (k->since_ns > w->latest.at_ns)
		told = before ? *before : (struct wait_told){0};
	if (k->since_ns > w->latest.at_ns && !before && did_the_same(w, k, w->latest.at_ns, &same))
		told = same;
	return wait_border_tell(&w->latest, k->number, &told);
}

bool waits_has(struct waits *w, const struct kprof_wait *k)
{
	struct wait_told *told = wait_border_find(&w->latest, k->number);

	if (!told || k->off_ns != told->split_ns || k->since_ns > told->end_ns)
		return false;
	told->told++; /* by now, it has been told of */
	return true;
}

bool waits__is_before(const struct waits *w, const struct kprof_wire_wait *e)
{
	const struct wait_told *told = wait_border_find(&w->latest, e->w.number);

	return e->w.since_ns <= (told ? told->end_ns : w->latest.at_ns);
}

bool waits_keep(struct waits *w, const struct kprof_wait *k, uint64_t end_ns,
		const struct store_record *r)
{
	const struct wait_told *told;
	struct store_record *kept;

	if (!w->bordering)
		return false;
	told = wait_border_find(&w->latest, k->number);
	if (told && end_ns <= told->end_ns)
		return false;
	kept = vec_push(&w->kept, sizeof(*kept));
	if (kept)
		*kept = *r;
	return kept;
}

int waits_hold_piece(struct waits *w, const struct store_record *r)
{
	struct store_record *piece = vec_push(&w->pieces, sizeof(*piece));

	if (!piece)
		return -ENOMEM;
	*piece = *r;
	return 0;
}
