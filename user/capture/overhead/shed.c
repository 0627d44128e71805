// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is given up, in this order: samples (some of them), the operators that cost most and tell
 * least, stacks, waits, operators altogether, and at last children. What does not help is left out:
 * where samples cost little, fewer of them save nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "capture/overhead/impl.h"
#include "util/error.h"
#include "util/util.h"

/* A part of the bound that is not worth giving something up for. */
#define SMALL 0.25
/*
 * How much of what kprof's thread does is reading processes that samples have met, where programs
 * come and go: at 4 samples a second it takes a quarter of what it takes at 19.
 */
#define MEETING 0.75
#define SLOWEST_NS NSEC_PER_SEC
/* Probes that stay are placed anew, which costs by itself. */
#define QUIET_NS (500 * NSEC_PER_MSEC)
/* What a program does in a shorter time may not be what it goes on doing. */
#define SURE_NS (200 * NSEC_PER_MSEC)
/* How long it must have cost less than half of the bound before there are more samples again. */
#define PATIENCE_NS (5 * NSEC_PER_SEC)
#define MOST_PATIENCE_NS (320 * NSEC_PER_SEC)
#define STEADY_PATIENCE_NS (20 * NSEC_PER_SEC) /* what goes on for days meets many loads */
/* For how long it is to be calm before waits come back: at first, and at most. */
#define WAITS_PATIENCE_NS (10 * NSEC_PER_SEC)
#define WAITS_MOST_PATIENCE_NS (1280 * NSEC_PER_SEC)

static double share_of(const struct ledger_reading *last, enum ledger_cause cause)
{
	return ledger_share(last, ledger_cost_of(last, cause));
}

int shed_add_step(struct overhead *o, const struct shed_step *step)
{
	int err;

	log_debug("--max-overhead: %s, as the last second cost %.2f %%", shed__name(step->kind),
		  o->share * 100);
	o->nr_given_up += step->kind != SHED_RATE_BACK;
	/* each of the others is a gap, and gives up what there is no more */
	if (step->kind <= SHED_RATE_BACK && ++o->nr_rates > SHED_MOST_RATES) {
		o->more_steps++;
		return 0;
	}
	err = vec_grow((void **)&o->steps, &o->cap_steps, o->nr_steps, sizeof(*o->steps));
	if (!err) {
		o->steps[o->nr_steps] = *step;
		o->steps[o->nr_steps].share = o->share;
		o->steps[o->nr_steps++].until_ns = clock_mono_ns();
	}
	return err;
}

/* ---- samples ---- */

/* How long to wait before there are more samples again: longer if it has not been long enough. */
static void be_patient(struct overhead *o)
{
	uint64_t most_ns = o->opts.steady ? STEADY_PATIENCE_NS : MOST_PATIENCE_NS;

	if (!o->patience_ns)
		o->patience_ns = PATIENCE_NS;
	else if (o->tried && o->patience_ns < most_ns)
		o->patience_ns *= 2;
}

/*
 * What fewer samples would save. Most of what kprof's thread does for few samples, it does for
 * none, too; but of all processes, each that is met for the first time is read (its mappings, its
 * name), and fewer are met by fewer samples.
 */
static double cost_of_samples(const struct overhead *o, const struct ledger_reading *last,
			      double in_kernel, double share)
{
	double cost = fmin(share_of(last, LEDGER_FOR_SAMPLES), 2 * in_kernel), met;

	/* it is not what samples cost where much is read once, as at the begin, or for a moment */
	if (!o->opts.steady || !o->begun || !o->opts.all_processes || o->opts.with_probes ||
	    share < o->opts.most * SHED_MUCH)
		return cost;
	/* where waits cost much, processes are met by them, too: fewer samples save no reading */
	if (share_of(last, LEDGER_FOR_WAITS) > o->opts.most * SMALL)
		return cost;
	met = ledger_share(last, last->part_ns[LEDGER_OWN]) * MEETING;
	return fmax(cost, in_kernel + met);
}

/*
 * Halves the rate as often as it takes; once where it is not the samples themselves that cost much.
 * 1: it was, 0: that would not help.
 */
static int fewer_samples(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns,
			 double share)
{
	uint64_t period_ns = stacks__period(o->opts.stacks), to_ns = period_ns;
	double in_kernel = ledger_share(last, last->cause_ns[LEDGER_FOR_SAMPLES]);
	double cost = cost_of_samples(o, last, in_kernel, share), rest = share - cost;
	struct shed_step step = {.kind = SHED_RATE, .time_ns = now_ns};
	int err;

	if (!period_ns || period_ns >= SLOWEST_NS || cost < o->opts.most * SMALL)
		return 0;
	do {
		to_ns *= 2;
		cost /= 2;
	} while (2 * in_kernel > o->opts.most * SMALL && to_ns * 2 <= SLOWEST_NS &&
		 cost > o->opts.most * SMALL / 2 && rest + cost > o->opts.most * SHED_AIM);
	stacks__set_period(o->opts.stacks, to_ns);
	step.from = (double)NSEC_PER_SEC / (double)period_ns;
	step.to = (double)NSEC_PER_SEC / (double)to_ns;
	be_patient(o);
	o->tried = false;
	err = shed_add_step(o, &step);
	return err ? err : 1;
}

