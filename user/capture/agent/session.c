// SPDX-License-Identifier: BSD-2-Clause
/* The agents of a session, all together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/agent.h"
#include "catalog/activity.h"
#include "util/error.h"
#include "util/util.h"

#define LOOK_NS (20 * NSEC_PER_MSEC)
#define START_NS (3 * NSEC_PER_SEC) /* for enabling CUPTI, which can take a second */
#define STOP_NS (3 * NSEC_PER_SEC)  /* the agent's own bound for its modules is 2 s */

static uint64_t wanted_types(const struct kprof_session_opts *opts)
{
	uint64_t types = opts->types ? opts->types : activity_default_types();
	bool device = false;

	if (opts->cuda_sync)
		types |= 1ull << KPROF_ACTIVITY_CUDA_SYNC;
	for (uint32_t id = 0; id < KPROF_ACTIVITY_NR; id++)
		if (types >> id & 1 && id != KPROF_ACTIVITY_GPU_APPROXIMATE)
			device |= activity_by_id(id)->on_device;
	return device ? types : 0;
}

int agents__new(struct kprof_session *s)
{
	struct agents *a = &s->agents;
	int err;

	if (s->opts.agent == KPROF_AGENT_NONE)
		return 0;
	a->types = wanted_types(&s->opts);
	if (!a->types)
		return 0;
	if (a->types & 1ull << KPROF_ACTIVITY_CUDA_SYNC)
		a->options |= KPROF_AGENT_OPT_SYNC;
	a->library = agent_library__find(s->opts.agent_library);
	if (!a->library && s->opts.agent_library)
		return error_set_usage(-ENOENT, NULL, "cannot find the agent's library %s: %s",
				       s->opts.agent_library, strerror(errno));
	err = session__source(s, "agent", &a->batch_source);
	if (!err)
		err = session__source(s, "device_activities", &a->record_source);
	if (!err)
		s->sources[a->record_source].counted_here = true;
	return err;
}

void agents__free(struct kprof_session *s)
{
	struct target *t;

	for (t = s->targets; t; t = t->hh.next) {
		if (t->agent && t->agent->memory && t->agent->step != LINK_OVER)
			agent_memory__command(t->agent->memory, KPROF_AGENT_LEAVE);
		agent__free(s, t);
	}
	agents__calls_free(s);
	agent_pulse__free(s->agents.pulse);
	s->agents.pulse = NULL;
	free(s->agents.library);
	s->agents.library = NULL;
}

void agents__thread_ended(struct kprof_session *s, const struct thread *th, uint64_t time_ns)
{
	struct agents *a = &s->agents;

	if (a->types)
		a->ended[a->nr_ended++ % ARRAY_SIZE(a->ended)] =
			(struct ended_thread){.pid_tgid = th->pid_tgid,
					      .start_ns = th->start_ns,
					      .end_ns = time_ns,
					      .index = th->index};
}

/* ---- what agents say ---------------------------------------------------------------------------- */

static const char *hint_for(uint32_t reason)
{
	switch (reason) {
	case KPROF_AGENT_NO_CUPTI:
		return "KPROF_CUPTI_PATH in the process's environment names a libcupti.so of its CUDA release";
	case KPROF_AGENT_BUSY:
		return "CUPTI serves one tool at a time: stop the other (torch.profiler, Nsight, DCGM), then attach again";
	case KPROF_AGENT_NO_PERMISSION:
		return "load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or give the process CAP_SYS_ADMIN";
	case KPROF_AGENT_BAD_VERSION:
		return "CUDA 11.6 to 13 are known to this kprof";
	case KPROF_AGENT_NO_DRIVER:
		return "nvidia-smi says which driver there is";
	default:
		return NULL;
	}
}

