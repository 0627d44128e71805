/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof's side of the agents (kprof/agent.h): which targets have one, or get one; what they are
 * asked to record, what they report, what they hand over, and what is left of it when a target
 * dies.
 */
#ifndef KPROF_CAPTURE_AGENT_H
#define KPROF_CAPTURE_AGENT_H

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
	enum kprof_agent_mode agent;
	const char *library; /* as the session's options name it; NULL */
	uint64_t types;      /* as the session's options: 0: the usual ones */
	bool cuda_sync;
	void *ctx;
	/* The thread of this process with this number, added when it is new; NULL: no memory. */
	struct thread *(*thread)(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns);
	/* Reads what lies in the rings, and waits a moment for more. */
	int (*drain)(void *ctx);
};

int agents__new(const struct agents_opts *opts, struct agents **out);
void agents__free(struct agents *a);
/* A program is about to be started: says what of its environment stands in the agent's way. */
void agents__warn_environment(const struct agents *a);
/* In the child that will execute it: device runtimes load the agent by themselves. */
void agents__set_environment(const void *agents);
/* What a batch of records, the kernel's record of an agent's hand-over, counts for. */
uint32_t agents__batch_source(const struct agents *a);

/*
 * Before the window opens: waits, a moment at most, until those that were asked to record do.
 * Drains the rings.
 */
int agents__start(struct agents *a);
/* The window has opened. */
void agents__opened(struct agents *a);
/* What has changed with them. Called between drains. */
int agents__tend(struct agents *a, uint64_t now_ns);
/* Some are being found, or make ready: agents__tend() should be called soon again. */
bool agents__pending(const struct agents *a);
/* The window has closed: lets them hand over what they have, and rest. Drains the rings. */
int agents__stop(struct agents *a);
/*
 * The last word: agents leave (their targets' other tools find the device's interface free),
 * numbers go to the capture.
 */
int agents__account(struct agents *a);

/* The target's mappings have just been read. */
int agents__look(struct agents *a, struct target *t);
/* An agent of this target (NULL: of an unknown process) has handed records over. */
int agents__batch(struct agents *a, struct target *t, const struct kprof_wire_hdr *h);
/* The program that the target ran is gone: takes what its agent left. */
int agents__gone(struct agents *a, struct target *t);
/* A thread has ended; calls that it made may still be reported. */
void agents__thread_ended(struct agents *a, const struct thread *th, uint64_t time_ns);
/*
 * A call was seen to begin, as the innermost span of its thread (e: NULL, no arguments were read);
 * to end.
 */
int agents__call_begun(struct agents *a, struct thread *th, uint32_t probe,
		       const struct kprof_wire_begin_args *e, uint64_t time_ns);
int agents__call_ended(struct agents *a, uint64_t span, uint64_t time_ns);

/* ---- the agent's library ---- */

/*
 * How long the agent may hold the first use of a runtime until kprof has found it, so that nothing
 * is missed.
 */
#define AGENT_DOOR_WAIT_MS 2000
/* malloc'ed, NULL: not found. asked: as the session's options say; NULL. */
char *agent_library__find(const char *asked);
/*
 * In a child before it executes its program: device runtimes load the agent by themselves. modules:
 * which (bits 1 << enum kprof_agent_runtime).
 */
void agent_library__set_environment(const char *library, uint32_t modules);
/* Says what of the environment stands in the way. */
void agent_library__warn_environment(const char *library, uint32_t modules);
/* Was the process started in an environment in which this runtime loads an agent, and waits? */
bool agent_library__in_environment(uint32_t pid, const struct catalog_runtime *rt);

#endif
