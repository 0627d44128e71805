/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof's side of the agents: which targets have one, or get one; what they are told, what they say, what they hand
 * over, and what is left of it when a target dies.
 *
 *   agent.c           a target's agent from being found until it is gone
 *   agent_session.c   all of them together: sources, start, tending, stop
 *   agent_account.c   numbers and metadata, and letting them go
 *   agent_calls.c     from calls to approximate.c, where there is no agent to listen to
 *   agent_library.c   where libkprof_agent.so is, and the environment in which a program loads it by itself
 *   agent_memory.c    the memory shared with an agent; agent_pulse.c its heartbeats
 *   agent_records.c   batches → capture records, with agent_activity.c and agent_clock.c
 */
#ifndef KPROF_CAPTURE_AGENT_H
#define KPROF_CAPTURE_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/agent/memory.h"
#include "capture/agent/records.h"
#include "capture/session/session.h"

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
	bool by_door; /* loaded by the runtime, whose first use waits for kprof, though not for ever */
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
	 * What the latest batches began with: a thread that is killed between handing over and saying so leaves
	 * a slot that has been read already.
	 */
	uint64_t recent[LINK_RECENT];
	uint32_t nr_recent;
	uint64_t salvaged; /* records read from the memory after the fact */
	uint64_t strange;  /* batches of another session */
	struct kprof_session *s;
	struct target *target;
};

/* ---- for the session ----------------------------------------------------------------------------- */

int agents__new(struct kprof_session *s);
void agents__free(struct kprof_session *s);
/* Before the window opens: waits, a moment at most, until those that were asked to record do. Drains the rings. */
int agents__start(struct kprof_session *s);
/* The window has opened. */
void agents__opened(struct kprof_session *s);
/* What has changed with them. Called between drains. */
int agents__tend(struct kprof_session *s, uint64_t now_ns);
/* Some are being found, or make ready: agents__tend() should be called soon again. */
bool agents__pending(const struct kprof_session *s);
/* The window has closed: lets them hand over what they have, and rest. Drains the rings. */
int agents__stop(struct kprof_session *s);
/* The last word: agents leave (their targets' other tools find CUPTI free), numbers go to the capture. */
int agents__account(struct kprof_session *s);
/* A thread has ended; calls that it made may still be told of. */
void agents__thread_ended(struct kprof_session *s, const struct thread *th, uint64_t time_ns);

/* agent_calls.c: a call was seen to begin, as the innermost span of its thread (e: NULL, none read); to end. */
int agents__call_begun(struct kprof_session *s, struct thread *th, uint32_t probe,
		       const struct kprof_wire_begin_args *e, uint64_t time_ns);
int agents__call_ended(struct kprof_session *s, uint64_t span, uint64_t time_ns);
void agents__calls_free(struct kprof_session *s);

/* The target's mappings have just been read. */
int agent__look(struct kprof_session *s, struct target *t);
int agent__batch(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h);
/* The program that the target ran is gone: takes what its agent left. */
int agent__gone(struct kprof_session *s, struct target *t);

/* ---- between the files ---------------------------------------------------------------------------- */

/* It is ready, and the process has loaded no device runtime: there is nothing to wait for. */
static inline bool agent__idle(const struct agent_link *link)
{
	return link->memory && link->head.recording == link->session &&
	       link->head.state == KPROF_AGENT_LOADED &&
	       link->head.reason == KPROF_AGENT_NO_RUNTIME;
}
/* Reads the agent's head and acts on what it says. */
int agent__tend(struct kprof_session *s, struct agent_link *link, uint64_t now_ns);
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
int agent__account(struct kprof_session *s, struct agent_link *link);
void agent__free(struct kprof_session *s, struct target *t);

/* agent_library.c */
/* How long the agent may hold the first use of CUDA until kprof has found it, so that nothing is missed. */
#define AGENT_DOOR_WAIT_MS 2000
/* malloc'ed, NULL: not found. asked: as the session's options say; NULL. */
char *agent_library__find(const char *asked);
/* In a child before it executes its program: device runtimes load the agent by themselves. */
void agent_library__set_environment(const char *library);
/* Says what of the environment stands in the way. */
void agent_library__warn_environment(const char *library);
/* Was the process started in an environment in which CUDA loads an agent by itself? */
bool agent_library__in_environment(uint32_t pid);

#endif
