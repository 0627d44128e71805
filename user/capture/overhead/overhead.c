// SPDX-License-Identifier: BSD-2-Clause
#include "capture/overhead/overhead.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/overhead/impl.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/ration.h"
#include "util/util.h"

#define EVERY_NS (250 * NSEC_PER_MSEC)
/* Where more is paid than the bound allows in a second, the look comes earlier. */
#define EARLIEST_NS (100 * NSEC_PER_MSEC)
#define PEEK_NS (25 * NSEC_PER_MSEC)
#define STEADY_PEEK_NS EARLIEST_NS /* of a recording that goes on for long: the look costs, too */
#define HEAT_NS NSEC_PER_SEC
#define SOON_NS (200 * NSEC_PER_MSEC) /* what a shorter time cost may be a moment's */
/* What a hit costs beside the trap, about: the kernel's program, and reading its record. */
#define HIT_NS 500
#define BEGIN_NS (3 * NSEC_PER_SEC)
/* What building tables may take of what is left, and of the bound for one CPU in any case. */
#define PACE_SHARE 0.6
#define PACE_LEAST 0.2
/*
 * What reading processes may take of the bound, and looking up names; the rest of what processes
 * are read for counts, too. Near a capture's end, reading gets half of that.
 */
#define READING_SHARE 0.2
#define NAMES_SHARE 0.2
/* What stacks of waits may; where one CPU's worth of work is done, it is done on so many CPUs. */
#define WAIT_STACKS_SHARE 0.25
#define SPREAD 4
/* Beyond this part of the bound all these get less, down to a quarter of it at 1.125 times. */
#define ROOMY 0.75
#define STEEPNESS 2
#define LEAST_PART 0.25
/* What goes on for long may be a little over the bound for so long. */
#define MILDLY_NS (500 * NSEC_PER_MSEC)
/* The counter's unit: a hundredth of a percent. */
#define COUNTER_NAME "kprof overhead (0.01 %)"

int overhead__new(const struct overhead_opts *opts, struct overhead **out)
{
	struct overhead *o = calloc(1, sizeof(*o));
	int err = 0;

	if (!o)
		return error_set(-ENOMEM, NULL, "no memory to measure what this costs");
	o->opts = *opts;
	o->measured.stat_fd = -1;
	o->nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	/* removing a few single uprobes, to place the others again, would take seconds */
	if (opts->most > 0 && opts->with_probes && !opts->single)
		err = heat__new(&o->heat);
	if (err) {
		overhead__free(o);
		return error_set(err, NULL, "no memory to bound what this costs");
	}
	*out = o;
	return 0;
}

void overhead__free(struct overhead *o)
{
	if (!o)
		return;
	if (o->measured.stat_fd >= 0)
		close(o->measured.stat_fd);
	heat__free(&o->heat);
	bursts__free(&o->bursts);
	free(o->steps);
	free(o->dropped);
	free(o);
}

void overhead__calibrate(struct overhead *o, pid_t spawned)
{
	o->measured.spawned = spawned;
	calibrate(&o->calibration, &o->opts, o->opts.with_probes, stacks__period(o->opts.stacks));
	o->heat.short_ns = (uint64_t)((o->calibration.trap_ns + HIT_NS) * 2 * CHOOSE_SHORT);
}

int overhead__open(struct overhead *o)
{
	struct target *t = targets__first(o->opts.targets);
	int err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);

	if (err)
		return error_set(err, NULL, "cannot read what this recording costs");
	/* what was paid before the window is told, but not counted */
	o->first = o->begin = o->latest;
	memcpy(o->programs_before, o->measured.programs, sizeof(o->programs_before));
	memcpy(o->program_ns_before, o->measured.program_ns, sizeof(o->program_ns_before));
	o->counter_pid = t && !o->opts.all_processes ? t->pid : (uint32_t)getpid();
	o->wanted_period_ns = stacks__period(o->opts.stacks);
	ledger__add(&o->ledger, &o->latest);
	ledger__add(&o->window, &o->latest);
	heat__forget(&o->heat, o->latest.time_ns);
	o->looked_ns = o->latest.time_ns;
	o->next_ns = o->latest.time_ns + EVERY_NS;
	o->peek_ns = o->latest.time_ns + EARLIEST_NS;
	o->opened_ns = o->latest.time_ns;
	o->open = true;
	return 0;
}

