// SPDX-License-Identifier: BSD-2-Clause
/*
 * Bursts: what was given up is recorded for some milliseconds now and then, so that the number of
 * its calls and their time are known, with an error. How often depends on what a burst costs.
 */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "capture/overhead/impl.h"
#include "util/error.h"
#include "util/haste.h"
#include "util/util.h"

#define LASTS_NS (8 * NSEC_PER_MSEC)
/* So that there is a whole second between two of them, in which the bound is looked at. */
#define MOST_OFTEN_NS (1250 * NSEC_PER_MSEC)
/* All bursts together may cost this part of the bound. */
#define PART 0.25
/* After one that costs as much as so many seconds may cost, there are no more. */
#define MOST_AT_ONCE 4
/* Probes may make a program slower by this part of its time; more is not reckoned with. */
#define MOST_SLOWED 0.9

void bursts__free(struct bursts *b)
{
	map64__free(&b->at);
}

int bursts__add(struct bursts *b, uint32_t probe, size_t index, uint64_t now_ns)
{
	uint64_t *at = map64__at(&b->at, probe);

	if (!at)
		return -ENOMEM;
	*at = index + 1;
	/* when giving up is no longer part of the last second */
	b->next_ns = now_ns + 2 * MOST_OFTEN_NS;
	return 0;
}

struct dropped *bursts__of(const struct overhead *o, uint32_t probe)
{
	uint64_t at = o->nr_dropped ? map64__get(&o->bursts.at, probe) : 0;

	return at ? &o->dropped[at - 1] : NULL;
}

bool overhead__gave_up(const struct overhead *o, uint32_t probe)
{
	return bursts__of(o, probe);
}

/* ---- what a burst has told ---- */

void tally__add(struct tally *t, double value, double used)
{
	t->nr++;
	t->value += value;
	t->used += used;
	t->value_value += value * value;
	t->value_used += value * used;
	t->used_used += used * used;
}

double tally__rate(const struct tally *t)
{
	return t->used > 0 ? t->value / t->used : 0;
}

double tally__error(const struct tally *t)
{
	double rate = tally__rate(t), squares; /* of what each is off the rate */

	squares = t->value_value - 2 * rate * t->value_used + rate * rate * t->used_used;
	return t->nr > 1 && t->used > 0 ? sqrt(fmax(squares, 0) * t->nr / (t->nr - 1)) / t->used
					: 0;
}

/*
 * By CPU time, since in so short a time a program may get more of a CPU, or less; and without that
 * of the traps. (Not each burst by itself: where the traps take most of it, an error in what they
 * take would multiply the calls of this one burst.)
 */
static void take_one(struct dropped *d, double used_ns, double traps_ns, double hit_ns)
{
	double calls = (double)d->calls, mean_ns = 0;

	/* half of a hit lies after the moment at which its call begins, half before the end's */
	if (d->timed)
		mean_ns = fmax(0, (double)d->timed_ns / (double)d->timed - hit_ns);
	tally__add(&d->rate, calls, used_ns - traps_ns);
	tally__add(&d->busy, calls * mean_ns, used_ns - traps_ns);
	d->traps_ns += traps_ns;
}

static void take(struct overhead *o)
{
	struct bursts *b = &o->bursts;
	double used_ns = (double)b->recorded_ns, hits_ns = (double)b->hits_ns;
	double traps_ns = fmin(hits_ns, used_ns * MOST_SLOWED);

	for (size_t i = 0; i < o->nr_dropped; i++)
		take_one(&o->dropped[i], used_ns, traps_ns,
			 b->hits ? hits_ns / (double)b->hits : 0);
	b->nr++;
	b->all_ns += b->lasted_ns;
	log_debug("a burst of %.1f ms: %.1f ms of CPU time, of which probes took %.1f ms, and cost "
		  "%.1f ms",
		  (double)b->lasted_ns / 1e6, used_ns / 1e6, hits_ns / 1e6,
		  (double)(ledger_cost(&o->latest) - b->cost_ns) / 1e6);
}

/* ---- a burst ---- */

