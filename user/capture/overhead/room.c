// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the last second leaves of the bound is there for what can wait, and where it leaves nothing,
 * that rests. Told at each look of the thread that records, so that what begins to cost much (a
 * load, a capture's end) is held back within a moment.
 */
#include <math.h>

#include "capture/overhead/impl.h"
#include "util/foreign.h"
#include "util/ration.h"
#include "util/util.h"

/*
 * What can wait may fill up this part of the bound, and near a capture's end half of that; where
 * all seconds cost more without it, it gets so much once in each.
 */
#define FULL 0.6
#define FULL_LEAST 0.1
/* While it rests, stacks of waits get this part of what they may take. */
#define RESTING_STACKS 0.25

double room_left(const struct ledger_reading *last, double most, bool near_border)
{
	double full = near_border ? FULL / 2 : FULL;

	return most * full * ledger_used(last) - (double)ledger_cost(last);
}

/* The last second up to now. What is not read so often is as it was. */
static bool last_second(const struct overhead *o, uint64_t now_ns, struct ledger_reading *out)
{
	struct ledger_reading now = o->latest, before;
	uint64_t thread_ns = clock_thread_ns(), reader_ns = foreign_used_ns();
	uint64_t since_ns = now_ns - o->latest.time_ns;

	if (now_ns <= o->latest.time_ns || !ledger__last(&o->ledger, &before))
		return false;
	now.time_ns = now_ns;
	now.used_ns +=
		(uint64_t)((double)since_ns * (double)before.used_ns / (double)before.time_ns);
	if (thread_ns > now.part_ns[LEDGER_OWN]) /* else another thread has recorded before */
		now.part_ns[LEDGER_OWN] = thread_ns;
	if (reader_ns > o->reader_ns) /* else there is another one, or none */
		now.part_ns[LEDGER_HELPERS] += reader_ns - o->reader_ns;
	return ledger__until(&o->ledger, &now, out);
}

void room__share_out(struct overhead *o, uint64_t now_ns)
{
	struct ration *r = o->opts.reading;
	struct ledger_reading last;
	double room_ns;

	if (!o->opts.steady || o->opts.most <= 0 || !r || !r->ns_a_second ||
	    !last_second(o, now_ns, &last))
		return;
	room_ns = room_left(&last, o->opts.most, o->border_is_near);
	if (room_ns > 0) {
		o->roomy_ns = now_ns;
		o->room_granted = false;
		ration__rest_after(r, (uint64_t)room_ns);
	} else if (now_ns >= o->roomy_ns + NSEC_PER_SEC) {
		o->roomy_ns = now_ns;
		o->room_granted = true;
		ration__rest_after(r, (uint64_t)(o->opts.most * FULL_LEAST * NSEC_PER_SEC));
	} else if (!o->room_granted || ration__rests(r)) { /* else what was granted is used first */
		o->room_granted = false;
		ration__rest_after(r, 0);
	}
	room__set_wait_stacks(o);
}

void room__set_wait_stacks(const struct overhead *o)
{
	if (!o->opts.steady || !o->opts.give_up_waits)
		return;
	attacher__wait_stacks(o->opts.attacher,
			      o->wait_stacks *
				      (ration__rests(o->opts.reading) ? RESTING_STACKS : 1));
}

void room__end(struct overhead *o)
{
	ration__rest_after(o->opts.reading, UINT64_MAX / 2);
}
