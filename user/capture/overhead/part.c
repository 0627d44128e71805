// SPDX-License-Identifier: BSD-2-Clause
/* The ledger and the steps where the recording's file ends and it goes on in another one. */
#include <string.h>

#include "capture/overhead/impl.h"
#include "util/util.h"

int overhead__end_part(struct overhead *o)
{
	int err = overhead__end_spans(o);

	return err ? err : overhead_look(o);
}

/*
 * What was given up before still is, from the new file's begin on; of changes of the rate only what
 * they came to counts.
 */
static void keep_steps(struct overhead *o)
{
	uint64_t now_ns = recorder__window(o->opts.recorder)->start_ns;
	uint64_t period_ns = stacks__period(o->opts.stacks);
	struct shed_step rate = {.kind = SHED_RATE, .time_ns = now_ns, .until_ns = now_ns};
	size_t kept = 0;

	for (size_t i = 0; i < o->nr_steps; i++) {
		struct shed_step *step = &o->steps[i];

		if (step->kind <= SHED_RATE_BACK) {
			rate.share = step->share;
			continue;
		}
		if (step->back_ns)
			continue;
		step->time_ns = step->until_ns = now_ns;
		o->steps[kept++] = *step;
	}
	/* there was a step of this kind, and so there is room for one */
	if (period_ns > o->wanted_period_ns && kept < o->nr_steps) {
		rate.from = (double)NSEC_PER_SEC / (double)o->wanted_period_ns;
		rate.to = (double)NSEC_PER_SEC / (double)period_ns;
		o->steps[kept++] = rate;
	}
	o->nr_steps = kept;
	o->nr_rates = period_ns > o->wanted_period_ns;
	o->more_steps = 0;
}

void overhead__next_part(struct overhead *o)
{
	uint64_t now_ns = recorder__window(o->opts.recorder)->start_ns;

	o->first = o->latest;
	ledger__restart(&o->window); /* what the border cost, nothing that is given up would save */
	memcpy(o->programs_before, o->measured.programs, sizeof(o->programs_before));
	memcpy(o->program_ns_before, o->measured.program_ns, sizeof(o->program_ns_before));
	o->over_ns = o->longest_over_ns = o->this_over_ns = 0;
	o->worst = 0;
	keep_steps(o);
	for (size_t i = 0; i < o->nr_dropped; i++) {
		struct dropped *d = &o->dropped[i];

		d->time_ns = now_ns;
		d->recorded_ns = o->latest.recorded_ns;
		d->rate = d->busy = (struct tally){0};
		d->traps_ns = 0;
	}
	o->bursts.nr = 0;
	o->bursts.all_ns = 0;
}

void overhead__state(const struct overhead *o, struct overhead_state *out)
{
	const uint64_t *now = o->latest.part_ns, *before = o->begin.part_ns;
	uint64_t elapsed_ns = o->latest.time_ns - o->begin.time_ns;
	uint64_t used_ns = o->latest.used_ns - o->begin.used_ns;
	uint64_t period_ns = stacks__period(o->opts.stacks);

	*out = (struct overhead_state){
		.share = overhead__share(o),
		.last_share = o->share,
		.base_ns = used_ns > elapsed_ns ? used_ns : elapsed_ns,
		.cost_ns = ledger_cost(&o->latest) - ledger_cost(&o->begin),
		.nr_steps = o->nr_given_up,
		.nr_now = (uint32_t)__builtin_popcount(o->shed) +
			  (o->nr_dropped && !shed__done(o, SHED_ALL_PROBES)),
	};
	for (int i = 0; i < KPROF_OVERHEAD_PARTS; i++)
		out->part_ns[i] = now[i] - before[i];
	if (period_ns)
		out->hz = (double)NSEC_PER_SEC / (double)period_ns;
	if (o->wanted_period_ns)
		out->wanted_hz = (double)NSEC_PER_SEC / (double)o->wanted_period_ns;
}
