// SPDX-License-Identifier: BSD-2-Clause
/*
 * Putting the agent into a running process.
 *
 *   1. inject_check.c    What kind of process is it, where are its loader's functions. It is not touched.
 *      inject_loader.c   Nobody in it is loading a library.
 *   2. inject_safe.c     Threads in order, those that wait in a harmless system call first. One is stopped
 *                        (inject_remote.c); if it is at a bad place it is let go, and the next is tried.
 *   3. inject_frame.c    Below its stack a signal frame is written, which makes the thread what it was.
 *   4. here              The thread makes system calls, each of which returns into that frame: memfd_create; the
 *                        library's bytes are written into the memfd from outside (so that it does not matter which
 *                        files the target sees), with the code of step 5 behind them; mmap; mprotect.
 *   5. inject_stub.c     It runs that code on a stack of its own: dlopen, kprof_agent_start, close.
 *   6. here              munmap; registers, vector state, signals as they were; it goes on.
 *
 * When kprof is killed, at whatever point, the thread finishes on its own. What may remain then is a memfd and a mapping
 * that nobody uses; the next injection removes them.
 *
 * Each round over the threads happens in a thread of kprof's own: ptrace belongs to threads, and one that ends is
 * detached from everything, even from a thread of the target that did not stop.
 */
#include "capture/inject/inject.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/inject/priv.h"
#include "kprof/agent.h"
#include "util/error.h"
#include "util/util.h"

#define TRY_FOR_NS (10 * NSEC_PER_SEC)
#define TRY_LONGEST_NS (30 * NSEC_PER_SEC)
#define ROUNDS_LEAST 200 /* which take some five seconds where nothing keeps kprof from running */
#define NAP_FIRST_NS 500000
#define NAP_LONGEST_NS 20000000
#define LIBRARY_MAX_BYTES (64u << 20)
#define MXCSR_DEFAULT 0x1f80
#define PATIENCE_NS 50000000 /* for a kprof that other programs keep from running */
#define LOOKS_AT_LOADER 200
/* Half a millisecond: what was seen before the thread stood is over by then. Whoever loads may wait for this very thread. */
#define LOOKS_WHILE_HELD 25
#define LOADER_IS_BUSY "the program is loading a library"
#define MEMFD_EXEC 0x10u /* MFD_EXEC, linux 6.3 (105ff5339f49) */

struct work {
	pid_t pid;
	const char *library_path;
	struct inject_result *out;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	unsigned int rounds;
	/* Of the last round. */
	int err;
	char cause[1024], hint[1024];
	enum kprof_error_class class;

	bool looked;    /* the following is there */
	bool held_back; /* a thread did not stop and could not be let go of */
	char *library;
	size_t library_bytes;
	struct inject_target target;
	struct inject_walker *walker; /* NULL: none yet */
	struct inject_leftovers leftovers;
	bool loading;  /* … because a library was being loaded */
	char why[128]; /* the last thread that was looked at could not be used */
	pid_t why_tid;
};

/* ---- one thread, stopped --------------------------------------------------------------------- */

/* Where in the memfd our own code, stack and data lie: behind the library. */
static uint64_t region_offset(const struct work *w)
{
	return (w->library_bytes + INJECT_STUB_PAGE - 1) & ~(uint64_t)(INJECT_STUB_PAGE - 1);
}

/* What failed in the target, and fails again: not one of the codes that mean "later" or "gone" here. */
static int code_of(int64_t result)
{
	return result == -EAGAIN || result == -EBUSY || result == -ESRCH || result == -ETIMEDOUT ||
			       result > -1 || result < -4095
		       ? -EIO
		       : (int)result;
}

static int step_error(const struct work *w, const char *what, int64_t result)
{
	if (result == -EACCES && !strcmp(what, "memfd_create"))
		return error_set_machine(-EACCES, "sysctl vm.memfd_noexec=1 (or 0) allows it",
					 "vm.memfd_noexec=2 forbids loading code into process %d",
					 (int)w->pid);
	return error_set(code_of(result),
			 result == -EMFILE ? "raise its limit on open files (ulimit -n)" : NULL,
			 "%s in process %d: %s", what, (int)w->pid, strerror((int)-result));
}

