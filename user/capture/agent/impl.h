/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of this room:
 *
 *   agents.c     all agents together: start, tending, stop
 *   connect.c    finding a target's agent, injecting one, asking it to record
 *   link.c       one target's agent: what it says, what it hands over, what it leaves
 *   account.c    numbers and metadata
 *   observer.c   operators that agents observe
 *   calls.c      from calls to approximate.c, where there is no agent to listen to
 *   library.c    where libkprof_agent.so is
 *   memory.c     the memory shared with an agent; pulse.c its heartbeats
 *   metrics.c    hardware metrics that agents measure
 *   records.c    batches → capture records, with activity.c and clock.c
 */
#ifndef KPROF_CAPTURE_AGENT_IMPL_H
#define KPROF_CAPTURE_AGENT_IMPL_H

#include "capture/agent/agent.h"
#include "capture/agent/approximate.h"
#include "capture/agent/memory.h"
#include "capture/agent/records.h"
#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "util/budget.h"
#include "util/map64.h"

enum link_step {
	LINK_NONE,    /* the target has no agent, and no use for one so far */
	LINK_AWAITED, /* its library is mapped, or will be: its memory file is being looked for */
	LINK_ASKED,   /* it was asked to record */
	LINK_RECORDING,
	LINK_WITHOUT, /* no device activities can be recorded of this target: see .reason */
	LINK_OVER,    /* it rests or is gone, and all its records have been read */
};

#define LINK_RECENT 1024 /* a power of two: four times the number of slots */
#define LINK_REASON_BYTES 320

struct agent_link { /* what is known of a target's agent */
	enum link_step step;
	char reason[LINK_REASON_BYTES]; /* why the step is WITHOUT, in words */
	enum kprof_agent_reason reason_code;
	bool injected;
	struct injection *injection; /* NULL: none is under way */
	/* the runtime loads it through its environment variable, and waits a while for kprof */
	bool by_environment;
	uint64_t held_ns; /* how long the target was held by all tries to inject */
	int tries;        /* how often injecting was tried */
	uint64_t next_try_ns;
	/* when it was first known that there is something to record; 0: not yet */
	uint64_t wanted_ns;
	uint64_t recording_ns;       /* since when the agent has recorded; 0: not yet */
	uint64_t seen_ns;            /* when it was last seen to record */
	uint64_t await_ns;           /* until when its memory file is looked for often */
	struct agent_memory *memory; /* NULL: no memory file was found */
	struct agent_records *records;
	struct approximate *approximate; /* where the step is WITHOUT: see calls.c; or NULL */
	/* when another kprof was found to hold the agent, or to send a heartbeat; 0: none does */
	uint64_t other_ns;
	uint64_t other_beat_ns;      /* its last heartbeat */
	bool stood_by;               /* it was waiting for a command, and is to do so again */
	uint32_t session;            /* number that kprof gave to its session */
	struct kprof_agent_shm head; /* as last read */
	uint64_t cpu_ns, cpu_at_ns;  /* its .cpu_ns that was counted last, and when; 0: never */
	/* thread id in the agent's PID namespace → thread id on the host */
	struct map64 tids;
	uint64_t tids_ns; /* when these ids were read */
	uint64_t giver; /* PID << 32 | TID of who handed over the batch that is read; 0: none is */
	struct budget looks; /* for threads that the agent has named */
	struct budget gone;  /* those that were not there, and are believed */
	/*
	 * Keys of the latest batches (batch_key()): a thread that is killed after handing over,
	 * before it empties its slot, leaves records that have been read already.
	 */
	uint64_t recent[LINK_RECENT];
	uint32_t nr_recent;
	uint64_t salvaged;         /* records read from slots that were never handed over */
	uint64_t spans_threadless; /* entries of operators of threads that are not known */
	/* of what was received, what has been counted: the files before have it */
	uint64_t told_captured, told_spans, told_threadless;
	uint64_t strange; /* batches of another session */
	uint32_t modules; /* bits 1 << enum kprof_agent_runtime: which of its modules were asked */
	bool operators_said; /* that its operators can't be observed */
	bool layout_said;    /* that they are, without their inputs or sequence numbers */
	bool device_said;    /* that they are, but not what its device does */
	bool metrics_said;   /* why it has no metrics */
	/* runtime that the target uses and an agent can observe; NULL */
	const struct catalog_runtime *runtime;
	struct agents *agents;
	struct target *target;
};

