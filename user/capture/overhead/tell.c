// SPDX-License-Identifier: BSD-2-Clause
/* The ledger and the steps in the capture: gaps, and a member of the metadata "overhead". */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "capture/overhead/impl.h"
#include "util/util.h"

/* By how much the cost of one call may be wrong (docs/overhead.md). */
#define CALL_COST_ERROR 0.25

#define GIVEN_UP "given up: it cost too much (--max-overhead)"

static const char *const part_names[LEDGER_PARTS] = {
	[LEDGER_TRAPS] = "traps", [LEDGER_BPF] = "bpf",         [LEDGER_SAMPLES] = "samples",
	[LEDGER_OWN] = "own",     [LEDGER_HELPERS] = "helpers", [LEDGER_AGENTS] = "agents",
};

static const char *const program_names[KPROF_WIRE_NR_PROGRAMS] = {
	[KPROF_PROGRAM_BEGIN] = "begin",
	[KPROF_PROGRAM_BEGIN_TEXT] = "begin_text",
	[KPROF_PROGRAM_BEGIN_ARGS] = "begin_args",
	[KPROF_PROGRAM_BEGIN_INPUTS] = "begin_inputs",
	[KPROF_PROGRAM_SITE] = "site",
	[KPROF_PROGRAM_SITE_RESULT] = "site_result",
	[KPROF_PROGRAM_MAPS] = "maps",
	[KPROF_PROGRAM_BATCH] = "batch",
	[KPROF_PROGRAM_MARK] = "mark",
	[KPROF_PROGRAM_ENTRY_STACK] = "entry_stack",
	[KPROF_PROGRAM_SAMPLE] = "sample",
	[KPROF_PROGRAM_TASK] = "task",
	[KPROF_PROGRAM_SWITCH] = "switch",
	[KPROF_PROGRAM_WAKE] = "wake",
};

static const char *const step_names[SHED_KINDS] = {
	[SHED_RATE] = "rate",
	[SHED_RATE_BACK] = "rate_back",
	[SHED_PROBES] = "operators",
	[SHED_ENTRY_STACKS] = "stacks",
	[SHED_WAIT_STACKS] = "wait_stacks",
	[SHED_WAITS] = "waits",
	[SHED_ALL_PROBES] = "all_operators",
	[SHED_CHILDREN] = "children",
};

const char *shed__name(enum shed_kind kind)
{
	return step_names[kind];
}

/* What the gap of a step is of; NULL: it makes none of its own. */
static const char *const step_gaps[SHED_KINDS] = {
	[SHED_ENTRY_STACKS] = "stacks of operators and calls",
	[SHED_WAIT_STACKS] = "stacks of waits",
	[SHED_WAITS] = "waits",
	[SHED_ALL_PROBES] = "all operators and calls",
	[SHED_CHILDREN] = "child processes that are forked",
};

/* The name of what the probe shows. One that is read at each hit is not known: its kind is. */
static const char *name_of(const struct overhead *o, uint32_t index, char *text, size_t size)
{
	const struct probe *p = probe_set__probe(o->opts.probes, index);

	if (!p->name)
		return recorder__source_at(o->opts.recorder, p->source)->name;
	if (!p->overload || !*p->overload)
		return p->name;
	snprintf(text, size, "%s.%s", p->name, p->overload);
	return text;
}

/* ---- gaps ---- */

/* until_ns: 0: to the end */
static int put_gap(struct overhead *o, const char *what, uint64_t since_ns, uint64_t until_ns)
{
	return recorder__gap(o->opts.recorder, 0, what, GIVEN_UP, since_ns,
			     until_ns ? until_ns : recorder__window(o->opts.recorder)->end_ns);
}

static int put_step_gap(struct overhead *o, const struct shed_step *step)
{
	if (step_gaps[step->kind])
		return put_gap(o, step_gaps[step->kind], step->time_ns, step->back_ns);
	if (step->kind != SHED_PROBES)
		return 0;
	return recorder__gap(o->opts.recorder, 0, step_gaps[SHED_ALL_PROBES],
			     "some of them were being given up (--max-overhead)", step->time_ns,
			     step->until_ns);
}

