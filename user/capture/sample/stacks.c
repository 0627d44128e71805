// SPDX-License-Identifier: BSD-2-Clause
/* What walks stacks in a session: modules and their tables, processes and their mappings, the clocks. */
#include "capture/sample/stacks.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

#define TABLES_WAIT_NS NSEC_PER_SEC /* longer than that a recording does not wait for them */
#define REFRESH_FIRST_NS (50 * NSEC_PER_MSEC) /* for code that comes and goes fast */
#define REFRESH_LAST_NS (2 * NSEC_PER_SEC)

/* ---- a session's ------------------------------------------------------------------------------------ */

static int new_sampler(struct kprof_session *s)
{
	struct session_stacks *st = s->stacks;
	int err = session__source(s, "samples", &st->sample_source);

	return err ? err
		   : sampler__new(attacher__sample_program(s->attacher, st->sample_source),
				  s->opts.sample_hz, &st->sampler);
}

static int new_entry_stacks(struct kprof_session *s)
{
	static const char call_stack[] = "Call stack", weight[] = "Call stack weight";
	struct session_stacks *st = s->stacks;
	int err = session__source(s, "stacks", &st->stack_source);

	if (err)
		return err;
	attacher__stack_source(s->attacher, st->stack_source);
	st->stack_key = store_writer__string(s->store, call_stack, strlen(call_stack));
	st->weight_key = store_writer__string(s->store, weight, strlen(weight));
	return st->stack_key && st->weight_key ? session__meta(s, "with_stack", "true") : -ENOMEM;
}

int stacks__new(struct kprof_session *s)
{
	struct modules_opts opts = {.nr_threads = modules__usual_threads()};
	struct unwinder_maps maps;
	int err;

	if (!s->opts.sample_hz && !s->opts.with_stack)
		return 0;
	s->stacks = calloc(1, sizeof(*s->stacks));
	if (!s->stacks)
		return error_set(-ENOMEM, NULL, "no memory for stacks");
	attacher__stack_maps(s->attacher, &maps);
	err = modules__new(&opts, &s->stacks->modules);
	if (!err)
		err = unwinder__new(&maps, &s->stacks->unwinder);
	if (!err && s->opts.sample_hz)
		err = new_sampler(s);
	if (!err && s->opts.with_stack)
		err = new_entry_stacks(s);
	return err;
}

void stacks__free(struct kprof_session *s)
{
	if (!s->stacks)
		return;
	sampler__free(s->stacks->sampler);
	unwinder__free(s->stacks->unwinder);
	modules__free(s->stacks->modules);
	frames__free(&s->stacks->frames);
	stacks_python__free(s->stacks);
	free(s->stacks);
	s->stacks = NULL;
}

/* ---- processes --------------------------------------------------------------------------------------- */

static struct stack_target *new_target(struct kprof_session *s, struct target *t)
{
	struct stack_target *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	if (space__open(s->stacks->modules, (pid_t)t->pid, &st->space)) {
		free(st);
		return NULL;
	}
	st->number = UNWINDER_NO_SPACE;
	return st;
}

/* Each is said once: of the first process beyond a bound of all processes, of each process that is beyond one of its own. */
static void say_left_out(struct kprof_session *s, struct target *t, int err)
{
	struct session_stacks *ss = s->stacks;
	bool *said = err == -ENOSPC ? &ss->said_left_out : &t->stacks->said_left_out;

	if (err && !*said)
		log_warn(kprof_error_hint(), "%s", kprof_error_cause());
	else if (!*said)
		log_warn(
			NULL,
			"process %u has code in %zu places: stacks through those beyond the first %u end there",
			t->pid, space__nr(t->stacks->space), KPROF_UNWIND_MAX_MAPPINGS);
	*said = true;
}

static int hand_over(struct kprof_session *s, struct target *t)
{
	struct stack_target *st = t->stacks;
	int err = unwinder__set(s->stacks->unwinder, t->pid, &st->number,
				space__mappings(st->space), space__nr(st->space));

	/* Too many at once: the recording goes on without this one's stacks. */
	if (err == -ENOSPC || err == -E2BIG) {
		say_left_out(s, t, err);
		err = 0;
	} else if (!err && space__nr(st->space) > KPROF_UNWIND_MAX_MAPPINGS) {
		say_left_out(s, t, 0);
	}
	return err;
}

/* With new tables of code made at run time. */
static int hand_over_made(struct kprof_session *s, struct target *t)
{
	int err;

	space__settle(t->stacks->space);
	err = hand_over(s, t);
	if (!err)
		stacks_made__settled(s, t);
	return err;
}

/*
 * A walk that went astray looks like one through code that is new, and reading mappings holds up the target's own changes
 * to them: where there was nothing new, it is looked at less and less often.
 */