/* The share of the last second, as a counter: it holds from its time on. */
static int count(struct overhead *o)
{
	const struct record_window *window = recorder__window(o->opts.recorder);
	struct store_record r = {
		.type = STORE_COUNTER,
		.counter = {.time_ns = window->closed ? window->end_ns : o->latest.time_ns,
			    .pid = o->counter_pid,
			    .device = UINT32_MAX,
			    .value = (int64_t)(o->share * 10000 + 0.5)},
	};

	if (!o->counter_name)
		o->counter_name = recorder__string(o->opts.recorder, COUNTER_NAME);
	r.counter.name = o->counter_name;
	return o->counter_name ? recorder__put(o->opts.recorder, &r) : -ENOMEM;
}

static bool is_beginning(const struct overhead *o)
{
	return o->latest.time_ns < o->opened_ns + BEGIN_NS;
}

/* What can wait gets less while seconds are dear: this part of what it may take. */
static double part_now(const struct overhead *o, const struct ledger_reading *last)
{
	double share = ledger_share(last, ledger_cost(last));
	double part = 1 - (share / o->opts.most - ROOMY) * STEEPNESS;

	return fmin(fmax(part, LEAST_PART), 1);
}

/* What the bound leaves for building tables, in CPUs. */
static double left_for_tables(const struct overhead *o, const struct ledger_reading *last)
{
	double others_ns = (double)(ledger_cost(last) - last->part_ns[LEDGER_HELPERS]);
	double used = (double)last->used_ns / (double)last->time_ns;
	double others = others_ns / fmax((double)last->time_ns, (double)LEDGER_SPAN_NS);

	return (o->opts.most * used - others) * PACE_SHARE;
}

double overhead__wait_stacks(double most, double used, long nr_cpus)
{
	double in_use = fmax(used, 1);

	return most * in_use * WAIT_STACKS_SHARE / fmin(fmax((double)nr_cpus, 1), SPREAD * in_use);
}

/*
 * Building unwind tables may take what the bound leaves, but for a part that others, and the time
 * until the next look, may need; but some of the bound for one CPU in any case: without tables,
 * stacks are not whole. What can wait gives way as soon as there is more to do.
 */
static void set_pace(struct overhead *o, const struct ledger_reading *last)
{
	struct ledger_reading dear = *last;
	double used = (double)last->used_ns / (double)last->time_ns, part, left, tables, names;
	double reading = o->opts.most * fmax(used, 1) * READING_SHARE;
	struct stacks_pace pace;

	ledger__dearer(&o->ledger, SOON_NS, &dear);
	part = part_now(o, &dear);
	left = fmin(left_for_tables(o, last), left_for_tables(o, &dear));
	tables = fmax(left, o->opts.most * PACE_LEAST * part);
	names = o->opts.most * NAMES_SHARE * part;
	pace.tables_ns = (uint64_t)(tables * (double)NSEC_PER_SEC);
	pace.names_ns = (uint64_t)(names * (double)NSEC_PER_SEC);
	stacks__set_pace(o->opts.stacks, &pace);
	o->border_is_near = stacks__border_is_near(o->opts.stacks, o->latest.time_ns);
	if (o->border_is_near)
		part /= 2;
	ration__set(o->opts.reading, (uint64_t)(reading * (double)NSEC_PER_SEC), part);
	o->wait_stacks = overhead__wait_stacks(o->opts.most * part, used, o->nr_cpus);
	room__set_wait_stacks(o);
}

int overhead_look(struct overhead *o)
{
	/* not o->latest.time_ns: bursts read in between, too */
	uint64_t before_ns = o->looked_ns, over_ns;
	struct ledger_reading last;
	int err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);

	if (err)
		return error_set(err, NULL, "cannot read what this recording costs");
	o->looked_ns = o->latest.time_ns;
	o->reader_ns = foreign_used_ns();
	ledger__add(&o->ledger, &o->latest);
	ledger__add(&o->window, &o->latest);
	if (ledger__last(&o->ledger, &last)) {
		o->share = ledger_share(&last, ledger_cost(&last));
		if (o->opts.most > 0)
			set_pace(o, &last);
	}
	if (o->share > o->worst)
		o->worst = o->share;
	over_ns = o->opts.most > 0 && o->share > o->opts.most ? o->latest.time_ns - before_ns : 0;
	o->over_ns += over_ns;
	o->this_over_ns = over_ns ? o->this_over_ns + over_ns : 0;
	if (o->this_over_ns > o->longest_over_ns)
		o->longest_over_ns = o->this_over_ns;
	return count(o);
}

/*
 * Of a recording that goes on for long, what reading all that there is costs at its begin is not
 * what it will cost: only what the kernel does counts then.
 */
static uint64_t cost_to_keep(const struct overhead *o, const struct ledger_reading *last)
{
	uint64_t cost_ns = ledger_cost(last);

	if (o->opts.steady && is_beginning(o))
		cost_ns -= last->part_ns[LEDGER_OWN] + last->part_ns[LEDGER_HELPERS];
	return cost_ns;
}