static int put_gaps(struct overhead *o)
{
	char name[512];
	int err = 0;

	for (size_t i = 0; i < o->nr_dropped && !err; i++)
		err = put_gap(o, name_of(o, o->dropped[i].probe, name, sizeof(name)),
			      o->dropped[i].time_ns, 0);
	for (size_t i = 0; i < o->nr_steps && !err; i++)
		err = put_step_gap(o, &o->steps[i]);
	return err;
}

/* ---- JSON ---- */

static void number(cJSON *to, const char *name, double value)
{
	cJSON_AddNumberToObject(to, name, value);
}

/*
 * The standard error of a rate, and by how much it may be wrong besides, as a part of it. One burst
 * does not tell how they differ: then it may be wrong by as much as it is.
 */
static double error_of(const struct tally *t, double doubt)
{
	double error = t->nr > 1 ? tally__error(t) : tally__rate(t);

	return hypot(error, tally__rate(t) * doubt);
}

/* What bursts say of the time since the operator was given up: calls, and ns in them. */
static void add_bursts(const struct overhead *o, const struct dropped *d, cJSON *to)
{
	double used_ns = (double)(o->latest.recorded_ns - d->recorded_ns);
	double doubt;

	number(to, "bursts", d->rate.nr);
	if (!d->rate.nr)
		return;
	doubt = d->traps_ns / d->rate.used * CALL_COST_ERROR;
	number(to, "calls", tally__rate(&d->rate) * used_ns);
	number(to, "ns", tally__rate(&d->busy) * used_ns);
	number(to, "calls_error", error_of(&d->rate, doubt) * used_ns);
	number(to, "ns_error", error_of(&d->busy, doubt) * used_ns);
}

static void add_dropped(const struct overhead *o, const struct shed_step *step, cJSON *to)
{
	cJSON *all = cJSON_AddArrayToObject(to, "operators");
	char name[512];

	for (uint32_t i = step->first; i < step->first + step->nr; i++) {
		const struct dropped *d = &o->dropped[i];
		cJSON *one = cJSON_CreateObject();

		cJSON_AddStringToObject(one, "name", name_of(o, d->probe, name, sizeof(name)));
		number(one, "calls_a_second", d->calls_a_second);
		if (d->mean_ns > 0)
			number(one, "mean_ns", d->mean_ns);
		number(one, "for_ns", (double)(o->latest.time_ns - d->time_ns));
		add_bursts(o, d, one);
		cJSON_AddItemToArray(all, one);
	}
	number(to, "places", step->nr_probes);
}

static cJSON *steps_json(const struct overhead *o)
{
	cJSON *all = cJSON_CreateArray();

	for (size_t i = 0; i < o->nr_steps; i++) {
		const struct shed_step *step = &o->steps[i];
		cJSON *one = cJSON_CreateObject();

		cJSON_AddStringToObject(one, "step", step_names[step->kind]);
		number(one, "at_ns", (double)(step->time_ns - o->first.time_ns));
		number(one, "took_ns", (double)(step->until_ns - step->time_ns));
		number(one, "share", step->share);
		if (step->back_ns)
			number(one, "back_ns", (double)(step->back_ns - o->first.time_ns));
		if (step->kind == SHED_RATE || step->kind == SHED_RATE_BACK) {
			number(one, "from_hz", step->from);
			number(one, "to_hz", step->to);
		}
		if (step->kind == SHED_PROBES)
			add_dropped(o, step, one);
		cJSON_AddItemToArray(all, one);
	}
	return all;
}

static cJSON *parts_json(const struct overhead *o, double used_ns)
{
	cJSON *parts = cJSON_CreateObject();

	for (int i = 0; i < LEDGER_PARTS; i++) {
		cJSON *one = cJSON_AddObjectToObject(parts, part_names[i]);
		double ns = (double)(o->latest.part_ns[i] - o->first.part_ns[i]);

		number(one, "ns", ns);
		number(one, "share", used_ns > 0 ? ns / used_ns : 0);
	}
	return parts;
}

