// SPDX-License-Identifier: BSD-2-Clause
/* Finding a target's agent, injecting one where there is none, and asking it to record. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "capture/inject/inject.h"
#include "util/error.h"
#include "util/util.h"

/*
 * How long to wait for an agent's memory file after its library was mapped: in between the agent
 * starts.
 */
#define AWAIT_NS (2 * NSEC_PER_SEC)
/* How long to wait for an agent that the runtime loads at its first use, by the environment. */
#define DOOR_NS (5 * NSEC_PER_SEC)
#define MAX_TRIES 5
#define TRY_AGAIN_NS NSEC_PER_SEC
/* Another kprof that holds an agent and sends it no heartbeat for so long cannot go on. */
#define SILENT_NS (NSEC_PER_SEC)

/*
 * Places the probe on the function with which agents hand records over, in each copy of the library
 * that is mapped.
 */
static int probe_libraries(struct agents *a, struct target *t, const struct proc_maps *maps)
{
	int err = -ENOENT;

	for (size_t i = 0; i < proc_maps__nr(maps) && (!err || err == -ENOENT); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (map->flags & PROC_MAP_FILE && map == proc_maps__first_of_file(maps, map) &&
		    catalog_match(KPROF_AGENT_LIBRARIES, proc_basename(map->path)))
			err = probe_set__place_own(a->opts.probes, t, map, ATTACH_BATCH,
						   KPROF_AGENT_BATCH_SYMBOL,
						   KPROF_COOKIE(a->batch_source, 0, 0));
	}
	return err;
}

static int ask(struct agents *a, struct agent_link *link)
{
	const struct agent_records_ops ops = {.ctx = link,
					      .thread = agent__find_thread,
					      .spans = agent__spans,
					      .ticks = &a->ticks,
					      .metrics = a->opts.session->metrics};
	int err = agent_records__new(recorder__store(a->opts.recorder), link->target->pid, &ops,
				     &link->records);

	if (!err && !a->pulse)
		err = agent_pulse__new(&a->pulse);
	if (!err)
		err = agent_pulse__add(a->pulse, link->memory);
	if (err)
		return err;
	agent_records__window(link->records,
			      a->opened ? recorder__window(a->opts.recorder)->first_ns : UINT64_MAX,
			      0);
	link->session = link->head.session + 1;
	if (!link->session)
		link->session = 1;
	link->step = LINK_ASKED;
	agent_metrics__ask(a, link);
	if (agent_memory__record(link->memory, link->session, link->modules, a->types,
				 agent__ask_layout(a, link)))
		agent__without(link, KPROF_AGENT_OTHER, NULL, "its agent's memory is gone");
	return 0;
}

/*
 * Another kprof holds the agent. Does it go on recording, which its next heartbeat shows? Then this
 * one reports that. Else it is ending or has been killed, and will let go very soon, or it stands
 * still, and the agent is taken from it. Returns 0 then, and -EBUSY before. The end of a window is
 * waited for.
 */
static int wait_for_other(struct agent_link *link)
{
	uint64_t now_ns = clock_mono_ns();
	bool beats = link->other_ns && link->other_beat_ns != link->head.heartbeat_ns;

	if (beats && link->head.command == KPROF_AGENT_RECORD &&
	    !(link->head.options & KPROF_AGENT_OPT_WINDOW)) {
		agent__without(link, KPROF_AGENT_BUSY, "stop it first",
			       "another kprof records them");
		return -EBUSY;
	}
	if (beats || !link->other_ns)
		link->other_ns = now_ns;
	if (now_ns - link->other_ns >= SILENT_NS)
		return 0;
	link->other_beat_ns = link->head.heartbeat_ns;
	link->step = LINK_AWAITED;
	link->await_ns = now_ns + AWAIT_NS;
	link->wanted_ns = link->wanted_ns ? link->wanted_ns : now_ns;
	return -EBUSY;
}

/*
 * The memory file was opened: connects to its agent. Returns 0, also where that is not possible, or
 * -ENOENT if the agent has left.
 */
static int connect_agent(struct agents *a, struct agent_link *link, const struct proc_maps *maps)
{
	int err = agent_memory__head(link->memory, &link->head);

	if (!err && (link->head.state == KPROF_AGENT_LEFT || link->step == LINK_OVER))
		err = -ENOENT;
	if (!err && !agent_memory__claim(link->memory))
		err = wait_for_other(link);
	if (!err) {
		err = probe_libraries(a, link->target, maps);
		if (err)
			agent__without(link, KPROF_AGENT_OTHER, NULL,
				       "no probe could be placed in its agent: %s", strerror(-err));
	}
	if (!err) {
		/* what was read may be from before the end of a window */
		link->stood_by = link->head.command == KPROF_AGENT_STAND_BY ||
				 link->head.options & KPROF_AGENT_OPT_WINDOW;
		return ask(a, link);
	}
	agent_memory__close(link->memory);
	link->memory = NULL;
	return err == -ENOENT ? err : 0;
}