static const char *detail_of(const struct kprof_agent_shm *head)
{
	static const char *const words[] = {
		[KPROF_AGENT_OK] = "it does not say why",
		[KPROF_AGENT_NO_RUNTIME] = "it has loaded no device runtime",
		[KPROF_AGENT_NO_CUPTI] = "no libcupti was found",
		[KPROF_AGENT_BAD_VERSION] = "its CUPTI is of an unknown version",
		[KPROF_AGENT_BUSY] = "another tool uses CUPTI",
		[KPROF_AGENT_NO_PERMISSION] = "CUPTI needs more privileges",
		[KPROF_AGENT_NO_DRIVER] = "no driver, or too old a one",
		[KPROF_AGENT_NO_MEMORY] = "no memory",
		[KPROF_AGENT_OTHER] = "something failed",
	};

	if (head->detail[0])
		return head->detail;
	return words[head->reason < ARRAY_SIZE(words) ? head->reason : KPROF_AGENT_OTHER];
}

/* It records. What the device did since it could have been asked is not known. */
static int began(struct kprof_session *s, struct agent_link *link, uint64_t now_ns)
{
	const char *why = link->injected ? "the agent is put in once the process uses CUDA"
					 : "the agent records once kprof has found it";

	link->step = LINK_RECORDING;
	link->recording_ns = now_ns;
	if (!s->agents.opened || !link->wanted_ns ||
	    (link->by_door && now_ns - link->wanted_ns < AGENT_DOOR_WAIT_MS * NSEC_PER_MSEC))
		return 0;
	return account__gap(s, link->target->pid, "device activities", why, link->wanted_ns,
			    now_ns);
}

static int stopped(struct kprof_session *s, struct agent_link *link, uint64_t now_ns)
{
	int err = agent__salvage(link);

	link->step = LINK_OVER;
	log_warn(
		"it does so when kprof is silent for a second; attach again",
		"the agent in process %u has stopped: its device activities are missing from now on",
		link->target->pid);
	return err ? err
		   : account__gap(s, link->target->pid, "device activities",
				  "the agent had not heard from kprof for a second, and stopped",
				  link->head.heartbeat_ns < now_ns ? link->head.heartbeat_ns
								   : now_ns,
				  now_ns);
}

void agent__failed(struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;
	/* A process that exits lays a failed agent to rest, too. */
	bool failed = head->state == KPROF_AGENT_FAILED ||
		      (head->state == KPROF_AGENT_RESTING && !link->recording_ns &&
		       head->reason != KPROF_AGENT_OK && head->reason != KPROF_AGENT_NO_RUNTIME);

	if (failed && link->step != LINK_WITHOUT && link->session &&
	    head->recording == link->session)
		agent__without(link, (enum kprof_agent_reason)head->reason, hint_for(head->reason),
			       "%s", detail_of(head));
}

int agent__tend(struct kprof_session *s, struct agent_link *link, uint64_t now_ns)
{
	struct kprof_agent_shm *head = &link->head;
	bool ours;

	if (!link->memory || link->step == LINK_OVER)
		return 0;
	if (agent_memory__head(link->memory, head)) {
		agent__without(link, KPROF_AGENT_OTHER, NULL, "its agent's memory is gone");
		return 0;
	}
	ours = head->recording == link->session;
	if (link->step != LINK_RECORDING && ours && head->state == KPROF_AGENT_RECORDING)
		return began(s, link, now_ns);
	if (link->step == LINK_RECORDING && head->state == KPROF_AGENT_LEFT)
		return stopped(s, link, now_ns);
	agent__failed(link);
	return 0;
}

/* Some are being found, or make ready: they are looked at more often than the rings need. */
bool agents__pending(const struct kprof_session *s)
{
	const struct target *t;

	for (t = s->targets; t; t = t->hh.next)
		if (t->agent && (t->agent->step == LINK_AWAITED || t->agent->step == LINK_ASKED) &&
		    !agent__idle(t->agent))
			return true;
	return false;
}

/* The mappings are read for this alone: the target's other business goes by its own clock. */
static int look_again(struct kprof_session *s, struct target *t)
{
	struct proc_maps *maps, *before = t->maps;
	int err;

	if (proc_maps__read((pid_t)t->pid, &maps))
		return 0;
	t->maps = maps;
	err = agent__look(s, t);
	t->maps = before;
	proc_maps__free(maps);
	return err;
}

