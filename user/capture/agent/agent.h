/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof's side of the agents (kprof/agent.h): finds the agents of targets, or injects them; asks
 * them to record; and takes their records, also those that a dead target has left.
 */
#ifndef KPROF_CAPTURE_AGENT_H
#define KPROF_CAPTURE_AGENT_H

#include "capture/agent/records.h"
#include "capture/probe/probe.h"
#include "kprof.h"
#include "kprof/agent.h"

struct agents;
struct catalog_runtime;

struct agents_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct probe_set *probes;
	const struct kprof_session_opts *session; /* must stay valid */
	void *ctx;
	/* The thread of this process with this id, which is added if it is new; NULL: no memory. */
	struct thread *(*thread)(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns);
	/* What an agent observed of a thread: see agent_records_ops.spans(). */
	int (*observed)(void *ctx, struct thread *th, uint32_t depth,
			const struct agent_span *spans, size_t nr);
	/* Reads the records in the rings, and waits a moment for more. */
	int (*drain)(void *ctx);
};

int agents__new(const struct agents_opts *opts, struct agents **out);
void agents__free(struct agents *a);
/*
 * To be called before a program is started: warns of variables in its environment that keep
 * runtimes from loading the agent.
 */
void agents__warn_environment(const struct agents *a);
/*
 * To be called in the child that will execute the program: sets the variables that make device
 * runtimes load the agent.
 */
void agents__set_environment(const void *agents);

/*
 * To be called before the window opens: waits, for some seconds at most, until the agents that were
 * asked to record do so. Drains the rings.
 */
int agents__start(struct agents *a);
/* The window has opened. */
void agents__opened(struct agents *a);
/* Looks at the state of all agents, and acts on changes. To be called between drains. */
int agents__tend(struct agents *a, uint64_t now_ns);
/*
 * Is an agent being looked for, or getting ready? Then agents__tend() should be called again soon.
 */
bool agents__pending(const struct agents *a);
/*
 * The window has closed: has the agents hand over the records they have, and rest. Drains the
 * rings.
 */
int agents__stop(struct agents *a);
/*
 * The last call: agents leave, so that other tools in their processes find the device's tool
 * interface free; their numbers are written to the capture.
 */
int agents__account(struct agents *a);
/*
 * The recording's file ends, and it goes on in another one: what of agents' records was received so
 * far counts for the old file, and is described in it.
 */
int agents__so_far(struct agents *a);

/* CPU time, in ns, that agents have used in their processes so far, as they say. */
uint64_t agents__cpu_ns(const struct agents *a);

/* The target's mappings have just been read: looks for its agent, and for device runtimes. */
int agents__look(struct agents *a, struct target *t);
/* An agent of this target (NULL: of an unknown process) has handed records over. */
int agents__batch(struct agents *a, struct target *t, const struct kprof_wire_hdr *h);
/* The program that the target ran has ended: takes the records that its agent has left. */
int agents__gone(struct agents *a, struct target *t);
/* A thread has ended; calls that it made may still be reported. */
void agents__thread_ended(struct agents *a, const struct thread *th, uint64_t time_ns);
/*
 * A probe saw a call begin, as the innermost span of its thread (e is NULL if no arguments were
 * read); and end.
 */
int agents__call_begun(struct agents *a, struct thread *th, uint32_t probe,
		       const struct kprof_wire_begin_args *e, uint64_t time_ns);
int agents__call_ended(struct agents *a, uint64_t span, uint64_t time_ns);

/* ---- operators that agents observe (observer.c) ---- */

/* Are the target's operators recorded by its agent? */
bool agents__observes(const struct agents *a, const struct target *t);
/* A thread ends: takes the records that it has left in its slot, if it was killed. */
int agents__salvage_thread(struct agents *a, const struct thread *th);
/*
 * Looks at what such a target's threads have not handed over yet. early() is called for each of
 * these threads (by host's TID; 0: they may be of any thread) with the time of the earliest record;
 * what happened before now on other threads has been handed over.
 */
void agents__unread(struct agents *a, const struct target *t,
		    void (*early)(void *ctx, uint32_t tid, uint64_t since_ns), void *ctx);

/* ---- the agent's library ---- */

/*
 * How long the agent may delay the first use of a runtime until kprof has found the agent, so that
 * nothing is missed.
 */
#define AGENT_DOOR_WAIT_MS 2000
/*
 * Path of the library, malloc'ed; NULL: not found. asked: the path from the session's options, or
 * NULL.
 */
char *agent_library__find(const char *asked);
/*
 * Was the process started with an environment in which this runtime loads an agent that waits for
 * kprof?
 */
bool agent_library__in_environment(uint32_t pid, const struct catalog_runtime *rt);

#endif