static cJSON *programs_json(const struct overhead *o)
{
	cJSON *programs = cJSON_CreateObject();

	for (int i = 0; i < KPROF_WIRE_NR_PROGRAMS; i++) {
		uint64_t runs = o->measured.programs[i].runs - o->programs_before[i].runs;
		cJSON *one;

		if (!program_names[i] || !runs)
			continue;
		one = cJSON_AddObjectToObject(programs, program_names[i]);
		number(one, "runs", (double)runs);
		number(one, "ns", o->measured.program_ns[i] - o->program_ns_before[i]);
	}
	return programs;
}

static cJSON *calibration_json(const struct calibration *c)
{
	cJSON *to = cJSON_CreateObject();

	number(to, "trap_ns", c->trap_ns);
	number(to, "trap_single_stepped_ns", c->stepped_ns);
	number(to, "clock_ns", c->clock_ns);
	number(to, "interrupt_ns", c->interrupt_ns);
	return to;
}

static cJSON *memory_json(const struct overhead *o)
{
	cJSON *to = cJSON_CreateObject();

	number(to, "resident_bytes", (double)measure_resident_bytes());
	number(to, "most_resident_bytes", (double)measure_most_resident_bytes());
	number(to, "kernel_maps_bytes", (double)attacher__map_bytes(o->opts.attacher));
	return to;
}

double overhead__share(const struct overhead *o)
{
	double elapsed_ns = (double)(o->latest.time_ns - o->first.time_ns);
	double used_ns = (double)(o->latest.used_ns - o->first.used_ns);
	double base_ns = used_ns > elapsed_ns ? used_ns : elapsed_ns;

	return base_ns > 0 ? (double)(ledger_cost(&o->latest) - ledger_cost(&o->first)) / base_ns
			   : 0;
}

static cJSON *ledger_json(const struct overhead *o)
{
	double elapsed_ns = (double)(o->latest.time_ns - o->first.time_ns);
	double used_ns = (double)(o->latest.used_ns - o->first.used_ns), base_ns;
	double cost_ns = (double)(ledger_cost(&o->latest) - ledger_cost(&o->first));
	cJSON *to = cJSON_CreateObject();

	base_ns = used_ns > elapsed_ns ? used_ns : elapsed_ns;
	cJSON_AddStringToObject(to, "of", o->opts.all_processes ? "machine" : "processes");
	number(to, "elapsed_ns", elapsed_ns);
	number(to, "used_ns", used_ns);
	number(to, "base_ns", base_ns);
	number(to, "cost_ns", cost_ns);
	number(to, "share", base_ns > 0 ? cost_ns / base_ns : 0);
	number(to, "last_second_share", o->share);
	number(to, "worst_second_share", o->worst);
	number(to, "before_ns",
	       (double)(o->first.part_ns[LEDGER_OWN] + o->first.part_ns[LEDGER_HELPERS]));
	if (o->opts.most > 0) {
		number(to, "bound", o->opts.most);
		number(to, "over_bound_ns", (double)o->over_ns);
		number(to, "longest_over_bound_ns", (double)o->longest_over_ns);
	}
	cJSON_AddItemToObject(to, "parts", parts_json(o, base_ns));
	cJSON_AddItemToObject(to, "programs", programs_json(o));
	cJSON_AddItemToObject(to, "calibration", calibration_json(&o->calibration));
	cJSON_AddItemToObject(to, "memory", memory_json(o));
	cJSON_AddItemToObject(to, "steps", steps_json(o));
	if (o->bursts.nr) {
		number(to, "bursts", o->bursts.nr);
		number(to, "bursts_ns", (double)o->bursts.all_ns);
	}
	if (o->more_steps)
		number(to, "more_steps", (double)o->more_steps);
	return to;
}

int overhead__finish(struct overhead *o, cJSON *to)
{
	cJSON_AddItemToObject(to, "ledger", ledger_json(o));
	return put_gaps(o);
}
