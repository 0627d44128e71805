/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of this room share.
 *
 *   agents.c     all agents together: start, tending, stop
 *   connect.c    finding a target's agent, injecting one, asking it to record
 *   link.c       one target's agent: what it says, what it hands over, what it leaves
 *   account.c    numbers and metadata
 *   calls.c      from calls to approximate.c, where there is no agent to listen to
 *   library.c    where libkprof_agent.so is
 *   memory.c     the memory shared with an agent; pulse.c its heartbeats
 *   records.c    batches → capture records, with activity.c and clock.c
 */
#ifndef KPROF_CAPTURE_AGENT_IMPL_H
#define KPROF_CAPTURE_AGENT_IMPL_H

#include "capture/agent/agent.h"
#include "capture/agent/approximate.h"
#include "capture/agent/memory.h"
#include "capture/agent/records.h"
#include "catalog/runtime.h"
#include "util/map64.h"

enum link_step {
	LINK_NONE,    /* the target has no agent, and no use for one so far */
	LINK_AWAITED, /* its library is there, or will be: its memory is looked for */
	LINK_ASKED,   /* RECORD was sent */
	LINK_RECORDING,
	LINK_WITHOUT, /* no device activities from this target: see reason */
	LINK_OVER,    /* it rests, or is gone: what it had has been read */
};

#define LINK_RECENT 1024 /* a power of two: four times the slots */
#define LINK_REASON_BYTES 320

struct agent_link { /* of a target */
	enum link_step step;
	char reason[LINK_REASON_BYTES]; /* WITHOUT: in words */
	enum kprof_agent_reason reason_code;
	bool injected;
	/* loaded by the runtime, whose first use waits for kprof, though not for ever */
	bool by_environment;
	uint64_t held_ns; /* how long the target was held for that, all tries */
	int tries;        /* of injecting */
	uint64_t next_try_ns;
	uint64_t wanted_ns;          /* since when there has been something to record; 0: not yet */
	uint64_t recording_ns;       /* since when it does; 0: not yet */
	uint64_t await_ns;           /* until when its memory is looked for closely */
	struct agent_memory *memory; /* NULL: none found */
	struct agent_records *records;
	uint64_t other_beat_ns;      /* of another kprof that listens to it; 0: none */
	uint32_t session;            /* our number of its session */
	struct kprof_agent_shm head; /* as last read */
	struct map64 tids;           /* thread id in its namespace → the host's */
	uint64_t tids_ns;            /* when they were read */
	/*
	 * What the latest batches began with: a thread that is killed between handing over and
	 * saying so leaves a slot that has been read already.
	 */
	uint64_t recent[LINK_RECENT];
	uint32_t nr_recent;
	uint64_t salvaged; /* records read from the memory after the fact */
	uint64_t strange;  /* batches of another session */
	/* that the target uses, and an agent can watch; NULL */
	const struct catalog_runtime *runtime;
	struct agents *agents;
	struct target *target;
};

struct agents {
	struct agents_opts opts;
	uint32_t slot;           /* of a target: struct agent_link * */
	char *library;           /* NULL: not found */
	uint64_t types;          /* bits 1 << enum kprof_activity; 0: no agents */
	uint32_t record_options; /* KPROF_AGENT_OPT_* */
	uint32_t modules; /* bits 1 << enum kprof_agent_runtime: of devices that are wanted */
	uint32_t batch_source, record_source;
	struct agent_pulse *pulse; /* NULL: no agent yet */
	bool opened;               /* the window */
	bool versions_recorded;
	uint64_t next_look_ns;
	struct ended_thread { /* of late: calls that they made may still be reported */
		uint64_t pid_tgid, start_ns, end_ns;
		uint32_t index;
	} ended[256];
	uint32_t nr_ended;
	/* Of targets without a working agent: calls.c */
	struct approximate *approximate; /* NULL: none so far */
	struct map64 roles;              /* by probe */
	struct map64 waits;              /* by span */
	uint64_t nr_waits;
};

/* NULL: there is nothing to say about one. */
static inline struct agent_link *agents__link(const struct agents *a, const struct target *t)
{
	return t->slot[a->slot];
}

/* ---- between the files ---- */

/* It is ready, and the process has loaded no device runtime: there is nothing to wait for. */
static inline bool agent__idle(const struct agent_link *link)
{
	return link->memory && link->head.recording == link->session &&
	       link->head.state == KPROF_AGENT_LOADED &&
	       link->head.reason == KPROF_AGENT_NO_RUNTIME;
}
/* Reads the agent's head and acts on what it says. */
int agent__tend(struct agents *a, struct agent_link *link, uint64_t now_ns);
/* The index in the capture of a thread of the agent's: see agent_records_ops. */
int agent__find_thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index);
/* Says what its head, as last read, says of a failure. */
void agent__failed(struct agent_link *link);
/* Device activities cannot be had: says so, once. */
void agent__without(struct agent_link *link, enum kprof_agent_reason code, const char *hint,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Takes what lies in the slots and was not handed over. */
int agent__salvage(struct agent_link *link);
/* What it has to say is known: its numbers are final, and it may go. */
void agent__dismiss(struct agent_link *link);
/* Metadata of the target's agent; its numbers go to the session's. Once. */
int agent__account(struct agents *a, struct agent_link *link);
/* Frees what is known of the target's agent, if there is anything. */
void agent__free(struct agents *a, struct target *t);

/* calls.c */
void agents__calls_free(struct agents *a);

#endif
