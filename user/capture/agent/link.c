// SPDX-License-Identifier: BSD-2-Clause
/* One target's agent: its state, its records, and the records that it leaves when it dies. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "capture/inject/inject.h"
#include "util/error.h"
#include "util/util.h"

void agent__without(struct agent_link *link, enum kprof_agent_reason code, const char *hint,
		    const char *fmt, ...)
{
	va_list ap;

	if (link->step == LINK_WITHOUT)
		return;
	va_start(ap, fmt);
	vsnprintf(link->reason, sizeof(link->reason), fmt, ap);
	va_end(ap);
	link->step = LINK_WITHOUT;
	link->reason_code = code;
	log_warn(hint, "no %s%s of process %u: %s", link->recording_ns ? "more " : "",
		 !(link->modules & AGENT_PYTORCH) ? "device activities"
		 : link->runtime                  ? "operators and device activities"
						  : "operators",
		 link->target->pid, link->reason);
}

void agent__not_observed(struct agent_link *link, const char *why)
{
	if (!link->operators_said)
		log_warn("without --observer, they are seen by probes",
			 "no operators of process %u: %s", link->target->pid, why);
	link->operators_said = true;
}

/* ---- threads ---- */

/* Reads the thread ids in the target's PID namespace, if that is not kprof's. */
static void read_tids(struct agent_link *link)
{
	uint64_t *known;
	pid_t *tids;
	size_t nr;

	link->tids_ns = clock_mono_ns();
	if (proc_threads((pid_t)link->target->pid, &tids, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		pid_t inner = proc_thread_ns_tid((pid_t)link->target->pid, tids[i]);

		known = inner > 0 ? map64__at(&link->tids, (uint64_t)inner) : NULL;
		if (known)
			*known = (uint64_t)tids[i];
	}
	free(tids);
}

uint32_t agent__host_tid(struct agent_link *link, uint32_t tid)
{
	uint64_t known;

	if (link->target->ns_pid == link->target->pid)
		return tid;
	known = map64__get(&link->tids, tid);
	if (!known && budget_left(&link->looks) &&
	    clock_mono_ns() - link->tids_ns > 100 * NSEC_PER_MSEC) {
		read_tids(link);
		known = map64__get(&link->tids, tid);
	}
	return (uint32_t)known;
}

/* A thread with this id that has ended lately, and had begun by that time. */
static const struct ended_thread *ended_thread(const struct agents *a, uint64_t pid_tgid,
					       uint64_t time_ns)
{
	uint32_t nr = a->nr_ended < ARRAY_SIZE(a->ended) ? a->nr_ended : ARRAY_SIZE(a->ended);

	for (uint32_t i = 0; i < nr; i++) {
		const struct ended_thread *e = &a->ended[i];

		if (e->pid_tgid == pid_tgid && e->start_ns <= time_ns && time_ns <= e->end_ns)
			return e;
	}
	return NULL;
}

static bool thread_exists(struct agent_link *link, uint64_t pid_tgid)
{
	char comm[PROC_COMM_BYTES];
	bool exists = (uint32_t)pid_tgid && budget_left(&link->looks) &&
		      !proc_thread_comm((pid_t)link->target->pid, (pid_t)(uint32_t)pid_tgid, comm);

	budget_note(&link->looks, exists, 1);
	return exists;
}

int agent__find_thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index)
{
	struct agent_link *link = ctx;
	struct agents *a = link->agents;
	uint64_t pid_tgid = (uint64_t)link->target->pid << 32 | agent__host_tid(link, tid);
	const struct ended_thread *ended;
	struct thread *th;

	th = threads__find(a->opts.threads, pid_tgid);
	if (th && th->start_ns <= time_ns) { /* true in nearly all cases */
		budget_note(&link->looks, true, 1);
		*index = th->index;
		return 0;
	}
	ended = ended_thread(a, pid_tgid, time_ns);
	if (ended) {
		*index = ended->index;
		return 0;
	}
	/* The agent is not trusted: make sure that this thread exists. */
	if (!th && !thread_exists(link, pid_tgid))
		return -ESRCH;
	if (!th)
		th = a->opts.thread(a->opts.ctx, link->target, pid_tgid, time_ns);
	if (!th)
		return -ENOMEM;
	*index = th->index;
	return 0;
}

/*
 * The agent is not trusted: has this thread existed? One that ends hands over what it has left by
 * itself, and may be gone when that is read. What the agent's thread handed over of others that are
 * gone is believed, but not without end: each such thread takes memory.
 */