struct seen { /* what was found in the mappings of a process */
	bool library;
	const struct proc_map *observed; /* the library whose operators are to be observed; NULL */
	/* a runtime in use for which an agent can be injected; NULL */
	const struct catalog_runtime *runtime;
	/* a runtime in use that can only load the agent itself; NULL */
	const struct catalog_runtime *other;
	/* a runtime in use whose devices are not to be recorded; NULL */
	const struct catalog_runtime *unwanted;
};

static void see_runtimes(struct seen *seen, const char *name, uint32_t modules)
{
	const struct catalog_runtime *rt;

	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++) {
		if (!rt->activities || !catalog_match(rt->used, name))
			continue;
		if (!(modules & 1u << rt->module))
			seen->unwanted = rt;
		else if (rt->injectable)
			seen->runtime = rt;
		else
			seen->other = rt;
	}
}

static bool has_observer(const char *name)
{
	for (size_t i = 0; catalog_frameworks[i]; i++)
		if (catalog_match(catalog_frameworks[i]->observer_library, name))
			return true;
	return false;
}

static struct seen look_at(const struct proc_maps *maps, uint32_t modules)
{
	struct seen seen = {0};

	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);
		const char *name = proc_basename(map->path);

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC))
			continue;
		seen.library |= catalog_match(KPROF_AGENT_LIBRARIES, name);
		if (modules & AGENT_PYTORCH && has_observer(name))
			seen.observed = map;
		see_runtimes(&seen, name, modules);
	}
	return seen;
}

/* Can the child process not use this runtime, since its parent used it before the fork? */
static bool useless(struct agents *a, const struct target *t, const struct catalog_runtime *rt)
{
	const struct target *parent = t->forked ? targets__find(a->opts.targets, t->ppid) : NULL;

	return rt->not_after_fork && parent && parent->maps &&
	       look_at(parent->maps, a->modules).runtime == rt;
}

static void inject(struct agents *a, struct agent_link *link)
{
	int err;

	if (!a->library) {
		agent__without(
			link, KPROF_AGENT_OTHER,
			"it is built as libkprof_agent.so beside kprof, and installed under lib/kprof/",
			"the agent's library is not there");
		return;
	}
	if (link->tries++ >= MAX_TRIES) {
		agent__without(link, KPROF_AGENT_OTHER, NULL, "its agent leaves again and again");
		return;
	}
	err = injection__start((pid_t)link->target->pid, a->library, &link->injection);
	if (err)
		agent__without(link, KPROF_AGENT_OTHER, NULL, "no thread can inject the agent: %s",
			       strerror(-err));
}

/* That is no news, window after window: the capture has it. */
static void absent(struct agent_link *link)
{
	snprintf(link->reason, sizeof(link->reason),
		 "no agent waits in it, and none may be put into it");
	link->step = LINK_WITHOUT;
	link->reason_code = KPROF_AGENT_OTHER;
}

void agent__injected(struct agent_link *link, uint64_t now_ns)
{
	struct inject_result result = {0};
	int err = injection__finish(link->injection, &result);

	link->injection = NULL;
	link->held_ns += result.held_ns;
	if (!err) {
		link->injected = true;
		log_info("injected the agent into process %u, which was held for %.1f ms",
			 link->target->pid, (double)link->held_ns / 1e6);
	}
	if (!err || err == -ETIMEDOUT) {
		link->head.state = KPROF_AGENT_LOADED; /* not that of an agent that had left */
		link->step = LINK_AWAITED;
		link->await_ns = now_ns + (err ? 5 : 1) * AWAIT_NS;
	} else if (err == -ESRCH) {
		link->step = LINK_NONE; /* a record of its exit, or of its exec, will follow */
		link->next_try_ns = now_ns + TRY_AGAIN_NS;
	} else if ((err == -EAGAIN || err == -EBUSY) && link->tries < MAX_TRIES) {
		link->next_try_ns = now_ns + TRY_AGAIN_NS;
	} else {
		agent__without(link, KPROF_AGENT_OTHER, kprof_error_hint(),
			       "the agent could not be injected: %s",
			       result.reason[0] ? result.reason : strerror(-err));
	}
	error_clear();
}