int agents__tend(struct kprof_session *s, uint64_t now_ns)
{
	struct target *t;
	int err = 0;

	if (!s->agents.types || now_ns < s->agents.next_look_ns)
		return 0;
	s->agents.next_look_ns = now_ns + (agents__pending(s) ? LOOK_NS / 10 : LOOK_NS);
	for (t = s->targets; t && !err; t = t->hh.next) {
		struct agent_link *link = t->agent;

		if (!link)
			continue;
		if (!link->memory && (link->step == LINK_AWAITED ||
				      (link->next_try_ns && now_ns >= link->next_try_ns)))
			err = look_again(s, t);
		if (!err)
			err = agent__tend(s, link, now_ns);
	}
	return err;
}

/* ---- start and stop ----------------------------------------------------------------------------- */

/* An agent was asked, and has not answered yet. That there is nothing to record is an answer. */
static bool unanswered(const struct agent_link *link)
{
	return link && link->step == LINK_ASKED && !agent__idle(link);
}

static int drain_for(struct kprof_session *s)
{
	int n = events_drain(s, false);

	if (n >= 0 && s->nr_pending && !s->stopped)
		n = sites__learn(s);
	if (n >= 0)
		rings__wait(s->rings, 1);
	return n < 0 ? n : 0;
}

int agents__start(struct kprof_session *s)
{
	uint64_t until_ns = clock_mono_ns() + START_NS;
	bool waiting = true;
	int err = 0;

	if (!s->agents.types)
		return 0;
	while (waiting && !err && clock_mono_ns() < until_ns) {
		struct target *t;

		s->agents.next_look_ns = 0;
		err = agents__tend(s, clock_mono_ns());
		waiting = false;
		for (t = s->targets; t; t = t->hh.next)
			waiting |= unanswered(t->agent) ||
				   (t->agent && t->agent->tries && !t->agent->memory &&
				    t->agent->step == LINK_AWAITED);
		if (waiting && !err)
			err = drain_for(s);
	}
	return err;
}

void agents__opened(struct kprof_session *s)
{
	struct target *t;

	s->agents.opened = true;
	for (t = s->targets; t; t = t->hh.next)
		if (t->agent && t->agent->records)
			agent_records__window(t->agent->records, s->start_ns, 0);
}

void agent__dismiss(struct agent_link *link)
{
	agent_memory__head(link->memory, &link->head);
	agent_memory__command(link->memory, KPROF_AGENT_LEAVE);
}

static bool rests(struct agent_link *link)
{
	uint32_t state, recording;

	agent_memory__state(link->memory, &state, &recording);
	return state == KPROF_AGENT_RESTING || state == KPROF_AGENT_LEFT;
}

int agents__stop(struct kprof_session *s)
{
	uint64_t until_ns = clock_mono_ns() + STOP_NS;
	struct target *t, *tmp;
	bool waiting = true;
	int err = 0;

	for (t = s->targets; t; t = t->hh.next) {
		if (t->agent && t->agent->records)
			agent_records__window(t->agent->records, s->start_ns, s->end_ns);
		if (t->agent && t->agent->memory && t->agent->step != LINK_OVER)
			agent_memory__command(t->agent->memory, KPROF_AGENT_REST);
	}
	while (waiting && !err && clock_mono_ns() < until_ns) {
		waiting = false;
		HASH_ITER (hh, s->targets, t, tmp) {
			struct agent_link *link = t->agent;

			if (!link || !link->memory || link->step == LINK_OVER)
				continue;
			if (rests(link)) {
				agent__dismiss(link);
				link->step = LINK_OVER;
			} else if (!proc_alive((pid_t)t->pid, t->start_ticks)) {
				link->step = LINK_OVER;
			} else {
				waiting = true;
			}
		}
		if (waiting)
			err = drain_for(s);
	}
	return err;
}
