// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts that walk stacks in a recording: modules and their unwind tables, processes and their
 * mappings, the clocks.
 */
#include "capture/sample/impl.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/error.h"
#include "util/ration.h"
#include "util/sandbox.h"
#include "util/util.h"

#define TABLES_WAIT_NS NSEC_PER_SEC           /* a recording's start waits no longer for tables */
#define REFRESH_FIRST_NS (50 * NSEC_PER_MSEC) /* soon, for code that is mapped and unmapped fast */
#define REFRESH_ALL_FIRST_NS (2 * NSEC_PER_MSEC) /* of all processes: each is met rarely */
#define REFRESH_LAST_NS (2 * NSEC_PER_SEC)
#define NAMES_FIRST 5 /* until stacks__set_pace(), names take such a part of the bound */

/* ---- a recording's ---- */

static int new_sampler(struct stacks *s)
{
	int err = recorder__source(s->opts.recorder, "samples", &s->sample_source);

	return err ? err
		   : sampler__new(attacher__sample_program(s->opts.attacher, s->sample_source),
				  s->opts.sample_hz, &s->sampler);
}

static int new_entry_stacks(struct stacks *s)
{
	struct recorder *r = s->opts.recorder;
	int err = recorder__source(r, "stacks", &s->stack_source);

	if (err)
		return err;
	attacher__stack_source(s->opts.attacher, s->stack_source);
	s->stack_key = recorder__string(r, "Call stack");
	s->weight_key = recorder__string(r, "Call stack weight");
	return s->stack_key && s->weight_key ? recorder__meta(r, "with_stack", "true") : -ENOMEM;
}

static int new_wait_stacks(struct stacks *s)
{
	int err = recorder__source(s->opts.recorder, "wait_stacks", &s->wait_source);

	if (!err)
		attacher__wait_stack_source(s->opts.attacher, s->wait_source);
	return err;
}

int stacks__new(const struct stacks_opts *opts, struct stacks **out)
{
	struct modules_opts modules = {
		.nr_threads = opts->all_processes ? 1 : modules__usual_threads(),
		.in_order = opts->all_processes,
		.pace_ns = opts->pace_ns,
	};
	struct unwinder_maps maps;
	struct stacks *s;
	int err;

	*out = NULL;
	if (!opts->sample_hz && !opts->with_stack && !opts->waits)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, NULL, "no memory for stacks");
	s->opts = *opts;
	s->names_ns = opts->pace_ns / NAMES_FIRST;
	s->frames.most = opts->few ? FRAMES_FEW : FRAMES_MAX;
	s->frames.most_stacks = opts->few ? FRAMES_FEW_STACKS : FRAMES_MAX_STACKS;
	s->slot = targets__slot(opts->targets);
	attacher__stack_maps(opts->attacher, &maps);
	err = modules__new(&modules, &s->modules);
	if (!err)
		err = unwinder__new(&maps, opts->kernel_bytes, &s->unwinder);
	if (!err && opts->sample_hz)
		err = new_sampler(s);
	if (!err && opts->all_processes && sideband__new(&s->sideband))
		log_info(
			"the kernel tells nothing of processes that come and go: stacks of those that "
			"end at once are not walked");
	if (!err && opts->with_stack)
		err = new_entry_stacks(s);
	if (!err && opts->waits)
		err = new_wait_stacks(s);
	if (err)
		stacks__free(s);
	else
		*out = s;
	return err;
}

void stacks__free(struct stacks *s)
{
	struct target *t, *next;

	if (!s)
		return;
	TARGETS_EACH (s->opts.targets, t, next)
		stacks__forget(s, t);
	sampler__free(s->sampler);
	copied_walker__free(s->copies);
	address_space__close(s->told);
	sideband__free(s->sideband);
	unwinder__free(s->unwinder);
	modules__free(s->modules);
	frames__free(&s->frames);
	stacks_names__free(s);
	free(s);
}

uint32_t stacks__source(const struct stacks *s, const struct kprof_wire_hdr *h)
{
	if (h->kind == KPROF_WIRE_SAMPLE)
		return s->sample_source;
	return stacks__is_of_wait((const struct kprof_wire_stack *)h) ? s->wait_source
								      : s->stack_source;
}

bool stacks__looks_at(const struct stacks *s, const struct target *t)
{
	return s && stacks__of(s, t);
}

/* ---- processes ---- */