/* A system call of the target's; *result is not negative when it returns 0. */
static int remote_do(struct work *w, struct remote *r, const char *what, long nr,
		     const uint64_t args[6], int64_t *result)
{
	int err = remote__syscall(r, &w->target, nr, args, result);

	if (err)
		return err;
	return *result < 0 && *result > -4096 ? step_error(w, what, *result) : 0;
}

static int make_memfd(struct work *w, struct remote *r, int *fd)
{
	uint64_t args[6] = {r->text, MFD_CLOEXEC | MEMFD_EXEC};
	int64_t result;
	int err;

	err = remote_do(w, r, "memfd_create", SYS_memfd_create, args, &result);
	if (err == -EINVAL) { /* before linux 6.3 */
		args[1] = MFD_CLOEXEC;
		err = remote_do(w, r, "memfd_create", SYS_memfd_create, args, &result);
	}
	if (!err)
		*fd = (int)result;
	return err;
}

static int write_at(int fd, const void *from, size_t bytes, uint64_t offset)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n =
			pwrite(fd, (const char *)from + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Is it the file that memfd_create() has just made, and nobody has used? Whatever else it is stays as it is. */
static bool is_fresh_memfd(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink && !st.st_size &&
	       inject_is_memfd(getpid(), fd);
}

/*
 * The target's own descriptor, and not its file opened again: other threads may put another file in its place, and are
 * lent no rights to that which they have not.
 */
static int take_memfd(const struct work *w, int remote_fd, int *out)
{
	int pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0), err = 0;

	*out = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, remote_fd, 0);
	if (*out < 0)
		err = error_set(-errno, NULL, "the memfd in process %d cannot be opened: %s",
				(int)w->pid, strerror(errno));
	if (pidfd >= 0)
		close(pidfd);
	if (err || is_fresh_memfd(*out))
		return err;
	close(*out);
	return error_set(-ESTALE, NULL, "another file has taken the memfd's place in process %d",
			 (int)w->pid);
}

/* From outside. */
static int fill_memfd(const struct work *w, int remote_fd)
{
	const struct inject_stub_data data = {.magic = INJECT_STUB_MAGIC};
	uint64_t offset = region_offset(w);
	size_t code_bytes;
	const void *code = inject_stub_code(&code_bytes);
	int fd, err;

	err = take_memfd(w, remote_fd, &fd);
	if (err)
		return err;
	if (ftruncate(fd, (off_t)(offset + INJECT_REGION_BYTES)))
		err = -errno;
	if (!err)
		err = write_at(fd, w->library, w->library_bytes, 0);
	if (!err)
		err = write_at(fd, code, code_bytes, offset);
	if (!err)
		err = write_at(fd, &data, sizeof(data),
			       offset + INJECT_REGION_BYTES - INJECT_STUB_PAGE);
	close(fd);
	if (err)
		return error_set(err, NULL, "the memfd in process %d cannot be written: %s",
				 (int)w->pid, strerror(-err));
	return 0;
}

/* Code first, then the rest made writable: no page is ever both. */
static int map_region(struct work *w, struct remote *r, int fd, uint64_t *region)
{
	uint64_t map[6] = {0,           INJECT_REGION_BYTES, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE, (uint64_t)fd,        region_offset(w)};
	uint64_t protect[6] = {0, INJECT_REGION_BYTES - INJECT_STUB_PAGE, PROT_READ | PROT_WRITE};
	int64_t result;
	int err;

	err = remote_do(w, r, "mmap", SYS_mmap, map, &result);
	if (err)
		return err;
	*region = (uint64_t)result;
	protect[0] = *region + INJECT_STUB_PAGE;
	return remote_do(w, r, "mprotect", SYS_mprotect, protect, &result);
}