static bool has_existed(struct agent_link *link, uint64_t pid_tgid, uint64_t time_ns)
{
	bool known = pid_tgid == link->giver || ended_thread(link->agents, pid_tgid, time_ns) ||
		     thread_exists(link, pid_tgid);
	bool believed = known || ((uint32_t)pid_tgid && budget_left(&link->gone));

	if (believed)
		budget_note(&link->gone, known, 1);
	return believed;
}

int agent__spans(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *spans, size_t nr)
{
	struct agent_link *link = ctx;
	struct agents *a = link->agents;
	uint64_t pid_tgid = (uint64_t)link->target->pid << 32 | agent__host_tid(link, tid);
	struct thread *th = threads__find(a->opts.threads, pid_tgid);

	if (!th && nr && has_existed(link, pid_tgid, spans[0].time_ns)) {
		th = a->opts.thread(a->opts.ctx, link->target, pid_tgid, spans[0].time_ns);
		if (!th)
			return -ENOMEM;
	}
	if (!th) {
		link->spans_threadless += nr;
		return 0;
	}
	budget_note(&link->looks, true, 1);
	return a->opts.observed(a->opts.ctx, th, depth, spans, nr);
}

/* ---- batches ---- */

/*
 * A hash of the beginning of a batch. The first records hold times and correlation ids, so that no
 * two batches begin alike.
 */
static uint64_t batch_key(const uint8_t *data, size_t bytes)
{
	uint64_t key = bytes, word;

	for (size_t at = 0; at + sizeof(word) <= bytes && at < 128; at += sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		key = hash64(key ^ word) + at;
	}
	return key;
}

int agents__batch(struct agents *a, struct target *t, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_batch *e = (const struct kprof_wire_batch *)h;
	struct agent_link *link = t ? agents__link(a, t) : NULL;
	int err;

	recorder__source_at(a->opts.recorder, a->batch_source)->captured++;
	if (!link || !link->records || h->id != link->session) {
		if (link)
			link->strange++;
		return 0;
	}
	link->recent[link->nr_recent++ % LINK_RECENT] = batch_key(e->data, e->bytes);
	link->giver = h->pid_tgid;
	err = agent_records__batch(link->records, e->data, e->bytes);
	link->giver = 0;
	return err;
}

static bool read_before(const struct agent_link *link, const struct kprof_agent_slot *slot)
{
	uint64_t key = batch_key(slot->data, slot->used);

	for (size_t i = 0; i < LINK_RECENT; i++)
		if (link->recent[i] == key)
			return true;
	return false;
}

/* Are there unread records of this session in the slot? */
static bool slot_holds(const struct agent_link *link, uint32_t i, struct kprof_agent_slot *slot)
{
	return !agent_memory__slot(link->memory, i, slot) && slot->session == link->session &&
	       slot->used && slot->used <= sizeof(slot->data) && !read_before(link, slot);
}

int agent__salvage_slot(struct agent_link *link, uint32_t i)
{
	struct kprof_agent_slot slot;
	uint64_t before = agent_records__count(link->records)->received;
	int err;

	if (!slot_holds(link, i, &slot))
		return 0;
	err = agent_records__batch(link->records, slot.data, slot.used);
	link->recent[link->nr_recent++ % LINK_RECENT] = batch_key(slot.data, slot.used);
	link->salvaged += agent_records__count(link->records)->received - before;
	return err;
}

int agent__salvage(struct agent_link *link)
{
	struct kprof_agent_slot slot;
	int err = 0;

	if (!link->memory || !link->records)
		return 0;
	for (uint32_t i = 0; i < KPROF_AGENT_SLOTS && !err; i++)
		if (slot_holds(link, i, &slot))
			err = agent_records__names(link->records, slot.data, slot.used);
	for (uint32_t i = 0; i < KPROF_AGENT_SLOTS && !err; i++)
		err = agent__salvage_slot(link, i);
	return err;
}

/* ---- state and errors of agents ---- */

const struct agent_reason *agent__reason(uint32_t reason)
{
	static const struct agent_reason reasons[] = {
		[KPROF_AGENT_OK] = {"ok", "it does not say why"},
		[KPROF_AGENT_NO_RUNTIME] = {"no_runtime", "it has loaded no device runtime"},
		[KPROF_AGENT_NO_CUPTI] = {"no_cupti", "the device's tool interface was not found"},
		[KPROF_AGENT_BAD_VERSION] =
			{"bad_version", "the device's tool interface is of an unknown version"},
		[KPROF_AGENT_BUSY] = {"busy", "another tool uses the device's tool interface"},
		[KPROF_AGENT_NO_PERMISSION] = {"no_permission",
					       "the device's tool interface needs more privileges"},
		[KPROF_AGENT_NO_DRIVER] = {"no_driver", "no driver, or too old a one"},
		[KPROF_AGENT_NO_MEMORY] = {"no_memory", "no memory"},
		[KPROF_AGENT_OTHER] = {"other", "something failed"},
	};

	return &reasons[reason < ARRAY_SIZE(reasons) ? reason : KPROF_AGENT_OTHER];
}