static struct stack_target *new_target(struct stacks *s, struct target *t)
{
	struct stack_target *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	if (address_space__open(s->modules, (pid_t)t->pid, &st->space)) {
		free(st);
		return NULL;
	}
	st->number = UNWINDER_NO_SPACE;
	return st;
}

/* Hands over a process's mappings together with new tables of JIT code. */
static int hand_over_jit(struct stacks *s, struct target *t)
{
	int err;

	address_space__settle(stacks__of(s, t)->space);
	err = stacks_tables__hand_over(s, t);
	if (!err)
		stacks_jit__settled(s, stacks__of(s, t));
	return err;
}

/*
 * A walk that went wrong looks like one through newly mapped code, and reading mappings blocks the
 * target's own changes to them. So while mappings turn out unchanged, they are read less and less
 * often.
 */
static void wait_for_refresh(const struct stacks *s, struct stack_target *st, uint64_t now_ns,
			     bool changed)
{
	if (changed || !st->refresh_wait_ns)
		st->refresh_wait_ns =
			s->opts.all_processes ? REFRESH_ALL_FIRST_NS : REFRESH_FIRST_NS;
	else if (st->stale && st->refresh_wait_ns < REFRESH_LAST_NS)
		st->refresh_wait_ns *= 2;
	st->next_refresh_ns = now_ns + st->refresh_wait_ns;
	st->stale = false;
}

int stacks__look(struct stacks *s, struct target *t)
{
	uint64_t now_ns = clock_mono_ns();
	int changed = 1;

	if (!s || t->shares_memory || t->kernel_thread)
		return 0;
	if (!stacks__of(s, t)) {
		t->slot[s->slot] = new_target(s, t);
		if (!stacks__of(s, t)) /* most likely it has ended, and a record will report that */
			return 0;
	} else {
		changed = address_space__refresh(stacks__of(s, t)->space);
	}
	wait_for_refresh(s, stacks__of(s, t), now_ns, changed > 0);
	stacks_python__look(s, t, now_ns);
	if (changed <= 0)
		return 0;
	stacks__of(s, t)->code_stale = true;
	if (!stacks_jit__look(s, t, now_ns))
		return stacks_tables__hand_over(s, t);
	return hand_over_jit(s, t);
}

int stacks__look_by(struct stacks *s, struct target *t, enum ration_use use)
{
	struct ration *r = s ? s->opts.reading : NULL;
	int err;

	if (!ration__lasts(r, use))
		return 1;
	ration__open(r);
	err = stacks__look(s, t);
	ration__close(r);
	return err;
}

void stacks__forget(struct stacks *s, struct target *t)
{
	struct stack_target *st = s ? stacks__of(s, t) : NULL;

	if (!st)
		return;
	if (recorder__store(s->opts.recorder) && recorder__window(s->opts.recorder)->open)
		stacks__record_jit_names(s, t); /* an error will show again at the next record */
	unwinder__remove(s->unwinder, t->pid, st->number);
	stacks_jit__forget(s, st);
	stacks_python__forget(s, st);
	stacks_jvm__forget(s, st);
	address_space__close(st->space);
	free(st);
	t->slot[s->slot] = NULL;
}

void stacks__shrink(struct stacks *s)
{
	if (s)
		map64__free(&s->frames.stacks);
}

/* ---- the clocks ---- */

int stacks__start(struct stacks *s)
{
	uint64_t begin_ns = clock_mono_ns(), now_ns = begin_ns;
	struct pollfd wait;
	int err = 0;

	if (!s)
		return 0;
	wait = (struct pollfd){.fd = modules__fd(s->modules), .events = POLLIN};
	do {
		/* asked first: if true, place_tables() takes all that there will be */
		bool done = modules__all_done(s->modules);

		if (stacks_tables__place(s))
			err = stacks_tables__settle(s);
		if (!err)
			err = stacks_tables__flush(s);
		if (err || done)
			break;
		poll(&wait, 1, 10);
		now_ns = clock_mono_ns();
	} while (now_ns - begin_ns < TABLES_WAIT_NS);
	s->tables_ns = now_ns - begin_ns;
	s->tables_late = !err && !modules__all_done(s->modules);
	if (s->tables_late)
		log_info(
			"unwind tables are still being built: walks that need them end as not_yet");
	return err || !s->sampler ? err : sampler__start(s->sampler);
}