/* ---- probes ---- */

struct bits {
	uint64_t probes[KPROF_WIRE_MAX_PROBES / 64];
	uint64_t sites[HEAT_SITES / 64 + 1];
};

static bool is_dropped(void *ctx, bool site, uint32_t index)
{
	const struct bits *b = ctx;

	if (index >= (site ? sizeof(b->sites) : sizeof(b->probes)) * 8)
		return false;
	return (site ? b->sites : b->probes)[index / 64] >> (index & 63) & 1;
}

static int remember(struct overhead *o, const struct choose_probe *p, uint64_t now_ns)
{
	double seconds = (double)(now_ns - o->heat.since_ns) / (double)NSEC_PER_SEC;
	int err =
		vec_grow((void **)&o->dropped, &o->cap_dropped, o->nr_dropped, sizeof(*o->dropped));

	if (!err)
		err = bursts__add(&o->bursts, p->probe, o->nr_dropped, now_ns);
	if (!err)
		o->dropped[o->nr_dropped++] = (struct dropped){
			.probe = p->probe,
			.calls_a_second = seconds > 0 ? (double)p->calls / seconds : 0,
			.mean_ns = p->timed ? (double)p->timed_ns / (double)p->timed : 0,
			.time_ns = now_ns,
			.recorded_ns = o->latest.recorded_ns,
		};
	return err;
}

static bool is_given_up(void *ctx, uint32_t probe)
{
	const struct overhead *o = ctx;
	const struct dropped *d = bursts__of(o, probe);

	return shed__done(o, SHED_ALL_PROBES) || (d && (size_t)(d - o->dropped) >= o->ended);
}

int overhead__end_spans(struct overhead *o)
{
	int err = 0;

	if (o->endless_ns)
		err = o->opts.given_up(o->opts.ctx, o->endless_ns, is_given_up, o);
	if (err == -EAGAIN)
		return 0;
	o->endless_ns = 0;
	o->ended = o->nr_dropped;
	return err;
}

bool overhead__gave_up_all(const struct overhead *o)
{
	return shed__done(o, SHED_ALL_PROBES);
}

bool overhead__gave_up_children(const struct overhead *o)
{
	return shed__done(o, SHED_CHILDREN);
}

/* The probes are chosen: gives them up, with the return sites that serve no other. */
static int drop(struct overhead *o, const struct choose_probe *probes, size_t nr, uint64_t now_ns,
		struct shed_step *step)
{
	struct bits *bits = calloc(1, sizeof(*bits));
	int err = bits ? 0 : -ENOMEM;

	step->first = (uint32_t)o->nr_dropped;
	step->nr = (uint32_t)nr;
	for (size_t i = 0; i < nr && !err; i++)
		err = remember(o, &probes[i], now_ns);
	for (size_t i = 0; i < o->nr_dropped && !err; i++)
		bits->probes[o->dropped[i].probe / 64] |= 1ull << (o->dropped[i].probe & 63);
	if (!err) {
		heat__idle_sites(&o->heat, bits->probes, bits->sites);
		/* else the rings would fill, and entries be recorded whose return sites are gone */
		attacher__shed(o->opts.attacher, KPROF_WIRE_SHED_HITS);
		err = probe_set__shed(o->opts.probes, is_dropped, bits);
		attacher__unshed(o->opts.attacher, KPROF_WIRE_SHED_HITS);
	}
	if (err > 0)
		step->nr_probes = (uint32_t)err;
	o->endless_ns = clock_mono_ns();
	free(bits);
	return err < 0 ? err : 0;
}

/* ---- stacks, and the rest ---- */

static void stop(struct overhead *o, enum shed_kind kind)
{
	static const uint32_t what[SHED_KINDS] = {
		[SHED_ENTRY_STACKS] = KPROF_WIRE_SHED_ENTRY_STACKS,
		[SHED_WAIT_STACKS] = KPROF_WIRE_SHED_WAIT_STACKS,
		[SHED_ALL_PROBES] = KPROF_WIRE_SHED_HITS,
		[SHED_CHILDREN] = KPROF_WIRE_SHED_CHILDREN,
	};

	attacher__shed(o->opts.attacher, what[kind]);
	if (kind == SHED_WAITS)
		o->opts.give_up_waits(o->opts.ctx);
	if (kind != SHED_ALL_PROBES)
		return;
	probe_set__shed_all(o->opts.probes);
	o->endless_ns = clock_mono_ns();
}

void shed__wait_longer(struct overhead *o)
{
	o->waits_patience_ns *= 2;
	if (o->waits_patience_ns > WAITS_MOST_PATIENCE_NS)
		o->waits_patience_ns = WAITS_MOST_PATIENCE_NS;
}