static int write_data(const struct work *w, const struct remote *r, int fd, uint64_t region)
{
	const struct inject_target *t = &w->target;
	struct inject_stub_data data = {
		.magic = INJECT_STUB_MAGIC,
		.state = INJECT_STUB_PREPARED,
		.mxcsr = MXCSR_DEFAULT,
		.fd = fd,
		.errno_location = t->errno_location,
		.dlopen = t->dlopen,
		.dlsym = t->dlsym,
		.dlclose = t->dlclose,
		.dlerror = t->dlerror,
		.start = t->start,
		.flags = (uint32_t)t->dlopen_flags,
		.region = region,
		.region_bytes = INJECT_REGION_BYTES,
		.syscall_ret = t->syscall_ret,
		.chain = r->chain,
		.patience = {0, PATIENCE_NS},
		.pid = w->pid,
		.tid = r->tid,
		.symbol = KPROF_AGENT_START_SYMBOL,
	};
	int err;

	/* Spelt as nobody else does: the loader knows libraries by name, and the number is used again. */
	snprintf(data.path, sizeof(data.path), "/proc/self/task/../fd/%d", fd);
	err = remote_write(w->pid, region + INJECT_REGION_BYTES - INJECT_STUB_PAGE, &data,
			   sizeof(data));
	if (err)
		return error_set(err, NULL, "the memory of process %d cannot be written: %s",
				 (int)w->pid, strerror(-err));
	return 0;
}

static int read_outcome(const struct work *w, uint64_t data_at)
{
	struct inject_stub_data data;
	int err;

	err = remote_read(w->pid, data_at, &data, sizeof(data));
	if (err)
		return error_set(err, NULL, "the memory of process %d cannot be read: %s",
				 (int)w->pid, strerror(-err));
	data.error[sizeof(data.error) - 1] = '\0';
	switch (data.step) {
	case INJECT_STUB_COMPLETE:
		return 0;
	case INJECT_STUB_START:
		return error_set(code_of(data.result), NULL,
				 "the agent in process %d did not start: %s", (int)w->pid,
				 strerror(data.result > -4096 ? -data.result : EIO));
	default:
		return error_set(-ELIBACC, "kprof run loads it when the program starts",
				 "process %d could not load the agent: %s", (int)w->pid,
				 data.error[0] ? data.error : "the loader gives no reason");
	}
}

static void undo(struct work *w, struct remote *r, int fd, uint64_t region)
{
	uint64_t unmap[6] = {region, INJECT_REGION_BYTES}, shut[6] = {(uint64_t)fd};
	int64_t result;

	if (r->gone || !r->stopped || !r->hijacked)
		return;
	if (region)
		remote__syscall(r, &w->target, SYS_munmap, unmap, &result);
	if (fd >= 0 && r->stopped && !r->gone)
		remote__syscall(r, &w->target, SYS_close, shut, &result);
}

/* The steps. Each failure leaves the thread stopped and what was made known to undo(). */
static int run_steps(struct work *w, struct remote *r)
{
	uint64_t region = 0, data_at;
	int err, fd = -1;

	err = inject_leftovers__undo(&w->leftovers, &w->target, r);
	if (!err)
		err = make_memfd(w, r, &fd);
	if (!err)
		err = fill_memfd(w, fd);
	if (!err)
		err = map_region(w, r, fd, &region);
	if (!err)
		err = write_data(w, r, fd, region);
	if (!err) {
		data_at = region + INJECT_REGION_BYTES - INJECT_STUB_PAGE;
		err = remote__run(r, region, data_at, data_at,
				  data_at + offsetof(struct inject_stub_data, state));
		if (!err && !r->hijacked) /* it did not wait any longer: ask it again how it went */
			return -EAGAIN;
		if (err) /* it goes on alone, and cleans up itself */
			return err;
		fd = -1; /* closed by the stub */
		err = read_outcome(w, data_at);
	}
	undo(w, r, fd, region);
	return err;
}

/* ---- finding one ----------------------------------------------------------------------------- */

static int not_this_one(struct work *w, pid_t tid, const char *why)
{
	snprintf(w->why, sizeof(w->why), "%s", why);
	w->why_tid = tid;
	return -EAGAIN;
}

/* 0: done. -EAGAIN: another thread, or later. */
static int try_stopped(struct work *w, struct remote *r)
{
	const char *stack_why = "";
	char why[128];
	int err;

	if (!inject_target__same_program(&w->target))
		return error_set(-ESRCH, "try again",
				 "process %d ended or executed another program meanwhile",
				 (int)w->pid);
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
	return err ? err : run_steps(w, r);
}

static int try_thread(struct work *w, pid_t tid)
{
	struct remote r;
	int err;

	w->loading = false;
	err = remote__stop(&r, w->pid, tid);
	if (!err)
		err = try_stopped(w, &r);
	else if (err == -EAGAIN)
		not_this_one(w, tid, "it does not stop");
	else if (err ==
		 -ESRCH) /* this thread; whether the process, too, is seen in the next round */
		err = not_this_one(w, tid, "it ended");
	w->held_back = !remote__release(&r);
	w->out->held_ns += r.held_ns;
	return err;
}