static void wait_for_refresh(struct stack_target *st, uint64_t now_ns, bool changed)
{
	if (changed || !st->refresh_wait_ns)
		st->refresh_wait_ns = REFRESH_FIRST_NS;
	else if (st->stale && st->refresh_wait_ns < REFRESH_LAST_NS)
		st->refresh_wait_ns *= 2;
	st->next_refresh_ns = now_ns + st->refresh_wait_ns;
	st->stale = false;
}

int stacks__look(struct kprof_session *s, struct target *t)
{
	uint64_t now_ns = clock_mono_ns();
	int changed = 1;

	if (!s->stacks || t->shares_memory)
		return 0;
	if (!t->stacks) {
		t->stacks = new_target(s, t);
		if (!t->stacks) /* it is gone, most likely: its exit will be heard of */
			return 0;
	} else {
		changed = space__refresh(t->stacks->space);
	}
	wait_for_refresh(t->stacks, now_ns, changed > 0);
	stacks_python__look(s, t, now_ns);
	if (changed <= 0)
		return 0;
	t->stacks->made_stale = true;
	if (!stacks_made__look(s, t, now_ns))
		return hand_over(s, t);
	return hand_over_made(s, t);
}

void stacks__forget(struct kprof_session *s, struct target *t)
{
	struct stack_target *st = t->stacks;

	if (!st)
		return;
	if (s->store && s->started)
		stacks__tell_jit_names(s, t); /* an error comes again with the next record */
	unwinder__remove(s->stacks->unwinder, t->pid, st->number);
	stacks_made__forget(s, st);
	stacks_python__forget(s, st);
	space__close(st->space);
	free(st);
	t->stacks = NULL;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

/* Hands over the tables that are ready. 1: there were some. */
static int place_tables(struct kprof_session *s)
{
	struct modules *ms = s->stacks->modules;
	struct module *m;
	int placed = 0;

	while ((m = modules__take(ms))) {
		const struct unwind_table *table = module__table(m);

		if (!table)
			continue;
		if (unwinder__place(s->stacks->unwinder, modules__rules(ms), table, &m->first_page))
			log_warn(NULL, "stacks through %s end there: %s", m->path,
				 kprof_error_cause());
		else
			placed = 1;
		modules__drop_table(ms, m);
	}
	return placed;
}

static int settle(struct kprof_session *s)
{
	struct target *t;
	int err = 0;

	for (t = s->targets; t && !err; t = t->hh.next)
		if (t->stacks && space__settle(t->stacks->space) > 0)
			err = hand_over(s, t);
	return err;
}

static int flush(struct kprof_session *s)
{
	int err = unwinder__flush(s->stacks->unwinder);

	if (!err)
		stacks_made__published(s);
	return err;
}

int stacks__start(struct kprof_session *s)
{
	uint64_t begin_ns = clock_mono_ns(), now_ns = begin_ns;
	struct pollfd wait;
	int err = 0;

	if (!s->stacks)
		return 0;
	wait = (struct pollfd){.fd = modules__fd(s->stacks->modules), .events = POLLIN};
	do {
		bool done =
			modules__all_done(s->stacks->modules); /* then all of them are taken now */

		if (place_tables(s))
			err = settle(s);
		if (!err)
			err = flush(s);
		if (err || done)
			break;
		poll(&wait, 1, 10);
		now_ns = clock_mono_ns();
	} while (now_ns - begin_ns < TABLES_WAIT_NS);
	s->stacks->tables_ns = now_ns - begin_ns;
	s->stacks->tables_late = !err && !modules__all_done(s->stacks->modules);
	if (s->stacks->tables_late)
		log_info(
			"unwind tables are still being built: walks that need them end as not_yet");
	return err || !s->stacks->sampler ? err : sampler__start(s->stacks->sampler);
}

int stacks__tend(struct kprof_session *s, uint64_t now_ns)
{
	struct target *t;
	bool done;
	int err = 0;

	if (!s->stacks)
		return 0;
	done = s->stacks->tables_late && modules__all_done(s->stacks->modules);
	if (s->stacks->sampler)
		sampler__vary(s->stacks->sampler, now_ns);
	if (place_tables(s))
		err = settle(s);
	for (t = s->targets; t && !err; t = t->hh.next) {
		if (t->stacks && t->stacks->stale && now_ns >= t->stacks->next_refresh_ns)
			err = stacks__look(s, t);
		else if (t->stacks && t->stacks->python)
			stacks_python__look(s, t, now_ns);
		if (!err && t->stacks && stacks_made__look(s, t, now_ns))
			err = hand_over_made(s, t);
		if (t->stacks && t->stacks->jit_unnamed && now_ns >= t->stacks->jit_next_ns)
			stacks__read_jit_names(s, t, now_ns);
	}
	if (!err)
		err = flush(s);
	if (!err && done) {
		s->stacks->tables_late = false;
		log_info("the unwind tables are ready");
	}
	return err;
}

void stacks__stop(struct kprof_session *s)
{
	if (s->stacks && s->stacks->sampler)
		sampler__stop(s->stacks->sampler);
}

/* ---- what is said about it --------------------------------------------------------------------------- */

void stacks__stats(const struct kprof_session *s, struct kprof_session_stats *out)
{
	const struct session_stacks *st = s->stacks;

	if (!st)
		return;
	out->samples = st->samples;
	out->samples_whole = st->ends[KPROF_UNWIND_WHOLE];
	out->sampled_ns = st->weight_ns;
	out->tables_ns = st->tables_ns;
	out->unwind_bytes = unwinder__bytes(st->unwinder);
}

/* By enum kprof_unwind_end, as they are called in the capture. */
static const char *const end_names[KPROF_UNWIND_NR_ENDS] = {
	[KPROF_UNWIND_GOING] = "going",           [KPROF_UNWIND_WHOLE] = "whole",
	[KPROF_UNWIND_NO_MAPPING] = "no_mapping", [KPROF_UNWIND_NOT_YET] = "not_yet",
	[KPROF_UNWIND_NO_TABLE] = "no_table",     [KPROF_UNWIND_NO_RULE] = "no_rule",
	[KPROF_UNWIND_ODD_RULE] = "odd_rule",     [KPROF_UNWIND_LOST_REGISTER] = "lost_register",
	[KPROF_UNWIND_BAD_STACK] = "bad_stack",   [KPROF_UNWIND_NO_PROGRESS] = "no_progress",
	[KPROF_UNWIND_TOO_DEEP] = "too_deep",
};

/* What the samples themselves took: the target's loss, but for the interrupt. */
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

/* META "stacks": how it was sampled, how walks ended. */
static int tell_summary(struct kprof_session *s)
{
	const struct session_stacks *st = s->stacks;
	cJSON *o = cJSON_CreateObject(), *ends = cJSON_CreateObject();
	char *text;
	int err;

	cJSON_AddNumberToObject(o, "frequency_hz", s->opts.sample_hz);
	cJSON_AddNumberToObject(o, "samples", (double)st->samples);
	cJSON_AddNumberToObject(o, "sampled_ns", (double)st->weight_ns);
	if (s->opts.gil_only)
		cJSON_AddNumberToObject(o, "without_gil", (double)st->without_gil);
	for (size_t i = 0; i < KPROF_UNWIND_NR_ENDS; i++)
		if (st->ends[i])
			cJSON_AddNumberToObject(ends, end_names[i], (double)st->ends[i]);
	cJSON_AddItemToObject(o, "walks", ends);
	add_cost(&st->cost_ns, o);
	cJSON_AddNumberToObject(o, "tables_ns", (double)st->tables_ns);
	cJSON_AddNumberToObject(o, "table_building_ns", (double)modules__build_ns(st->modules));
	cJSON_AddNumberToObject(o, "tables_cached", (double)modules__nr_cached(st->modules));
	cJSON_AddNumberToObject(o, "kernel_bytes", (double)unwinder__bytes(st->unwinder));
	text = cJSON_PrintUnformatted(o);
	err = text ? session__meta(s, "stacks", text) : -ENOMEM;
	cJSON_free(text);
	cJSON_Delete(o);
	return err;
}

static void say_without_gil(const struct kprof_session *s)
{
	const struct session_stacks *st = s->stacks;

	if (!s->opts.gil_only || st->samples || !st->without_gil)
		return;
	log_warn(st->no_gil ? "this interpreter has no such lock" : "leave --gil out",
		 "no thread held the interpreter's lock in any of %llu samples",
		 (unsigned long long)st->without_gil);
}

/* Without the right to read them, or gone with their process before anybody looked. */
static void say_unread(const struct kprof_session *s)
{
	const struct session_stacks *st = s->stacks;
	const struct module *first = NULL;
	size_t nr = modules__nr_unread(st->modules, &first);

	if (nr && st->ends[KPROF_UNWIND_NO_TABLE])
		log_warn(geteuid() ? "files that only others may read need CAP_DAC_READ_SEARCH"
				   : NULL,
			 "%zu file%s could not be read, and stacks through %s end there: %s", nr,
			 nr == 1 ? "" : "s", nr == 1 ? "it" : "them", module__why(first));
}

int stacks__finish(struct kprof_session *s)
{
	int err;

	if (!s->stacks)
		return 0;
	say_without_gil(s);
	say_unread(s);
	err = tell_summary(s);
	return err ? err : stacks__names(s);
}