/* What gives way by itself is no reason to give up anything, nor to go without it. */
static void leave_out_paced(struct ledger_reading *last)
{
	uint64_t *helpers_ns = &last->part_ns[LEDGER_HELPERS];

	*helpers_ns -= last->paced_ns < *helpers_ns ? last->paced_ns : *helpers_ns;
}

/*
 * Is it still clearly over the bound, a moment after a step? Of a recording that goes on for days
 * no second is to be over it by much, so the next step comes before a second's worth is paid again;
 * but not for what a capture's end costs once.
 */
static bool goes_on(const struct overhead *o, const struct ledger_reading *last, uint64_t now_ns)
{
	double most_ns = o->opts.most * (double)last->used_ns;

	return o->opts.steady && o->stepped_ns && !o->border_is_near &&
	       now_ns < o->stepped_ns + LEDGER_SPAN_NS && last->time_ns >= SOON_NS &&
	       (double)cost_to_keep(o, last) > most_ns * SHED_MUCH;
}

/*
 * Over the bound, is it only a little, and not for long, or over already? What a load costs as it
 * begins, it mostly costs once, and to give something up costs by itself.
 */
static bool passes(struct overhead *o, double share)
{
	struct ledger_reading lately;
	bool passing;

	if (!o->opts.steady)
		return false;
	passing = share < o->opts.most * SHED_MUCH && o->this_over_ns < MILDLY_NS;
	if (!passing && ledger__lately(&o->ledger, SOON_NS, &lately)) {
		leave_out_paced(&lately);
		passing = ledger_share(&lately, cost_to_keep(o, &lately)) <= o->opts.most;
	}
	if (passing)
		o->peek_ns = o->next_ns; /* no earlier look is needed */
	return passing;
}

/* Is the bound kept? Goes by the time since the last step, as what is given up costs no more. */
static int keep_bound(struct overhead *o, uint64_t now_ns)
{
	struct ledger_reading last;
	double share;
	int err = 0;

	if (o->opts.steady && !o->begun && !is_beginning(o)) {
		o->begun = true;
		ledger__restart(&o->window);
		return 0;
	}
	if (now_ns < o->quiet_ns || o->bursts.lasted_ns) {
		ledger__restart(&o->window);
		return 0;
	}
	if (!ledger__last(&o->window, &last))
		return 0;
	leave_out_paced(&last);
	if (goes_on(o, &last, now_ns))
		ledger_go_on(&last);
	share = ledger_share(&last, cost_to_keep(o, &last));
	o->nothing_left = false;
	if (share > o->opts.most && !passes(o, share))
		err = shed__step(o, &last, now_ns);
	else
		err = back__tend(o, &last, share, now_ns);
	if (!err && now_ns >= o->heat.since_ns + HEAT_NS)
		heat__forget(&o->heat, now_ns);
	return err;
}

/* Has more been paid, since the last step or in the last second, than the bound allows in one? */
static bool is_over(struct overhead *o, uint64_t now_ns)
{
	struct ledger_reading last = {0};
	double cost_ns, cpus = 1;

	if (o->opts.most <= 0 || now_ns < o->peek_ns || now_ns < o->quiet_ns || o->nothing_left)
		return false;
	o->peek_ns = now_ns + (o->opts.steady ? STEADY_PEEK_NS : PEEK_NS);
	cost_ns = measure_ahead(&o->measured, &o->calibration, &o->opts);
	if (ledger__last(&o->window, &last)) {
		leave_out_paced(&last);
		cost_ns += (double)ledger_cost(&last);
		cpus = (double)last.used_ns / (double)last.time_ns;
	}
	return cost_ns > o->opts.most * cpus * (double)NSEC_PER_SEC;
}

int overhead__tend(struct overhead *o, uint64_t now_ns)
{
	int err;

	if (!o->open)
		return 0;
	if (!is_beginning(o))
		room__share_out(o, now_ns);
	if (now_ns < o->next_ns && !is_over(o, now_ns))
		return 0;
	o->next_ns = now_ns + EVERY_NS;
	o->peek_ns = now_ns + EARLIEST_NS;
	err = overhead__end_spans(o);
	if (!err)
		err = bursts__tend(o, now_ns);
	if (!err)
		err = overhead_look(o);
	return err || o->opts.most <= 0 ? err : keep_bound(o, now_ns);
}

int overhead__close(struct overhead *o)
{
	o->open = false;
	room__end(o);
	return overhead_look(o);
}