struct agents {
	struct agents_opts opts;
	uint32_t slot;           /* number of the targets' slot that holds a struct agent_link * */
	char *library;           /* NULL: not found */
	uint64_t types;          /* bits 1 << enum kprof_activity; 0: no agents */
	uint32_t record_options; /* KPROF_AGENT_OPT_* */
	struct agent_ticks ticks;
	uint32_t observe; /* bits 1 << enum kprof_scope; 0: operators are not observed */
	uint32_t modules; /* bits 1 << enum kprof_agent_runtime: whose devices are to be recorded */
	uint32_t batch_source, record_source;
	uint32_t span_source;      /* of operators that are observed */
	struct agent_pulse *pulse; /* NULL: no agent yet */
	bool opened;               /* the window has opened */
	bool versions_recorded;
	bool metrics_told; /* a process had metrics, or it was said why it had none */
	uint64_t next_look_ns;
	uint64_t cpu_ns; /* of all agents since they record */
	/* threads that ended lately: calls that they made may still be reported */
	struct ended_thread {
		uint64_t pid_tgid, start_ns, end_ns;
		uint32_t index;
	} ended[256];
	uint32_t nr_ended;
	/* For targets without a working agent: see calls.c. */
	struct map64 roles; /* probe → enum device_role + 1 */
	struct map64 waits; /* number of a span → struct wait * */
	uint64_t nr_waits;
};

/* What is known of the target's agent; NULL: nothing. */
static inline struct agent_link *agents__link(const struct agents *a, const struct target *t)
{
	return t->slot[a->slot];
}

#define AGENT_PYTORCH (1u << KPROF_AGENT_PYTORCH)

/* Is there anything that agents are to record? */
static inline bool agents__any(const struct agents *a)
{
	return a->types || a->observe;
}

/* The link of the first target from t on that has one; NULL: none has. */
static inline struct agent_link *agents__next_link(const struct agents *a, const struct target *t)
{
	while (t && !agents__link(a, t))
		t = t->hh.next;
	return t ? agents__link(a, t) : NULL;
}
#define LINKS_EACH(a, link)                                                            \
	for ((link) = agents__next_link(a, targets__first((a)->opts.targets)); (link); \
	     (link) = agents__next_link(a, (link)->target->hh.next))

/* Is there an agent that has not been told to leave? */
static inline bool agent__connected(const struct agent_link *link)
{
	return link->memory && link->step != LINK_OVER;
}

/* ---- functions used by other files of the room ---- */

/* The injection has ended. */
void agent__injected(struct agent_link *link, uint64_t now_ns);
/* Reads the agent's head, and acts on changes of its state. */
int agent__tend(struct agents *a, struct agent_link *link, uint64_t now_ns);
/* The index in the capture of a thread that the agent names: see agent_records_ops. */
int agent__find_thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index);
/* See agent_records_ops.spans(). */
int agent__spans(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *spans,
		 size_t nr);
/* By enum kprof_agent_reason. */
struct agent_reason {
	const char *name;  /* in the capture's metadata */
	const char *words; /* where the agent itself gives no detail */
};
const struct agent_reason *agent__reason(uint32_t reason);
/* Reports the failure that the agent's head, as last read, tells of. */
void agent__failed(struct agent_link *link);
/* Reports, once, that the target's device activities cannot be recorded. */
void agent__without(struct agent_link *link, enum kprof_agent_reason code, const char *hint,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Reports, once, that the target's operators are not observed. */
void agent__not_observed(struct agent_link *link, const char *why);
/* Reads records that are in slots and were not handed over. */
int agent__salvage(struct agent_link *link);
/* Lets the agent go, once its numbers are final. */
void agent__dismiss(struct agent_link *link);
/* By this command: it leaves, or it sleeps in its process. */
enum kprof_agent_command agent__end_command(const struct agent_link *link);
/*
 * Writes the metadata of the target's agent, and adds its numbers to those of the session. Does so
 * once.
 */
int agent__account(struct agents *a, struct agent_link *link);
/* Frees the target's agent_link, if it has one. */
void agent__free(struct agents *a, struct target *t);

/*
 * observer.c: can the operators of the target be observed? Looks at its libraries, and says why
 * not, once.
 */
bool agent__can_observe(struct agents *a, struct agent_link *link, const struct proc_map *library);
/*
 * Before the agent is asked to record: where it finds what operators are called with, and their
 * sequence numbers. Returns the options to ask with: without what can't be learnt, which is said.
 */
uint32_t agent__ask_layout(struct agents *a, struct agent_link *link);
/* The host's number of a thread; 0: not known. */
uint32_t agent__host_tid(struct agent_link *link, uint32_t tid);
/* Takes the records that are in this slot and were not handed over. */
int agent__salvage_slot(struct agent_link *link, uint32_t i);

/* metrics.c: says which of the metrics cost much. */
void agent_metrics__warn(const char *names);
/* Before the agent is asked to record, while it does, and at the end. */
void agent_metrics__ask(const struct agents *a, struct agent_link *link);
void agent_metrics__tend(const struct agents *a, struct agent_link *link);
int agent_metrics__account(struct agents *a, struct agent_link *link);
void agent_metrics__end(const struct agents *a); /* after that of all processes */

/* calls.c */
void agents__calls_free(struct agents *a);

#endif
