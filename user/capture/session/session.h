/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording: the parts that it is composed of, and what goes on between them. The parts know
 * nothing of the session, nor of each other but what their headers say. One thread does everything:
 * it drains the rings, hands each record to the parts that it concerns, learns return sites,
 * follows processes.
 *
 *   session.c    the public calls: configure, start, poll, stop
 *   loop.c       what is done again and again while recording, and how long to sleep in between
 *   dispatch.c   records from the rings, in order of time, to the parts
 *   processes.c  processes that come, change their program, and go
 *   threads.c    threads that come and go
 *   account.c    what the capture says about itself
 */
#ifndef KPROF_CAPTURE_SESSION_H
#define KPROF_CAPTURE_SESSION_H

#include "capture/agent/agent.h"
#include "capture/event/event.h"
#include "capture/probe/probe.h"
#include "capture/process/process.h"
#include "capture/target/target.h"
#include "capture/record/record.h"
#include "capture/ring/ring.h"
#include "capture/sample/sample.h"
#include "capture/span/spans.h"
#include "kprof.h"

struct kprof_session {
	struct kprof_session_opts opts;
	struct plan_filter filter;
	uint64_t ops_matched; /* see plan_filter */
	bool single;          /* without uprobe_multi */
	/* The parts, in the order in which they are made. */
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct spans *spans;
	struct attacher *attacher;
	struct rings *rings;
	struct probe_set *probes;
	struct namer *namer;
	struct calls *calls;
	struct marks *marks;
	struct thread_names *thread_names;
	struct agents *agents;
	struct stacks *stacks; /* NULL: no stacks are recorded */
	struct spawn spawned;
	/* loop.c */
	uint64_t ring_bytes; /* of each ring */
	int idle_ms;         /* how long to sleep between looks */
	uint64_t next_flush_ns;
	/* processes.c */
	uint64_t next_scan_ns;
	/* records of forks and exits that were lost, as far as made up for */
	uint64_t tasks_dropped;
	uint32_t nr_processes;
	bool rank_recorded; /* metadata "distributed" */
	/* dispatch.c */
	uint64_t unknown_pids; /* records of processes that are not (or no longer) targets */
	/* account.c */
	uint64_t attach_ns, detach_ns;
	uint64_t dropped, missed;
};

/* ---- loop.c ---- */

/* Drains the rings, and learns return sites on the way. Records read, or a negative errno. */
int loop__drain(struct kprof_session *s);
/*
 * For who waits for something else meanwhile: the same, not for long, then waits a moment. ctx: the
 * session.
 */
int loop__drain_and_wait(void *ctx);
/* Learns where calls return to, before the window opens. */
int loop__warm_up(struct kprof_session *s);
/* Drains, and does what is due. Records read, or a negative errno. */
int loop__look(struct kprof_session *s);
/* Sleeps until there is something to do, left_ms at most. bytes: what the last look read. */
void loop__pause(struct kprof_session *s, uint64_t bytes, int64_t left_ms);
/* The last drain: what programs had begun when they were stopped. */
int loop__drain_rest(struct kprof_session *s);

/* ---- dispatch.c ---- */

#define DISPATCH_RECORDS 4096
/* At most so many records; returns how many, or a negative errno. */
int dispatch__drain(struct kprof_session *s, bool final);
int dispatch__spans_new(struct kprof_session *s);

/* ---- processes.c ---- */

int process__add(struct kprof_session *s, uint32_t pid, uint32_t ppid, bool child, uint64_t time_ns,
		 struct target **out);
/* Reads its mappings anew and places the probes that are missing. */
int process__refresh(struct kprof_session *s, struct target *t);
/* It lives when the recording is over: records where probes could not be placed. */
int process__survived(struct kprof_session *s, struct target *t);
int process__on_fork(struct kprof_session *s, struct target *parent,
		     const struct kprof_wire_task *e);
int process__on_exec(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e);
/* Frees the target. */
int process__on_exit(struct kprof_session *s, struct target *t, uint64_t time_ns);
/* Makes targets of descendants that are none yet. */
int processes__adopt(struct kprof_session *s, uint64_t since_ns);
/* What is due: libraries that came, processes that went unnoticed. */
int processes__tend(struct kprof_session *s, uint64_t now_ns);

/* ---- threads.c ---- */

/* The thread of this number, recorded when it is new; NULL: no memory. */
struct thread *thread__of(struct kprof_session *s, struct target *t, uint64_t pid_tgid,
			  uint64_t time_ns);
/* exit_ns 0: it lives. */
int thread__record(struct kprof_session *s, const struct thread *th, uint64_t exit_ns);
/* Records its exit and frees it. */
int thread__end(struct kprof_session *s, struct thread *th, uint64_t time_ns);
/* All of a process that has ended. */
int threads__end(struct kprof_session *s, const struct target *t, uint64_t time_ns);
/* Ends threads that are not there any more, whose exit was not reported. */
int threads__sweep(struct kprof_session *s, uint64_t time_ns);

/* ---- account.c ---- */

int account__begin(struct kprof_session *s);
int account__end(struct kprof_session *s);

#endif