/* What the process has compiled, and how that is called. 1: there is no time for it now. */
static int tend_jit(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct stack_target *st = stacks__of(s, t);
	bool code = stacks_jit__is_due(st, now_ns);
	bool names = st->jit_unnamed && now_ns >= st->jit_next_ns;
	int err = 0;

	stacks_jvm__tend(s, t);
	if (!code && !names)
		return 0;
	if (!ration__lasts(s->opts.reading, RATION_COMPILED))
		return 1;
	ration__open(s->opts.reading);
	if (code && stacks_jit__look(s, t, now_ns))
		err = hand_over_jit(s, t);
	if (names)
		stacks__read_jit_names(s, t, now_ns);
	ration__close(s->opts.reading);
	return err;
}

/* 1: there is no time for all of it now. */
static int tend_process(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct stack_target *st = stacks__of(s, t);
	int n = 0, then;

	if (st->stale && now_ns >= st->next_refresh_ns)
		n = stacks__look_by(s, t, RATION_STALE);
	else if (st->python)
		stacks_python__look(s, t, now_ns);
	then = n < 0 ? n : tend_jit(s, t, now_ns);
	return then ? then : n;
}

/* What there was no time for comes first the next time. */
static int tend_processes(struct stacks *s, uint64_t now_ns)
{
	struct target *first, *t;
	bool late = false;
	int n = 0;

	if (!targets__turn(s->opts.targets, &s->next_turn_ns, now_ns))
		return 0;
	first = targets__from(s->opts.targets, s->first_target);
	for (t = first; t && n >= 0; t = targets__round(s->opts.targets, t, first)) {
		n = stacks__of(s, t) ? tend_process(s, t, now_ns) : 0;
		if (n > 0 && !late)
			s->first_target = t->number;
		late |= n > 0;
	}
	return n < 0 ? n : 0;
}

int stacks__tend(struct stacks *s, uint64_t now_ns)
{
	bool done;
	int err = 0;

	if (!s)
		return 0;
	if (s->sideband)
		sideband__read(s->sideband, now_ns);
	done = s->tables_late && modules__all_done(s->modules);
	if (s->sampler)
		sampler__vary(s->sampler, now_ns);
	if (stacks_tables__place(s))
		err = stacks_tables__settle(s);
	if (!err)
		err = tend_processes(s, now_ns);
	if (!err)
		err = stacks_tables__flush(s);
	if (!err && s->opts.steady)
		err = stacks__name_some(s, now_ns);
	if (!err && done) {
		s->tables_late = false;
		log_info("the unwind tables are ready");
	}
	return err;
}

int stacks__fd(const struct stacks *s)
{
	return modules__fd(s->modules);
}

uint64_t stacks__period(const struct stacks *s)
{
	return s && s->sampler ? sampler__period(s->sampler) : 0;
}

/*
 * Of two periods, the kernel's program goes by the longer one while clocks may have either: a time
 * between two ticks that is too long for the period counts as one period only.
 */
void stacks__set_period(struct stacks *s, uint64_t period_ns)
{
	if (period_ns > sampler__period(s->sampler))
		attacher__sample_period(s->opts.attacher, period_ns);
	sampler__set_period(s->sampler, period_ns);
	attacher__sample_period(s->opts.attacher, period_ns);
}

void stacks__set_pace(struct stacks *s, const struct stacks_pace *pace)
{
	if (!s)
		return;
	modules__set_pace(s->modules,
			  stacks__border_is_near(s, clock_mono_ns()) ? 0 : pace->tables_ns);
	s->names_ns = pace->names_ns;
}

uint64_t stacks__paced_ns(const struct stacks *s)
{
	return s ? modules__paced_ns(s->modules) : 0;
}

void stacks__stop(struct stacks *s)
{
	if (s && s->sampler)
		sampler__stop(s->sampler);
}

/* ---- the summary ---- */

void stacks__stats(const struct stacks *s, struct kprof_session_stats *out)
{
	if (!s)
		return;
	out->samples = s->samples;
	out->samples_whole = s->ends[KPROF_UNWIND_WHOLE];
	out->sampled_ns = s->weight_ns;
	out->tables_ns = s->tables_ns;
	out->unwind_bytes = unwinder__bytes(s->unwinder);
}