void shed__note_waits(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns)
{
	double cost_ns = (double)ledger_cost_of(last, LEDGER_FOR_WAITS);
	double price = last->switches ? cost_ns / (double)last->switches : o->wait_switch_ns;

	/* without their stacks they cost less than what comes back */
	o->wait_switch_ns = shed__without_waits(o) ? fmax(o->wait_switch_ns, price) : price;
	if (shed__without_waits(o))
		return;
	if (o->waits_back_ns && now_ns < o->waits_back_ns + 2 * o->waits_patience_ns)
		shed__wait_longer(o);
	else
		o->waits_patience_ns = WAITS_PATIENCE_NS;
}

/* Once. 1: it was done, 0: it had been before. */
static int leave_out(struct overhead *o, enum shed_kind kind, const struct ledger_reading *last,
		     uint64_t now_ns)
{
	struct shed_step step = {.kind = kind, .time_ns = now_ns};
	int err;

	if (shed__done(o, kind))
		return 0;
	if (kind == SHED_WAITS || kind == SHED_WAIT_STACKS)
		shed__note_waits(o, last, now_ns);
	stop(o, kind);
	o->shed |= 1u << kind;
	err = shed_add_step(o, &step);
	return err ? err : 1;
}

/* ---- single probes ---- */

/* What probes have cost since the heat was forgotten, which the ledger may not have been since. */
struct probe_costs {
	double time_ns, all_ns, single_ns; /* single: of what can be given up alone */
	double bound_ns;                   /* what may be paid in that time */
};

/*
 * Would the rest still be over the bound, if all that can be given up alone were? Only a time that
 * is long enough tells, and a short burst is not over the bound.
 */
static bool single_ones_do_not_help(const struct probe_costs *c)
{
	double second_ns = fmax(c->time_ns, (double)LEDGER_SPAN_NS);

	return c->time_ns >= SURE_NS &&
	       c->all_ns - c->single_ns > c->bound_ns * second_ns / c->time_ns;
}

/* Gives single probes up; all, if that is not enough. */
static int fewer_probes(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns)
{
	struct shed_step step = {.kind = SHED_PROBES, .time_ns = now_ns};
	struct probe_costs costs = {.time_ns = (double)(now_ns - o->heat.since_ns)};
	double scale = costs.time_ns / (double)last->time_ns, hits = (double)o->heat.hits, goal_ns;
	struct choose_probe *probes;
	uint64_t chosen_hits = 0;
	size_t nr, chosen = 0;
	int err;

	if (!o->heat.probes || shed__done(o, SHED_ALL_PROBES))
		return 0;
	err = heat__probes(&o->heat, &probes, &nr);
	if (err)
		return err;
	costs.all_ns = (double)ledger_cost_of(last, LEDGER_FOR_PROBES) * scale;
	costs.bound_ns = o->opts.most * (double)last->used_ns * scale;
	goal_ns = costs.all_ns - SHED_AIM * costs.bound_ns;
	if (hits > 0 && goal_ns > 0)
		chosen = choose_probes(probes, nr, costs.all_ns / hits, goal_ns, &costs.single_ns);
	for (size_t i = 0; i < chosen; i++)
		chosen_hits += probes[i].hits;
	if (share_of(last, LEDGER_FOR_PROBES) * (double)chosen_hits < o->opts.most * SMALL * hits)
		chosen = 0;
	if (chosen && single_ones_do_not_help(&costs)) {
		free(probes);
		return leave_out(o, SHED_ALL_PROBES, last, now_ns);
	}
	if (chosen)
		err = drop(o, probes, chosen, now_ns, &step);
	free(probes);
	if (err || !chosen)
		return err;
	err = shed_add_step(o, &step);
	return err ? err : 1;
}

int shed__step(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns)
{
	double share = ledger_share(last, ledger_cost(last)), least = o->opts.most * SMALL;
	bool probes = o->opts.with_probes && share_of(last, LEDGER_FOR_PROBES) > least;
	bool waits = share_of(last, LEDGER_FOR_WAITS) > least;
	bool tasks = o->opts.children && share_of(last, LEDGER_FOR_TASKS) > least;
	bool waits_before = shed__done(o, SHED_WAITS);
	int n = fewer_samples(o, last, now_ns, share);

	o->waits_calm_ns = 0;
	o->waits_due = false;
	if (!n && probes)
		n = fewer_probes(o, last, now_ns);
	if (!n && share_of(last, LEDGER_FOR_STACKS) > least)
		n = leave_out(o, SHED_ENTRY_STACKS, last, now_ns);
	if (!n && waits)
		n = leave_out(o, SHED_WAIT_STACKS, last, now_ns);
	if (!n && waits)
		n = leave_out(o, SHED_WAITS, last, now_ns);
	if (!n && probes)
		n = leave_out(o, SHED_ALL_PROBES, last, now_ns);
	if (!n && tasks)
		n = leave_out(o, SHED_CHILDREN, last, now_ns);
	o->nothing_left = !n;
	if (n <= 0)
		return n;
	o->calm_since_ns = 0;
	/* to end waits costs as much by itself, once */
	o->stepped_ns = waits_before == shed__done(o, SHED_WAITS) ? now_ns : 0;
	if (o->endless_ns)
		o->quiet_ns = clock_mono_ns() + QUIET_NS;
	ledger__restart(&o->window);
	heat__forget(&o->heat, now_ns);
	return 0;
}
