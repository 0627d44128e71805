// SPDX-License-Identifier: BSD-2-Clause
/*
 * Injects the agent into a running process: finds a thread that can be used, and uses it.
 *
 *   1. check.c, loader.c  Find out, without touching the process, what kind of process it is, where
 *                         the functions of its loader are, and that no library is being loaded.
 *   2. safe.c, stack.c    Its threads are tried in order, first those that wait in a harmless
 *                         system call. A thread is stopped (remote.c). If it is at a place where it
 *                         cannot be used, it is released, and the next one is tried.
 *   3. frame.c            A signal frame is written below its stack; returning into that frame
 *                         restores the thread.
 *   4. load.c             The thread makes system calls, each of which returns into that frame:
 *                         memfd_create(); then kprof writes the library into the memfd, so that it
 *                         does not matter which files the target sees, and after it the code of
 *                         steps 5 and 7; then mmap() and mprotect() of that code.
 *   5. stub.c             It runs that code on a separate stack: pthread_create().
 *   6. load.c, remote.c   munmap(); registers, vector state and signals are restored, and the
 *                         thread goes on with its own work.
 *   7. stub.c             The new thread: dlopen(), kprof_agent_start(). It may wait there for
 *                         locks for as long as it takes, since it holds none of the program's, and
 *                         nobody waits for it or can cancel it.
 *
 * If kprof is killed, at whatever point, the threads finish on their own. What may remain is a
 * memfd and a mapping that nothing uses; the next injection removes them (leftovers.c).
 *
 * All that the borrowed thread is held for has one deadline. A thread that does not come back by
 * then is taken out of what it was made to do, and goes on with its own work (remote.c).
 * pthread_create() may have taken a lock there that nobody releases any more. So this process is
 * not tried again.
 *
 * Each round over the threads happens in a thread of kprof's own: when a tracing thread ends, the
 * kernel detaches it from everything, even from a thread of the target that has not stopped yet.
 */
#include "capture/inject/inject.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/inject/priv.h"
#include "kprof/agent.h"
#include "util/error.h"
#include "util/haste.h"
#include "util/util.h"

#define TRY_FOR_NS (10 * NSEC_PER_SEC)
#define TRY_LONGEST_NS (30 * NSEC_PER_SEC)
/* rounds; they take some five seconds where nothing keeps kprof from running */
#define ROUNDS_LEAST 200
#define TASK_NS (5 * NSEC_PER_SEC) /* to load and start the agent, while no thread is held */
#define NAP_FIRST_NS 500000
#define NAP_LONGEST_NS 20000000
#define LIBRARY_MAX_BYTES (64u << 20)
#define LOOKS_AT_LOADER 200
/*
 * Looks at the loader's lock while a thread is held: half a millisecond. That is enough for a load
 * that began before the thread was stopped; a longer one may wait for this very thread.
 */
#define LOOKS_WHILE_HELD 25
#define LOADER_IS_BUSY "the program is loading a library"

struct work {
	pid_t pid;
	const char *library_path;
	struct inject_result *out;
	const atomic_bool *stop; /* set: no further tries */
	uint64_t begin_ns;       /* CLOCK_MONOTONIC */
	unsigned int rounds;
	/* Result of the last round. */
	int err;
	char cause[1024], hint[1024];
	enum kprof_error_class class;

	bool looked;    /* the fields from here on are set */
	bool held_back; /* a thread did not stop, and could not be released */
	struct inject_library library;
	struct inject_target target;
	struct inject_walker *walker; /* NULL: none yet */
	struct inject_leftovers leftovers;
	struct inject_task task;
	bool loading; /* the last thread could not be used because a library was being loaded */
	/*
	 * The system call that the last stop interrupted. While the thread stays in it, the kernel
	 * shows restart_syscall(2) instead, which is not to be restarted from its begin.
	 */
	struct {
		pid_t tid; /* 0: none */
		uint64_t ip, sp, nr;
	} interrupted;
	char why[128]; /* why the last thread could not be used */
	pid_t why_tid;
};

/* ---- finding a thread ---- */

