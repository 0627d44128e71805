// SPDX-License-Identifier: BSD-2-Clause
/* What is done with all agents of a recording together: start, regular looks, stop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "capture/inject/inject.h"
#include "catalog/runtime.h"
#include "util/error.h"
#include "util/util.h"

#define LOOK_NS (20 * NSEC_PER_MSEC)
#define START_NS (3 * NSEC_PER_SEC) /* to enable a tool interface, which can take a second */
/* for an injection to end that is no longer wanted: a thread is held for milliseconds */
#define ABANDON_MS 1000
#define STOP_NS (3 * NSEC_PER_SEC) /* the agent's own bound for its modules is 2 s */

static uint64_t wanted_types(const struct kprof_session_opts *opts)
{
	uint64_t types = opts->types ? opts->types & ACTIVITY_TYPES : activity_default_types();
	bool device = false;

	if (opts->cuda_sync)
		types |= 1ull << KPROF_ACTIVITY_CUDA_SYNC;
	if (opts->metrics)
		types |= 1ull << KPROF_ACTIVITY_CUDA_PROFILER_RANGE;
	for (uint32_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (types >> id & 1 && id != KPROF_ACTIVITY_GPU_APPROXIMATE)
			device |= activity_by_id(id)->on_device;
	return device ? types : 0;
}

/*
 * The modules (bits 1 << enum kprof_agent_runtime) of the runtimes whose devices are to be
 * recorded.
 */
static uint32_t wanted_modules(const struct kprof_session_opts *opts)
{
	unsigned int sets = activity_sets_in(opts->types);
	const struct catalog_runtime *rt;
	uint32_t modules = 0;

	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++)
		if (rt->activities && (!sets || rt->sets & sets))
			modules |= 1u << rt->module;
	return modules;
}

static int set_up(struct agents *a)
{
	const struct kprof_session_opts *opts = a->opts.session;
	struct recorder *recorder = a->opts.recorder;
	int err;

	if (opts->agent == KPROF_AGENT_NONE)
		return 0;
	a->types = wanted_types(opts);
	a->observe = opts->observe;
	if (!agents__any(a))
		return 0;
	a->modules = a->types ? wanted_modules(opts) : 0;
	if (a->observe)
		a->modules |= AGENT_PYTORCH;
	a->record_options |= KPROF_AGENT_OPT_SCOPES(a->observe);
	if (a->observe && opts->within)
		a->record_options |= KPROF_AGENT_OPT_WITHIN;
	if (a->observe && opts->shapes)
		a->record_options |= KPROF_AGENT_OPT_INPUTS;
	if (a->observe && opts->flow)
		a->record_options |= KPROF_AGENT_OPT_SEQUENCE;
	if (a->observe && agent_ticks__usable()) {
		a->record_options |= KPROF_AGENT_OPT_TICKS;
		agent_ticks__measure(&a->ticks);
	}
	if (a->types & 1ull << KPROF_ACTIVITY_CUDA_SYNC)
		a->record_options |= KPROF_AGENT_OPT_SYNC;
	if (opts->cuda_memory)
		a->record_options |= KPROF_AGENT_OPT_MEMORY;
	if (opts->window)
		a->record_options |= KPROF_AGENT_OPT_WINDOW;
	if (opts->metrics) {
		a->record_options |= KPROF_AGENT_OPT_METRICS;
		agent_metrics__warn(opts->metrics);
	}
	a->library = agent_library__find(opts->agent_library);
	if (!a->library && opts->agent_library)
		return error_set_usage(-ENOENT, NULL, "cannot find the agent's library %s: %s",
				       opts->agent_library, strerror(errno));
	err = recorder__source(recorder, "agent", &a->batch_source);
	if (!err)
		err = recorder__source(recorder, "device_activities", &a->record_source);
	if (!err)
		recorder__source_at(recorder, a->record_source)->counted_here = true;
	if (!err && a->observe)
		err = recorder__source(recorder, "observer", &a->span_source);
	if (!err && a->observe)
		recorder__source_at(recorder, a->span_source)->counted_here = true;
	return err;
}

int agents__new(const struct agents_opts *opts, struct agents **out)
{
	struct agents *a = calloc(1, sizeof(*a));
	int err;

	*out = NULL;
	if (!a)
		return error_set(-ENOMEM, NULL, "no memory for agents");
	a->opts = *opts;
	a->slot = targets__slot(opts->targets);
	err = set_up(a);
	if (err)
		agents__free(a);
	else
		*out = a;
	return err;
}

void agents__free(struct agents *a)
{
	struct agent_link *link;
	struct target *t;

	if (!a)
		return;
	LINKS_EACH (a, link)
		if (agent__connected(link))
			agent_memory__command(link->memory, agent__end_command(link));
	for (t = targets__first(a->opts.targets); t; t = t->hh.next)
		agent__free(a, t);
	agents__calls_free(a);
	agent_pulse__free(a->pulse);
	free(a->library);
	free(a);
}