#define CUDA_12_4 12040 /* as CUDA numbers its releases */
/* CUPTI's numbers of CUDA 13.0 and of 13.1 Update 1. */
#define CUPTI_13 130000
#define CUPTI_13_1_1 130101

/* What is known to go wrong with releases of CUDA that are recorded nevertheless. */
static void warn_of_release(const struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;

	if (!link->runtime)
		return;
	if (link->injected && head->runtime_version && head->runtime_version < CUDA_12_4)
		log_warn(
			"kprof run records them from their beginning",
			"process %u uses CUDA %u.%u: if it has made CUDA graphs already, CUDA before "
			"12.4 can fail when they are launched now",
			link->target->pid, head->runtime_version / 1000,
			head->runtime_version % 1000 / 10);
	if (link->session > 1 && head->cupti_version >= CUPTI_13 &&
	    head->cupti_version < CUPTI_13_1_1)
		log_warn("CUDA 13.1 Update 1 mends it",
			 "process %u is recorded again: its CUPTI may give work of CUDA graphs to "
			 "the wrong calls",
			 link->target->pid);
}

/*
 * Since when something may be missing; 0: nothing is. The target can write anything there, and hide
 * what is missing of itself.
 */
static uint64_t missing_since_ns(const struct agent_link *link, uint64_t now_ns)
{
	uint64_t went_on_ns = link->head.went_on_ns;

	if (!link->by_environment || !went_on_ns)
		return link->wanted_ns;
	if (went_on_ns == UINT64_MAX) /* the runtime waited at its first use until now */
		return 0;
	return went_on_ns > link->wanted_ns && went_on_ns < now_ns ? went_on_ns : link->wanted_ns;
}

/*
 * The agent has begun to record. What the device did before, since there was something to record,
 * is declared as a gap.
 */
static int began(struct agents *a, struct agent_link *link)
{
	char why[128] = "the agent records once kprof has found it";
	/* what it has written is from before this, but not always from before this look began */
	uint64_t now_ns = clock_mono_ns(), since_ns = missing_since_ns(link, now_ns);
	int err = 0;

	if (link->injected)
		snprintf(why, sizeof(why), "the agent is put in once the process uses %s",
			 link->runtime ? link->runtime->title : "the device");
	link->step = LINK_RECORDING;
	link->recording_ns = link->seen_ns = now_ns;
	warn_of_release(link);
	if (a->record_options & ~link->head.options_done & KPROF_AGENT_OPT_WITHIN &&
	    link->head.runtimes & AGENT_PYTORCH)
		log_warn("start the process anew",
			 "the agent in process %u is one of an older kprof, and observes operators "
			 "everywhere, not only within the annotation",
			 link->target->pid);
	if (!a->opened || !since_ns)
		return 0;
	if (link->head.runtimes & AGENT_PYTORCH)
		err = recorder__gap(a->opts.recorder, link->target->pid, "operators",
				    "the agent observes them once it is in the process", since_ns,
				    now_ns);
	if (!err && (link->runtime || !(link->modules & AGENT_PYTORCH)))
		err = recorder__gap(a->opts.recorder, link->target->pid, "device activities", why,
				    since_ns, now_ns);
	return err;
}

/*
 * The agent records the operators or what the device does, and not the other, as its one reason
 * says.
 */
static void partly_failed(struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;

	if (!(link->modules & AGENT_PYTORCH) || head->reason == KPROF_AGENT_OK ||
	    head->reason == KPROF_AGENT_NO_RUNTIME)
		return;
	if (!(head->runtimes & AGENT_PYTORCH)) {
		agent__not_observed(link, head->detail);
	} else if (!link->device_said && link->runtime) {
		log_warn(NULL, "no device activities of process %u: %s", link->target->pid,
			 head->detail);
		link->device_said = true;
	}
}

static int stopped(struct agents *a, struct agent_link *link, uint64_t now_ns)
{
	int err = agent__salvage(link);

	link->step = LINK_OVER;
	agent_pulse__remove(a->pulse, link->memory);
	agent_memory__release(link->memory);
	log_warn(
		"it does so when kprof is silent for a second; attach again",
		"the agent in process %u has stopped: its device activities are missing from now on",
		link->target->pid);
	return err ? err
		   : recorder__gap(a->opts.recorder, link->target->pid, "device activities",
				   "the agent had not heard from kprof for a second, and stopped",
				   link->head.heartbeat_ns < now_ns ? link->head.heartbeat_ns
								    : now_ns,
				   now_ns);
}