static int not_this_one(struct work *w, pid_t tid, const char *why)
{
	snprintf(w->why, sizeof(w->why), "%s", why);
	w->why_tid = tid;
	return -EAGAIN;
}

/* Tries to use a stopped thread. 0: the agent is loaded. -EAGAIN: try another thread, or later. */
static int try_stopped(struct work *w, struct remote *r)
{
	const char *stack_why = "";
	char why[128];
	int err;

	if (!inject_target__same_program(&w->target))
		return error_set(-ESRCH, "try again",
				 "process %d ended or executed another program meanwhile",
				 (int)w->pid);
	/*
	 * If kprof is killed while the thread works for it, a call that cannot be restarted from
	 * its begin ends with EINTR.
	 */
	if (r->restart_nr == SYS_restart_syscall)
		return not_this_one(w, r->tid, "its wait was interrupted");
	err = inject_safe(&w->target, w->walker, r, why, sizeof(why));
	if (err == -EAGAIN)
		return not_this_one(w, r->tid, why);
	w->loading = !err && !inject_loader_gets_free(&w->target, LOOKS_WHILE_HELD);
	if (w->loading)
		return not_this_one(w, r->tid, LOADER_IS_BUSY);
	if (!err && w->target.seccomp)
		err = inject_seccomp(&w->target, r);
	if (err)
		return err;
	err = remote__hijack(r, &w->target, KPROF_AGENT_LIBRARY, &stack_why);
	if (err == -EAGAIN)
		return not_this_one(w, r->tid, stack_why);
	return err ? err : inject_load(&w->target, &w->library, &w->leftovers, r, &w->task);
}

/* The number of the system call to restart, if this is the one that the last stop interrupted. */
static void remember_call(struct work *w, struct remote *r)
{
	if (r->restart_nr == SYS_restart_syscall && w->interrupted.tid == r->tid &&
	    w->interrupted.ip == r->regs.rip && w->interrupted.sp == r->regs.rsp)
		r->restart_nr = w->interrupted.nr;
	w->interrupted.tid = r->tid;
	w->interrupted.ip = r->regs.rip;
	w->interrupted.sp = r->regs.rsp;
	w->interrupted.nr = r->restart_nr;
}

/*
 * While a thread of the target is held it waits for this one at every step. So this thread looks
 * often, and has priority over whatever keeps the CPUs busy. Without the rights for that, injecting
 * only takes longer.
 */
static void hurry(void)
{
	const struct sched_param lowest = {.sched_priority = 1};

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	sched_setscheduler(0, SCHED_FIFO, &lowest);
}

/* Normal priority again: no thread is held. */
static void take_turns(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_OTHER, &none);
}

static int try_thread(struct work *w, pid_t tid)
{
	struct remote r;
	int err;

	w->loading = false;
	hurry();
	err = remote__stop(&r, w->pid, tid);
	if (!err)
		remember_call(w, &r);
	if (!err)
		err = try_stopped(w, &r);
	else if (err == -EAGAIN)
		not_this_one(w, tid, "it does not stop");
	/* the thread has ended; the next round sees whether the process has, too */
	else if (err == -ESRCH)
		err = not_this_one(w, tid, "it ended");
	w->held_back = !remote__release(&r);
	take_turns();
	w->out->held_ns += r.held_ns;
	return err ? err : inject_task__wait(&w->target, &w->task, clock_mono_ns() + TASK_NS);
}

/*
 * Is the time for trying over? Where the machine was busy with other programs kprof has made few
 * rounds, and goes on for longer.
 */
static bool time_is_over(const struct work *w)
{
	uint64_t spent_ns = clock_mono_ns() - w->begin_ns;

	return atomic_load(w->stop) ||
	       spent_ns > (w->rounds < ROUNDS_LEAST ? TRY_LONGEST_NS : TRY_FOR_NS);
}

static int read_mappings(struct work *w)
{
	int err = 0;

	if (!w->walker)
		err = inject_walker__new(w->pid, &w->walker);
	if (!err)
		err = inject_walker__refresh(w->walker);
	if (err && err != -ESRCH)
		err = error_set(err, NULL, "the unwind tables of process %d cannot be read",
				(int)w->pid);
	return err;
}