void agents__thread_ended(struct agents *a, const struct thread *th, uint64_t time_ns)
{
	if (agents__any(a))
		a->ended[a->nr_ended++ % ARRAY_SIZE(a->ended)] =
			(struct ended_thread){.pid_tgid = th->pid_tgid,
					      .start_ns = th->start_ns,
					      .end_ns = time_ns,
					      .index = th->index};
}

/*
 * Is the agent ready, but the process has not loaded a device runtime? Then there is nothing to
 * wait for.
 */
static bool idle(const struct agent_link *link)
{
	return link->memory && link->head.recording == link->session &&
	       link->head.state == KPROF_AGENT_LOADED &&
	       link->head.reason == KPROF_AGENT_NO_RUNTIME;
}

/*
 * Agents that are being looked for, or are getting ready, are looked at more often than the rings
 * need.
 */
bool agents__pending(const struct agents *a)
{
	const struct agent_link *link;

	LINKS_EACH (a, link)
		if (link->injection ||
		    ((link->step == LINK_AWAITED || link->step == LINK_ASKED) && !idle(link)))
			return true;
	return false;
}

/*
 * Reads the mappings only to look for the agent: the rest of kprof reads them at times of its own.
 */
static int look_again(struct agents *a, struct target *t)
{
	struct proc_maps *maps, *before = t->maps;
	int err;

	if (proc_maps__read((pid_t)t->pid, &maps))
		return 0;
	t->maps = maps;
	err = agents__look(a, t);
	t->maps = before;
	proc_maps__free(maps);
	return err;
}

int agents__tend(struct agents *a, uint64_t now_ns)
{
	struct agent_link *link;
	int err = 0;

	if (!agents__any(a) || now_ns < a->next_look_ns)
		return 0;
	if (a->record_options & KPROF_AGENT_OPT_TICKS)
		agent_ticks__measure(&a->ticks);
	a->next_look_ns = now_ns + (agents__pending(a) ? LOOK_NS / 10 : LOOK_NS);
	LINKS_EACH (a, link) {
		if (err)
			break;
		if (link->injection && injection__over(link->injection))
			agent__injected(link, now_ns);
		if (!link->memory && (link->step == LINK_AWAITED ||
				      (link->next_try_ns && now_ns >= link->next_try_ns)))
			err = look_again(a, link->target);
		if (!err)
			err = agent__tend(a, link, now_ns);
	}
	return err;
}

/* ---- start and stop ---- */

/*
 * Was the agent asked to record, or put into the process, and has it not answered yet? That it has
 * nothing to record is an answer, too. An agent that another kprof holds will soon be free, or is
 * not to be had.
 */
static bool unanswered(const struct agent_link *link)
{
	return link->injection || (link->step == LINK_ASKED && !idle(link)) ||
	       (link->step == LINK_AWAITED && (link->tries || link->other_ns) && !link->memory);
}

int agents__start(struct agents *a)
{
	uint64_t until_ns = clock_mono_ns() + START_NS;
	bool waiting = true;
	int err = 0;

	if (!agents__any(a))
		return 0;
	while (waiting && !err && clock_mono_ns() < until_ns) {
		const struct agent_link *link;

		a->next_look_ns = 0;
		err = agents__tend(a, clock_mono_ns());
		waiting = false;
		LINKS_EACH (a, link)
			waiting |= unanswered(link);
		if (waiting && !err)
			err = a->opts.drain(a->opts.ctx);
	}
	return err;
}

void agents__opened(struct agents *a)
{
	const struct record_window *window = recorder__window(a->opts.recorder);
	struct agent_link *link;

	a->opened = true;
	LINKS_EACH (a, link)
		if (link->records)
			agent_records__window(link->records, window->first_ns, 0);
}

static bool rests(struct agent_link *link)
{
	uint32_t state = agent_memory__state(link->memory);

	return state == KPROF_AGENT_RESTING || state == KPROF_AGENT_LEFT;
}

int agents__stop(struct agents *a)
{
	const struct record_window *window = recorder__window(a->opts.recorder);
	uint64_t until_ns = clock_mono_ns() + STOP_NS;
	struct agent_link *link;
	bool waiting = true;
	int err = 0;

	LINKS_EACH (a, link) {
		injection__abandon(link->injection, ABANDON_MS);
		link->injection = NULL;
		if (link->records)
			agent_records__window(link->records, window->first_ns, window->end_ns);
		if (agent__connected(link))
			agent_memory__command(link->memory, KPROF_AGENT_REST);
	}
	while (waiting && !err && clock_mono_ns() < until_ns) {
		waiting = false;
		LINKS_EACH (a, link) {
			if (!agent__connected(link))
				continue;
			if (rests(link)) {
				agent__dismiss(link);
				link->step = LINK_OVER;
			} else if (!proc_alive((pid_t)link->target->pid,
					       link->target->start_ticks)) {
				link->step = LINK_OVER;
			} else {
				waiting = true;
			}
		}
		if (waiting)
			err = a->opts.drain(a->opts.ctx);
	}
	return err;
}

uint64_t agents__cpu_ns(const struct agents *a)
{
	return a->cpu_ns;
}