/* A machine that was busy elsewhere for most of ten seconds has seen too little of the target to say anything of it. */
static bool time_is_over(const struct work *w)
{
	uint64_t spent_ns = clock_mono_ns() - w->begin_ns;

	return spent_ns > (w->rounds < ROUNDS_LEAST ? TRY_LONGEST_NS : TRY_FOR_NS);
}

/*
 * The target's thread waits for this one at every step: it looks often, and does not queue behind whatever else keeps
 * the processors busy. Without the rights for that it only takes longer.
 */
static void hurry(void)
{
	const struct sched_param lowest = {.sched_priority = 1};

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	sched_setscheduler(0, SCHED_FIFO, &lowest);
}

/* For work during which no thread is held, and which takes long. */
static void take_turns(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_OTHER, &none);
}

static int read_mappings(struct work *w)
{
	int err = 0;

	take_turns();
	if (!w->walker)
		err = inject_walker__new(w->pid, &w->walker);
	if (!err)
		err = inject_walker__refresh(w->walker);
	hurry();
	if (err && err != -ESRCH)
		err = error_set(err, NULL, "the unwind tables of process %d cannot be read",
				(int)w->pid);
	return err;
}

/* A thread that runs says where it is only when it is stopped; for that one it is tried twice. */
static int try_prepared(struct work *w, const struct inject_candidate *c)
{
	bool again = true;
	int err = -EAGAIN;

	take_turns();
	if (c->sp)
		inject_walker__prepare(w->walker, c->ip, c->sp);
	while (err == -EAGAIN && again && !w->held_back) {
		hurry();
		err = try_thread(w, c->tid);
		take_turns();
		again = inject_walker__prepare_missing(w->walker) && !time_is_over(w);
	}
	hurry();
	return err;
}

/* Every thread once. A thread that did not stop might do so at any time: then this is over. */
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
		/* Then no other could be used either, and each that is stopped may be seen by the program. */
		if (!w->loading)
			i++;
		if (time_is_over(w) ||
		    (w->loading && !inject_loader_gets_free(&w->target, LOOKS_AT_LOADER)))
			break;
	}
	free(candidates);
	return err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_library(struct work *w)
{
	struct elffile *elf;
	int err;

	err = elffile__open(w->library_path, &elf); /* says what is wrong with it */
	if (err)
		return err;
	elffile__close(elf);
	err = read_file(w->library_path, LIBRARY_MAX_BYTES, &w->library, &w->library_bytes);
	if (err)
		return error_set(err, NULL, "%s: %s", w->library_path, strerror(-err));
	return 0;
}

static int first_look(struct work *w)
{
	int err = 0;

	if (!w->library)
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

	hurry();
	error_clear();
	w->err = w->looked ? inject_target__refresh(&w->target) : first_look(w);
	if (!w->err)
		w->err = read_mappings(w);
	if (!w->err)
		w->err = try_all(w);
	if (!w->err)
		return NULL;
	hint = kprof_error_hint(); /* error text belongs to a thread */
	snprintf(w->cause, sizeof(w->cause), "%s", kprof_error_cause());
	snprintf(w->hint, sizeof(w->hint), "%s", hint ? hint : "");
	w->class = kprof_error_class();
	return NULL;
}

/* In a thread of its own, in which no handler of kprof's runs. */
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

int inject_agent(pid_t pid, const char *library, struct inject_result *out)
{
	struct work w = {
		.pid = pid, .library_path = library, .out = out, .begin_ns = clock_mono_ns()};
	const char *hint;
	int err;

	*out = (struct inject_result){0};
	error_clear();
	err = run_rounds(&w);
	inject_walker__free(w.walker);
	inject_target__close(&w.target);
	free(w.library);
	if (!err)
		return 0;
	snprintf(out->reason, sizeof(out->reason), "%.255s", w.cause[0] ? w.cause : strerror(-err));
	hint = w.hint[0] ? w.hint : NULL;
	return w.class == KPROF_ERROR_MACHINE ? error_set_machine(err, hint, "%s", out->reason)
					      : error_set(err, hint, "%s", out->reason);
}