/*
 * Tries one thread, after building the unwind tables that it may need. Where a running thread is,
 * is only known once it is stopped; if tables are missing then, they are built and it is tried
 * again.
 */
static int try_prepared(struct work *w, const struct inject_candidate *c)
{
	bool again = true;
	int err = -EAGAIN;

	if (c->sp)
		inject_walker__prepare(w->walker, c->ip, c->sp);
	else
		inject_walker__prepare_small(w->walker);
	while (err == -EAGAIN && again && !w->held_back) {
		err = try_thread(w, c->tid);
		again = inject_walker__prepare_missing(w->walker) && !time_is_over(w);
	}
	return err;
}

/* Tries every thread once. Ends if a thread did not stop, since that might stop at any time. */
static int try_all(struct work *w)
{
	struct inject_candidate *candidates = NULL;
	size_t nr = 0;
	int err;

	err = inject_leftovers__find(&w->leftovers, &w->target);
	if (err == -EAGAIN)
		return not_this_one(w, w->pid, "an earlier attempt is still under way");
	if (err)
		return err;
	if (!inject_loader_gets_free(&w->target, LOOKS_AT_LOADER))
		return not_this_one(w, w->pid, LOADER_IS_BUSY);
	err = inject_candidates(&w->target, &candidates, &nr);
	if (err)
		return err;
	err = nr ? -EAGAIN : not_this_one(w, w->pid, "its threads are all in the kernel");
	w->held_back = false;
	for (size_t i = 0; i < nr && err == -EAGAIN && !w->held_back;) {
		err = try_prepared(w, &candidates[i]);
		/*
		 * While a library is being loaded no other thread can be used either, and the
		 * program may notice each stop: so the same thread is tried again.
		 */
		if (!w->loading)
			i++;
		if (time_is_over(w) ||
		    (w->loading && !inject_loader_gets_free(&w->target, LOOKS_AT_LOADER)))
			break;
	}
	free(candidates);
	return err;
}

/* ---- rounds ---- */

static int read_library(struct work *w)
{
	struct elffile *elf;
	int err;

	err = elffile__open(w->library_path, &elf); /* its error says what is wrong with the file */
	if (err)
		return err;
	elffile__close(elf);
	err = read_file(w->library_path, LIBRARY_MAX_BYTES, &w->library.data, &w->library.bytes);
	if (err)
		return error_set(err, NULL, "%s: %s", w->library_path, strerror(-err));
	return 0;
}

static int first_look(struct work *w)
{
	int err = 0;

	if (!w->library.data)
		err = read_library(w);
	if (!err)
		err = inject_target__open(w->pid, &w->target);
	if (err)
		inject_target__close(&w->target);
	else
		w->out->was_loaded = w->target.start;
	w->looked = !err;
	return err;
}

static void *round_main(void *arg)
{
	struct work *w = arg;
	const char *hint;

	error_clear();
	w->err = w->looked ? inject_target__refresh(&w->target) : first_look(w);
	if (!w->err)
		w->err = read_mappings(w);
	if (!w->err)
		w->err = try_all(w);
	if (!w->err)
		return NULL;
	hint = kprof_error_hint(); /* the error text is kept per thread, and this thread ends */
	snprintf(w->cause, sizeof(w->cause), "%s", kprof_error_cause());
	snprintf(w->hint, sizeof(w->hint), "%s", hint ? hint : "");
	w->class = kprof_error_class();
	return NULL;
}

/* Runs a round in a thread of its own, in which no signal handler of kprof runs. */
static int run_round(struct work *w)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* util/mapped.h */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&thread, NULL, round_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		snprintf(w->cause, sizeof(w->cause), "no thread for the injection: %s",
			 strerror(err));
		return -err;
	}
	pthread_join(thread, NULL);
	return w->err;
}