static void plan_next(struct overhead *o, double cost_ns)
{
	struct bursts *b = &o->bursts;
	struct ledger_reading last;
	double cpus = 1, wait_ns, most_ns;

	if (ledger__last(&o->ledger, &last))
		cpus = (double)last.used_ns / (double)last.time_ns;
	most_ns = o->opts.most * cpus * (double)NSEC_PER_SEC; /* in a second */
	b->too_dear = cost_ns > most_ns * MOST_AT_ONCE;
	b->sum_cost_ns += cost_ns;
	b->nr_costs++;
	/*
	 * By what they cost on average: where the program calls much, a burst costs more, and would
	 * else be rarer than where it does not. And not in step with what the program does: from
	 * half as long to half as long again.
	 */
	wait_ns = b->sum_cost_ns / b->nr_costs / (o->opts.most * PART * cpus);
	wait_ns *= 0.5 + (double)(o->latest.time_ns / 1000 % 1000) / 1000;
	b->next_ns = o->latest.time_ns +
		     (wait_ns > (double)MOST_OFTEN_NS ? (uint64_t)wait_ns : MOST_OFTEN_NS);
}

/* The records for which a ring had no room. */
static uint64_t nr_lost(const struct overhead *o)
{
	struct kprof_wire_count count;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < recorder__nr_sources(o->opts.recorder); i++)
		if (!attacher__counts(o->opts.attacher, i, &count))
			sum += count.dropped;
	return sum;
}

/* The probes are placed: from when to when their hits are recorded. */
static int record(struct overhead *o)
{
	const struct timespec lasts = {.tv_nsec = LASTS_NS};
	struct bursts *b = &o->bursts;
	struct ledger_reading before;
	uint64_t begin_ns, lost = nr_lost(o);
	int err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);

	if (err)
		return err;
	before = o->latest;
	begin_ns = clock_mono_ns();
	attacher__unshed(o->opts.attacher, KPROF_WIRE_SHED_BURSTS);
	nanosleep(&lasts, NULL);
	err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);
	attacher__shed(o->opts.attacher, KPROF_WIRE_SHED_BURSTS);
	b->recorded_ns = o->latest.recorded_ns - before.recorded_ns;
	b->hits = o->latest.probe_runs - before.probe_runs;
	b->hits_ns = o->latest.cause_ns[LEDGER_FOR_PROBES] - before.cause_ns[LEDGER_FOR_PROBES];
	b->nr_lost = nr_lost(o) - lost;
	o->endless_ns = clock_mono_ns();
	o->ended = 0;
	b->lasted_ns = o->endless_ns - begin_ns;
	return err;
}

/* Where not all probes can be placed, nothing is recorded: it would count as fewer calls. */
static int burst(struct overhead *o)
{
	int err, nice = haste__begin();
	bool placed;

	for (size_t i = 0; i < o->nr_dropped; i++)
		o->dropped[i].calls = o->dropped[i].timed = o->dropped[i].timed_ns = 0;
	err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);
	o->bursts.cost_ns = ledger_cost(&o->latest);
	attacher__shed(o->opts.attacher, KPROF_WIRE_SHED_BURSTS);
	placed = !err && probe_set__burst(o->opts.probes);
	if (placed)
		err = record(o);
	probe_set__burst_end(o->opts.probes);
	haste__end(nice);
	if (o->bursts.lasted_ns)
		log_debug("a burst is to be read");
	return err;
}

/*
 * The records of a burst, if it had any, have been read. What all of that cost is not held against
 * what stays.
 */
static int finish(struct overhead *o, uint64_t now_ns)
{
	int err = measure(&o->measured, &o->calibration, &o->opts, &o->latest);

	if (o->bursts.lasted_ns && o->bursts.nr_lost)
		log_debug("a burst tells nothing: %llu records of it are lost",
			  (unsigned long long)o->bursts.nr_lost);
	else if (o->bursts.lasted_ns && o->bursts.recorded_ns) /* else nothing has run */
		take(o);
	plan_next(o, (double)(ledger_cost(&o->latest) - o->bursts.cost_ns));
	o->bursts.lasted_ns = 0;
	if (o->quiet_ns <= now_ns)
		o->quiet_ns = now_ns + 1;
	return err;
}

int bursts__tend(struct overhead *o, uint64_t now_ns)
{
	struct bursts *b = &o->bursts;
	int err;

	if (o->endless_ns) /* not all has been read yet */
		return 0;
	if (b->lasted_ns)
		return finish(o, now_ns);
	if (!o->nr_dropped || b->too_dear || now_ns < b->next_ns || o->shed >> SHED_ALL_PROBES & 1)
		return 0;
	err = burst(o);
	/* where its probes could not be placed, there is nothing to be read */
	return err || b->lasted_ns ? err : finish(o, now_ns);
}