/* The names in the capture, by enum kprof_unwind_end. */
static const char *const end_names[KPROF_UNWIND_NR_ENDS] = {
	[KPROF_UNWIND_GOING] = "going",           [KPROF_UNWIND_WHOLE] = "whole",
	[KPROF_UNWIND_NO_MAPPING] = "no_mapping", [KPROF_UNWIND_NOT_YET] = "not_yet",
	[KPROF_UNWIND_NO_TABLE] = "no_table",     [KPROF_UNWIND_NO_RULE] = "no_rule",
	[KPROF_UNWIND_ODD_RULE] = "odd_rule",     [KPROF_UNWIND_LOST_REGISTER] = "lost_register",
	[KPROF_UNWIND_BAD_STACK] = "bad_stack",   [KPROF_UNWIND_NO_PROGRESS] = "no_progress",
	[KPROF_UNWIND_TOO_DEEP] = "too_deep",
};

/* Adds the time that samples took in BPF: the target loses it, and the time of the interrupt. */
static void add_cost(const struct histogram *h, cJSON *o)
{
	uint32_t p50_ns = histogram__quantile(h, 0.5), p99_ns = histogram__quantile(h, 0.99);

	if (!h->nr)
		return;
	cJSON_AddNumberToObject(o, "bpf_p50_ns", p50_ns);
	cJSON_AddNumberToObject(o, "bpf_p99_ns", p99_ns);
	log_debug("a sample took %.1f us in BPF in the median, 99 %% of them at most %.1f us",
		  p50_ns / 1e3, p99_ns / 1e3);
}

/* Writes the metadata "stacks": how samples were taken, and how walks ended. */
static int record_summary(const struct stacks *s)
{
	cJSON *o = cJSON_CreateObject(), *ends = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "frequency_hz", s->opts.sample_hz);
	cJSON_AddNumberToObject(o, "samples", (double)s->samples);
	cJSON_AddNumberToObject(o, "sampled_ns", (double)s->weight_ns);
	if (s->opts.gil_only)
		cJSON_AddNumberToObject(o, "without_gil", (double)s->without_gil);
	for (size_t i = 0; i < KPROF_UNWIND_NR_ENDS; i++)
		if (s->ends[i])
			cJSON_AddNumberToObject(ends, end_names[i], (double)s->ends[i]);
	cJSON_AddItemToObject(o, "walks", ends);
	cJSON_AddItemToObject(o, "runtimes", stacks_runtimes__summary(s, end_names));
	add_cost(&s->cost_ns, o);
	cJSON_AddNumberToObject(o, "tables_ns", (double)s->tables_ns);
	cJSON_AddNumberToObject(o, "table_building_ns", (double)modules__build_ns(s->modules));
	cJSON_AddNumberToObject(o, "tables_cached", (double)modules__nr_cached(s->modules));
	if (s->sideband)
		cJSON_AddNumberToObject(o, "news_lost", (double)sideband__lost(s->sideband));
	if (s->nr_evicted || s->nr_without_room) {
		cJSON_AddNumberToObject(o, "tables_evicted", s->nr_evicted);
		cJSON_AddNumberToObject(o, "tables_without_room", s->nr_without_room);
	}
	if (s->opts.ask_jvm) {
		cJSON_AddNumberToObject(o, "jvm_asked", s->jvm_asked);
		cJSON_AddNumberToObject(o, "jvm_named", s->jvm_named);
	}
	cJSON_AddNumberToObject(o, "kernel_bytes", (double)unwinder__bytes(s->unwinder));
	return recorder__meta_value(s->opts.recorder, "stacks", o);
}

int stacks__summary(const struct stacks *s)
{
	return s ? record_summary(s) : 0;
}

static void say_without_gil(const struct stacks *s)
{
	if (!s->opts.gil_only || s->samples || !s->without_gil)
		return;
	log_warn(s->no_gil ? "this interpreter has no such lock" : "leave --gil out",
		 "no thread held the interpreter's lock in any of %llu samples",
		 (unsigned long long)s->without_gil);
}

/*
 * Warns of files that could not be read: for lack of rights, or because the process ended before.
 */
static void say_unread(const struct stacks *s)
{
	const struct module *first = NULL;
	size_t nr = modules__nr_unread(s->modules, &first);

	if (nr && s->ends[KPROF_UNWIND_NO_TABLE])
		log_warn(sandbox_lacks_for_files(-EACCES),
			 "%zu file%s could not be read, and stacks through %s end there: %s", nr,
			 nr == 1 ? "" : "s", nr == 1 ? "it" : "them", module__why(first));
}

int stacks__finish(struct stacks *s)
{
	int err;

	if (!s)
		return 0;
	say_without_gil(s);
	say_unread(s);
	err = stacks__names(s);
	return err ? err : record_summary(s);
}