static int run_rounds(struct work *w)
{
	struct timespec nap = {0, NAP_FIRST_NS};
	int err;

	while ((err = run_round(w)) == -EAGAIN && !time_is_over(w)) {
		w->rounds++;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_LONGEST_NS)
			nap.tv_nsec *= 2;
	}
	if (err != -EAGAIN || !w->why[0])
		return err;
	snprintf(
		w->cause, sizeof(w->cause),
		"no thread of process %d was seen where it could be used, %u times (the last, %d: %s)",
		(int)w->pid, w->rounds, (int)w->why_tid, w->why);
	snprintf(w->hint, sizeof(w->hint),
		 "try again; or start it under kprof: kprof run -- PROGRAM");
	w->class = KPROF_ERROR_FAILED;
	return err;
}

static int run(struct work *w)
{
	const char *hint;
	int err;

	error_clear();
	err = run_rounds(w);
	inject_walker__free(w->walker);
	inject_target__close(&w->target);
	free(w->library.data);
	if (!err)
		return 0;
	snprintf(w->out->reason, sizeof(w->out->reason), "%.255s",
		 w->cause[0] ? w->cause : strerror(-err));
	hint = w->hint[0] ? w->hint : NULL;
	return error_set_as(w->class, err, hint, "%s", w->out->reason);
}

int inject_agent(pid_t pid, const char *library, struct inject_result *out)
{
	static const atomic_bool never;
	struct work w = {.pid = pid,
			 .library_path = library,
			 .out = out,
			 .stop = &never,
			 .begin_ns = clock_mono_ns()};

	*out = (struct inject_result){0};
	return run(&w);
}

/* ---- in a thread of its own ---- */

enum injection_state { INJECTION_UNDER_WAY, INJECTION_OVER, INJECTION_ABANDONED };

struct injection {
	pthread_t thread;
	pid_t pid;
	char *library;
	atomic_bool stop;
	atomic_int state; /* enum injection_state. Who sets the second of the last two frees this */
	struct inject_result result;
	int err;
	char hint[1024];
	enum kprof_error_class class;
};

static void injection__free(struct injection *i)
{
	free(i->library);
	free(i);
}

static void *injection_main(void *arg)
{
	struct injection *i = arg;
	struct work w = {.pid = i->pid,
			 .library_path = i->library,
			 .out = &i->result,
			 .stop = &i->stop,
			 .begin_ns = clock_mono_ns()};

	prctl(PR_SET_NAME, "kprof-inject");
	haste__drop();
	i->err = run(&w);
	if (i->err) {
		snprintf(i->hint, sizeof(i->hint), "%s", w.hint);
		i->class = w.class;
	}
	if (atomic_exchange(&i->state, INJECTION_OVER) == INJECTION_ABANDONED) {
		pthread_detach(pthread_self());
		injection__free(i);
	}
	return NULL;
}

int injection__start(pid_t pid, const char *library, struct injection **out)
{
	struct injection *i = calloc(1, sizeof(*i));
	sigset_t all, before;
	int err = -ENOMEM;

	if (i)
		i->library = strdup(library);
	if (i && i->library) {
		i->pid = pid;
		sigfillset(&all);
		sigdelset(&all, SIGBUS); /* util/mapped.h */
		pthread_sigmask(SIG_BLOCK, &all, &before);
		err = -pthread_create(&i->thread, NULL, injection_main, i);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!err)
		*out = i;
	else if (i)
		injection__free(i);
	return err;
}

bool injection__over(const struct injection *i)
{
	return atomic_load(&i->state) == INJECTION_OVER;
}

int injection__finish(struct injection *i, struct inject_result *out)
{
	int err;

	pthread_join(i->thread, NULL);
	*out = i->result;
	err = i->err;
	if (err)
		error_set_as(i->class, err, i->hint[0] ? i->hint : NULL, "%s", i->result.reason);
	injection__free(i);
	return err;
}

void injection__abandon(struct injection *i, unsigned int wait_ms)
{
	const struct timespec nap = {0, 1000000};

	if (!i)
		return;
	atomic_store(&i->stop, true);
	for (unsigned int ms = 0; ms < wait_ms && !injection__over(i); ms++)
		nanosleep(&nap, NULL);
	if (atomic_exchange(&i->state, INJECTION_ABANDONED) == INJECTION_OVER) {
		pthread_join(i->thread, NULL);
		injection__free(i);
	}
}