/* The target has no agent that answers: injects one, now or later, if it needs one. */
static void consider(struct agents *a, struct agent_link *link, struct seen seen, uint64_t now_ns)
{
	bool left = link->head.state == KPROF_AGENT_LEFT && link->head.magic;

	if (link->step == LINK_WITHOUT || link->step == LINK_OVER || now_ns < link->next_try_ns)
		return;
	if (link->step == LINK_AWAITED && now_ns < link->await_ns)
		return;
	/* The library has just been loaded. In a forked child nobody starts the agent unasked. */
	if (seen.library && link->step == LINK_NONE && !left &&
	    !(seen.observed && link->target->forked)) {
		link->step = LINK_AWAITED;
		link->await_ns = now_ns + AWAIT_NS;
		return;
	}
	if (!left && !seen.observed && (!seen.runtime || useless(a, link->target, seen.runtime)))
		return;
	if (!link->wanted_ns)
		link->wanted_ns = link->target->looked_ns ? link->target->looked_ns : now_ns;
	if (!seen.library && !link->tries && a->library && seen.runtime && !seen.observed &&
	    agent_library__in_environment(link->target->pid, seen.runtime)) {
		/* The runtime loads the agent by itself at its first use, and waits for kprof. */
		link->by_environment = true;
		link->step = LINK_AWAITED;
		link->await_ns = now_ns + DOOR_NS;
		return;
	}
	if (a->opts.session->agent != KPROF_AGENT_THERE)
		inject(a, link);
	else if (a->opts.session->window) /* in a longer recording, one may still come */
		absent(link);
}

static struct agent_link *new_link(struct agents *a, struct target *t)
{
	struct agent_link *link = calloc(1, sizeof(*link));

	if (link) {
		link->agents = a;
		link->target = t;
		t->slot[a->slot] = link;
	}
	return link;
}

/*
 * Opens the memory file, and asks its agent to record. 0; -ENOENT: there is none, or its agent has
 * left. Other errors have been reported.
 */
static int find(struct agents *a, struct agent_link *link, const struct proc_maps *maps)
{
	struct target *t = link->target;
	int err = agent_memory__open((pid_t)t->pid, (pid_t)t->ns_pid, maps, &link->memory);

	if (!err)
		return connect_agent(a, link, maps);
	if (err != -ENOENT)
		agent__without(link, KPROF_AGENT_OTHER, kprof_error_hint(), "%s",
			       kprof_error_cause());
	error_clear();
	return err;
}

/* Of an agent that was there first: what failures are said to mean depends on what it is for. */
static void note_runtime(const struct agents *a, struct agent_link *link)
{
	struct seen seen;

	if (link->runtime && link->runtime->injectable)
		return;
	seen = look_at(link->target->maps, a->modules);
	if (seen.runtime || !link->runtime)
		link->runtime = seen.runtime ? seen.runtime : seen.other;
}

int agents__look(struct agents *a, struct target *t)
{
	struct agent_link *link = agents__link(a, t);
	uint64_t now_ns = clock_mono_ns();
	struct seen seen;
	int err;

	if (!agents__any(a) || recorder__window(a->opts.recorder)->closed || !t->maps ||
	    (link && (link->step == LINK_WITHOUT || link->injection)))
		return 0;
	if (link && link->memory) {
		note_runtime(a, link);
		return 0;
	}
	seen = look_at(t->maps, a->modules);
	if (!seen.library && !seen.runtime && !seen.unwanted && !seen.observed)
		return 0;
	if (!link)
		link = new_link(a, t);
	if (!link)
		return -ENOMEM;
	link->runtime = seen.runtime ? seen.runtime : seen.other;
	link->modules = a->modules;
	if (seen.observed && !agent__can_observe(a, link, seen.observed))
		seen.observed = NULL;
	if (!seen.observed)
		link->modules &= ~AGENT_PYTORCH;
	if (!link->runtime && seen.unwanted && !seen.observed) {
		agent__without(link, KPROF_AGENT_OTHER,
			       "it is in none of the sets that --activities names",
			       "it uses %s, which was not asked for", seen.unwanted->title);
		return 0;
	}
	if (!seen.library && !seen.runtime && !seen.observed)
		return 0;
	err = find(a, link, t->maps);
	if (err != -ENOENT)
		return err == -ENOMEM ? err : 0;
	consider(a, link, seen, now_ns);
	return 0;
}

/* Its operators were to be observed, and never were: a forked child may live for moments only. */
static int never_observed(struct agents *a, const struct target *t, const struct agent_link *link)
{
	const struct record_window *window = recorder__window(a->opts.recorder);
	uint64_t start_ns = t->start_ns > window->start_ns ? t->start_ns : window->start_ns;

	if (!a->observe || !a->opened || !t->maps || (link && link->recording_ns) ||
	    !look_at(t->maps, a->modules).observed)
		return 0;
	return recorder__gap(a->opts.recorder, t->pid, "operators",
			     "it ended before the agent observed them", start_ns, clock_mono_ns());
}

int agents__gone(struct agents *a, struct target *t)
{
	struct agent_link *link = agents__link(a, t);
	int err;

	err = never_observed(a, t, link);
	if (!link || err)
		return err;
	if (link->memory && !agent_memory__head(link->memory, &link->head))
		agent__failed(link); /* the agent may have failed since it was last looked at */
	err = agent__salvage(link);
	if (!err)
		err = agent__account(a, link);
	agent__free(a, t);
	return err;
}
