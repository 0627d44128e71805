// SPDX-License-Identifier: BSD-2-Clause
/*
 * What comes back when it is calm: samples, and in what goes on for days waits and their stacks.
 * Each time that something had to be given up again soon, the next try is later.
 */
#include <errno.h>

#include "capture/overhead/impl.h"
#include "util/error.h"
#include "util/util.h"

/*
 * Below this part of the bound it is calm. What goes on for days has one of which half is used
 * without any sample.
 */
#define STEADY_AIM 0.65

static double calm_share(const struct overhead *o)
{
	return o->opts.most * (o->opts.steady ? STEADY_AIM : SHED_AIM);
}

/* ---- samples ---- */

static int more_samples(struct overhead *o, double share, uint64_t now_ns)
{
	uint64_t period_ns = stacks__period(o->opts.stacks), to_ns = period_ns / 2;
	struct shed_step step = {.kind = SHED_RATE_BACK, .time_ns = now_ns};

	if (period_ns <= o->wanted_period_ns || share > calm_share(o)) {
		o->calm_since_ns = 0;
		return 0;
	}
	if (!o->calm_since_ns)
		o->calm_since_ns = now_ns;
	if (now_ns < o->calm_since_ns + o->patience_ns)
		return 0;
	if (o->opts.steady && share < calm_share(o) / 2)
		to_ns /= 2;
	if (to_ns < o->wanted_period_ns)
		to_ns = o->wanted_period_ns;
	stacks__set_period(o->opts.stacks, to_ns);
	step.from = (double)NSEC_PER_SEC / (double)period_ns;
	step.to = (double)NSEC_PER_SEC / (double)to_ns;
	o->tried = true;
	o->calm_since_ns = 0;
	ledger__restart(&o->window);
	return shed_add_step(o, &step);
}

/* ---- waits ---- */

/* Would waits still be too much? They cost so much for each switch. */
static void watch_waits(struct overhead *o, const struct ledger_reading *last, double share,
			uint64_t now_ns)
{
	double ns = o->wait_switch_ns * (double)last->switches;

	if (!shed__without_waits(o))
		return;
	if (share + ledger_share(last, (uint64_t)ns) > calm_share(o)) {
		o->waits_calm_ns = 0;
		o->waits_due = false;
		return;
	}
	if (!o->waits_calm_ns)
		o->waits_calm_ns = now_ns;
	o->waits_due = now_ns >= o->waits_calm_ns + o->waits_patience_ns;
}

void overhead__come_back(struct overhead *o)
{
	uint64_t from_ns = recorder__window(o->opts.recorder)->start_ns;
	int err = 0;

	if (!o->waits_due)
		return;
	o->waits_due = false;
	o->waits_calm_ns = 0;
	if (shed__done(o, SHED_WAITS))
		err = o->opts.resume_waits(o->opts.ctx, &from_ns);
	if (err && err != -EAGAIN) {
		log_warn(kprof_error_hint(), "%s: the recording goes on without",
			 kprof_error_cause());
		error_clear();
		shed__wait_longer(o);
	}
	if (err)
		return;
	attacher__unshed(o->opts.attacher, KPROF_WIRE_SHED_WAIT_STACKS);
	for (size_t i = 0; i < o->nr_steps; i++)
		if (o->steps[i].kind == SHED_WAITS || o->steps[i].kind == SHED_WAIT_STACKS)
			o->steps[i].back_ns = from_ns;
	o->shed &= ~(1u << SHED_WAITS | 1u << SHED_WAIT_STACKS);
	o->waits_back_ns = from_ns;
	log_debug("--max-overhead: waits are recorded again");
}

int back__tend(struct overhead *o, const struct ledger_reading *last, double share, uint64_t now_ns)
{
	if (o->opts.steady)
		watch_waits(o, last, share, now_ns);
	return more_samples(o, share, now_ns);
}