void agent__failed(struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;
	/* When a process exits, a failed agent changes to RESTING, too. */
	bool failed = head->state == KPROF_AGENT_FAILED ||
		      (head->state == KPROF_AGENT_RESTING && !link->recording_ns &&
		       head->reason != KPROF_AGENT_OK && head->reason != KPROF_AGENT_NO_RUNTIME);

	if (failed && link->step != LINK_WITHOUT && link->session &&
	    head->recording == link->session)
		agent__without(link, (enum kprof_agent_reason)head->reason,
			       link->runtime && head->reason < KPROF_AGENT_REASONS
				       ? link->runtime->hints[head->reason]
				       : NULL,
			       "%s",
			       head->detail[0] ? head->detail : agent__reason(head->reason)->words);
}

/* The agent can record no more: another tool has taken its place. */
static int lost(struct agents *a, struct agent_link *link, uint64_t now_ns)
{
	agent__failed(link);
	return recorder__gap(a->opts.recorder, link->target->pid, "device activities", link->reason,
			     link->seen_ns, now_ns);
}

/*
 * The agent was leaving when it was asked to record, since the kprof before has ended: it did not
 * see that. What it needs is a new start.
 */
static void missed(struct agents *a, struct agent_link *link)
{
	agent_pulse__remove(a->pulse, link->memory);
	agent_memory__close(link->memory);
	link->memory = NULL;
	agent_records__free(link->records);
	link->records = NULL;
	link->step = LINK_AWAITED;
	link->await_ns = 0;
}

/* The target can write anything there: an agent uses no more than a CPU. */
static void count_cpu(struct agents *a, struct agent_link *link, uint64_t now_ns)
{
	uint64_t ns = link->head.cpu_ns - link->cpu_ns, most_ns = now_ns - link->cpu_at_ns;

	if (link->cpu_at_ns && link->head.cpu_ns > link->cpu_ns)
		a->cpu_ns += ns < most_ns ? ns : most_ns;
	link->cpu_ns = link->head.cpu_ns;
	link->cpu_at_ns = now_ns;
}

int agent__tend(struct agents *a, struct agent_link *link, uint64_t now_ns)
{
	struct kprof_agent_shm *head = &link->head;
	bool ours;

	if (!link->memory || link->step == LINK_OVER)
		return 0;
	if (agent_memory__head(link->memory, head)) {
		agent__without(link, KPROF_AGENT_OTHER, NULL, "its agent's memory is gone");
		return 0;
	}
	count_cpu(a, link, now_ns);
	ours = head->recording == link->session;
	if (link->step == LINK_ASKED && head->state == KPROF_AGENT_LEFT && !ours) {
		missed(a, link);
		return 0;
	}
	if (link->step != LINK_RECORDING && ours && head->state == KPROF_AGENT_RECORDING)
		return began(a, link);
	if (link->step == LINK_RECORDING && head->state == KPROF_AGENT_LEFT)
		return stopped(a, link, now_ns);
	if (link->step == LINK_RECORDING && ours && head->state == KPROF_AGENT_FAILED)
		return lost(a, link, now_ns);
	if (link->step == LINK_RECORDING && head->state == KPROF_AGENT_RECORDING) {
		link->seen_ns = now_ns;
		partly_failed(link);
		agent_metrics__tend(a, link);
	}
	agent__failed(link);
	return 0;
}

/* ---- the end ---- */

enum kprof_agent_command agent__end_command(const struct agent_link *link)
{
	return link->stood_by || link->agents->opts.session->window ? KPROF_AGENT_STAND_BY
								    : KPROF_AGENT_LEAVE;
}

void agent__dismiss(struct agent_link *link)
{
	agent_memory__head(link->memory, &link->head);
	agent_memory__command(link->memory, agent__end_command(link));
	if (link->agents->pulse)
		agent_pulse__remove(link->agents->pulse, link->memory);
	agent_memory__release(link->memory);
}

void agent__free(struct agents *a, struct target *t)
{
	struct agent_link *link = agents__link(a, t);

	if (!link)
		return;
	injection__abandon(link->injection, 0);
	if (link->memory && a->pulse)
		agent_pulse__remove(a->pulse, link->memory);
	agent_memory__close(link->memory);
	agent_records__free(link->records);
	approximate__free(link->approximate);
	map64__free(&link->tids);
	free(link);
	t->slot[a->slot] = NULL;
}
