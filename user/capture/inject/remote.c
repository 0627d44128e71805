// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread of the target under ptrace(2): stops it, saves and restores its state, and makes it do
 * system calls and run code.
 *
 * The order of steps is what makes kprof's death harmless. The frame is written below the stack
 * before any register changes. All registers change at once, and from then on whatever the thread
 * runs returns into the frame. Blocked signals are changed after the registers, and put back before
 * them: the frame holds them as well.
 *
 * While the thread runs for kprof its signals are blocked: a signal handler of the program must not
 * run on a borrowed stack, nor leave it by longjmp(), and a thread that is cancelled there could
 * not be unwound. Signals stay pending and are delivered when the thread is restored, so that an
 * interrupted sleep ends as it would have. That goes for glibc's own SIGSETXID, too, by which
 * setuid() has every thread change its user: a program that does that without end would have the
 * borrowed thread answer without end. But setuid() waits for the answers with a lock held that
 * pthread_create() takes. So the stub lets that signal through while it makes a thread (stub.c).
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/inject/priv.h"
#include "util/error.h"
#include "util/util.h"

#define LOOKS_LEAST 200 /* before a timeout: kprof itself may not have got to run */
#define STOP_TIMEOUT_NS \
	(100 * NSEC_PER_MSEC) /* for a thread to stop; a running one does so within microseconds */
#define STARVED_NS (2 * NSEC_PER_SEC)      /* for one that waits for a CPU */
#define STEP_TIMEOUT_NS (2 * NSEC_PER_SEC) /* for one system call, or to make a thread */
#define HELD_NS (5 * NSEC_PER_SEC)         /* for all that a thread is held for */
#define BACK_NS (2 * NSEC_PER_SEC)         /* then, to stop and restore it */
#define EFLAGS_CLEAN 0x202

enum event {
	EVENT_SYSCALL, /* entry or exit */
	EVENT_SIGNAL,  /* about to be delivered */
	EVENT_STOP,    /* asked for, or of the whole process */
	EVENT_GONE,
	EVENT_TIMEOUT,
};

/* ---- memory ---- */

int remote_write(pid_t pid, uint64_t address, const void *from, size_t bytes)
{
	struct iovec local = {(void *)(uintptr_t)from, bytes},
		     remote = {(void *)(uintptr_t)address, bytes};
	ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EFAULT;
}

/* ---- waiting ---- */

static void pause_briefly(unsigned int turn)
{
	const struct timespec nap = {0, turn < 100 ? 10000 : turn < 1000 ? 50000 : 1000000};

	nanosleep(&nap, NULL);
}

/*
 * Waits for the thread's next stop. The status of an exit is not consumed: it belongs to the
 * parent, which kprof may be.
 */
static enum event wait_event(const struct remote *r, uint64_t timeout_ns, int *signal)
{
	uint64_t deadline = clock_mono_ns() + timeout_ns;
	siginfo_t info;

	for (unsigned int turn = 0;; turn++) {
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)r->tid, &info,
			   WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL)) {
			if (errno != EINTR)
				return EVENT_GONE;
		} else if (info.si_pid) {
			break;
		}
		if (clock_mono_ns() > deadline && (!timeout_ns || turn >= LOOKS_LEAST))
			return EVENT_TIMEOUT;
		pause_briefly(turn);
	}
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return EVENT_GONE;
	if (waitid(P_PID, (id_t)r->tid, &info, WSTOPPED | WNOHANG | __WALL))
		return EVENT_GONE;
	*signal = info.si_status & 0x7f;
	if (info.si_status >> 8 == PTRACE_EVENT_STOP)
		return EVENT_STOP;
	return info.si_status == (SIGTRAP | 0x80) ? EVENT_SYSCALL : EVENT_SIGNAL;
}

/*
 * The signal to deliver when a thread goes on after such a stop. SIGSTOP is kept until the thread
 * is released.
 */
static int signal_to_pass(struct remote *r, enum event event, int signal)
{
	/* Other stops are of the whole process: the kernel stops the thread once it is released. */
	if (event != EVENT_SIGNAL)
		return 0;
	if (signal != SIGSTOP)
		return signal;
	r->stop_signal = signal;
	return 0;
}

/* What is left of the time, at most STEP_TIMEOUT_NS. */
static uint64_t step_ns(const struct remote *r)
{
	uint64_t now = clock_mono_ns(), left = r->deadline_ns > now ? r->deadline_ns - now : 0;

	return left < STEP_TIMEOUT_NS ? left : STEP_TIMEOUT_NS;
}

/* Waits for a stop that kprof has asked for; lets the thread go on from all others. */
static enum event wait_asked(struct remote *r, enum __ptrace_request how)
{
	for (;;) {
		int signal = 0;
		enum event event = wait_event(r, step_ns(r), &signal);

		if (event == EVENT_GONE || event == EVENT_TIMEOUT)
			return event;
		r->stopped = true;
		if (event == EVENT_SYSCALL || (event == EVENT_STOP && signal == SIGTRAP))
			return event;
		signal = signal_to_pass(r, event, signal);
		if (ptrace(how, r->tid, NULL, (void *)(intptr_t)signal))
			return EVENT_GONE;
		r->stopped = false;
		if (clock_mono_ns() > r->deadline_ns)
			return EVENT_TIMEOUT;
	}
}

static enum event go_on(struct remote *r, enum __ptrace_request how)
{
	if (ptrace(how, r->tid, NULL, NULL))
		return EVENT_GONE;
	r->stopped = false;
	return wait_asked(r, how);
}

static int event_error(struct remote *r, enum event event)
{
	if (event == EVENT_TIMEOUT) {
		r->lost = true;
		return error_set(
			-EDEADLK, NO_AGENT_HINT,
			"thread %d of process %d did not come back: it was put back to its own work",
			(int)r->tid, (int)r->pid);
	}
	r->gone = true;
	return error_set(-ESRCH, NULL, "thread %d of process %d ended meanwhile", (int)r->tid,
			 (int)r->pid);
}

/* ---- stopping ---- */

/* ptrace() fails with EPERM for a thread that has exited and is not gone yet. */
static bool has_ended(const struct remote *r)
{
	char state = proc_thread_state(r->pid, r->tid);

	return state == 'Z' || state == 'X';
}

/*
 * Waits for the stop that was asked for. A thread that still waits for a CPU (R) has already been
 * woken from its system call: if it were released before it stops, that call would end with an
 * EINTR which is not undone. So it is waited for longer. For a thread that has just stopped (t) the
 * stop is read once more.
 */
static enum event wait_stop(const struct remote *r, int *signal)
{
	uint64_t until_ns = clock_mono_ns() + STARVED_NS;
	enum event event;
	char state;

	do {
		event = wait_event(r, STOP_TIMEOUT_NS, signal);
		state = event == EVENT_TIMEOUT ? proc_thread_state(r->pid, r->tid) : '-';
	} while (state == 'R' && clock_mono_ns() < until_ns);
	return state == 't' ? wait_event(r, STOP_TIMEOUT_NS, signal) : event;
}

static int seize(struct remote *r)
{
	int err;

	if (!ptrace(PTRACE_SEIZE, r->tid, NULL, (void *)(intptr_t)PTRACE_O_TRACESYSGOOD)) {
		r->seized = true;
		return 0;
	}
	err = -errno;
	if (err == -ESRCH || (err == -EPERM && has_ended(r)))
		return error_set(-ESRCH, NULL, "thread %d ended", (int)r->tid);
	if (err == -EPERM)
		return error_set_machine(
			-EACCES,
			"run it with sudo; in a container give it CAP_SYS_PTRACE; `sysctl kernel.yama.ptrace_scope` must not be 3",
			"process %d may not be traced", (int)r->pid);
	return error_set(err, NULL, "process %d cannot be traced: %s", (int)r->pid, strerror(-err));
}

int remote__stop(struct remote *r, pid_t pid, pid_t tid)
{
	int err, signal = 0;
	enum event event;

	*r = (struct remote){.pid = pid, .tid = tid};
	err = seize(r);
	if (err)
		return err;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return event_error(r, EVENT_GONE);
	r->held_from = clock_mono_ns();
	r->deadline_ns = r->held_from + HELD_NS;
	event = wait_stop(r, &signal);
	if (event == EVENT_SIGNAL) { /* deliver it; the stop follows */
		r->stopped = true;
		do {
			if (ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal))
				return event_error(r, EVENT_GONE);
			r->stopped = false;
			event = wait_stop(r, &signal);
			r->stopped = event == EVENT_SIGNAL;
		} while (event == EVENT_SIGNAL);
	}
	if (event == EVENT_TIMEOUT)
		return error_set(-EAGAIN, NULL, "thread %d does not stop", (int)tid);
	if (event != EVENT_STOP)
		return event_error(r, event);
	r->stopped = true;
	if (signal != SIGTRAP)
		return error_set(-EBUSY, "continue it first: kill -CONT", "process %d is stopped",
				 (int)pid);
	err = remote_save(r);
	if (err)
		return error_set(err, NULL, "the state of thread %d cannot be read: %s", (int)tid,
				 strerror(-err));
	return 0;
}

/* ---- what the thread is made to do ---- */

int remote__hijack(struct remote *r, const struct inject_target *t, const char *text,
		   const char **why)
{
	const struct proc_map *stack = proc_maps__find(t->maps, r->regs.rsp);
	uint8_t frame[INJECT_FRAME_MAX_BYTES];
	uint64_t chain;
	int bytes;

	bytes = inject_frame_build(r, t->restore_rt, text, frame, &chain, &r->text);
	if (bytes < 0)
		return bytes;
	/* The kernel needs as much again below the frame, to deliver a signal there. */
	if (!stack || !(stack->flags & PROC_MAP_WRITE) || chain > r->regs.rsp ||
	    chain - stack->start < (uint64_t)bytes + INJECT_RED_ZONE || chain < stack->start) {
		*why = "its stack has no room";
		return -EAGAIN;
	}
	if (remote_write(r->pid, chain, frame, (size_t)bytes)) {
		*why = "its stack cannot be written";
		return -EAGAIN;
	}
	r->chain = chain;
	r->restore_rt = t->restore_rt;
	return 0;
}

/* Sets the registers first, then the blocked signals: see the top of this file. */
static int set_registers(struct remote *r, const struct user_regs_struct *regs)
{
	const uint64_t all = ~0ull;

	if (ptrace(PTRACE_SETREGS, r->tid, NULL, regs))
		return event_error(r, EVENT_GONE);
	if (!r->hijacked && ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(all), &all))
		return event_error(r, EVENT_GONE);
	r->hijacked = true;
	return 0;
}

static struct user_regs_struct clean_registers(const struct remote *r, uint64_t ip, uint64_t sp)
{
	struct user_regs_struct regs = r->regs;

	regs.rip = ip;
	regs.rsp = sp;
	regs.eflags = EFLAGS_CLEAN;
	regs.orig_rax = (uint64_t)-1; /* no system call that the kernel might restart */
	return regs;
}

/* Is the code still as in the C library's file? A program may have patched it. */
static bool is_intact(const struct inject_target *t)
{
	uint8_t code[sizeof(INJECT_SYSCALL_RET) - 1];

	return !process_read(t->pid, t->syscall_ret, code, sizeof(code)) &&
	       !memcmp(code, INJECT_SYSCALL_RET, sizeof(code));
}

static int not_as_expected(struct remote *r)
{
	r->lost = true; /* it may do anything */
	return error_set(-EPROTO, NO_AGENT_HINT,
			 "the C library of process %d is not what is in its file", (int)r->pid);
}

/* Goes on to the next stop at a system call, and asks what it is. */
static int go_to_syscall(struct remote *r, struct __ptrace_syscall_info *info)
{
	enum event event;

	do {
		event = go_on(r, PTRACE_SYSCALL);
	} while (event == EVENT_STOP);
	if (event != EVENT_SYSCALL)
		return event_error(r, event);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(*info), info) < 0)
		return event_error(r, EVENT_GONE);
	return 0;
}

int remote__syscall(struct remote *r, const struct inject_target *t, long nr,
		    const uint64_t args[6], int64_t *result)
{
	struct user_regs_struct regs = clean_registers(r, t->syscall_ret, r->chain);
	struct __ptrace_syscall_info info = {0};
	int err;

	regs.rax = (uint64_t)nr;
	regs.rdi = args[0], regs.rsi = args[1], regs.rdx = args[2];
	regs.r10 = args[3], regs.r8 = args[4], regs.r9 = args[5];
	if (!is_intact(t))
		return not_as_expected(r);
	err = set_registers(r, &regs);
	if (!err)
		err = go_to_syscall(r, &info);
	if (err)
		return err;
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.stack_pointer != regs.rsp ||
	    info.instruction_pointer != regs.rip + SYSCALL_BYTES || info.entry.nr != regs.rax)
		return not_as_expected(r);
	err = go_to_syscall(r, &info);
	if (err)
		return err;
	*result = info.exit.rval;
	return info.op == PTRACE_SYSCALL_INFO_EXIT ? 0 : not_as_expected(r);
}

/*
 * Waits until the flag is set, or can no longer be. A thread that waits for a CPU is given more
 * time than one that sleeps, which waits for a lock that will not be free.
 */
static enum event wait_done(struct remote *r, uint64_t done)
{
	uint64_t patience_ns = clock_mono_ns() + step_ns(r);

	for (unsigned int turn = 0, looks = 0;; turn++, looks++) {
		uint32_t state = 0;
		int signal = 0;
		enum event event = wait_event(r, 0, &signal);

		if (event == EVENT_GONE)
			return event;
		if (event != EVENT_TIMEOUT) { /* a signal, or the process is being stopped */
			signal = signal_to_pass(r, event, signal);
			if (ptrace(PTRACE_CONT, r->tid, NULL, (void *)(intptr_t)signal))
				return EVENT_GONE;
			/* Whoever has sent it may wait for an answer: the thread is not stuck. */
			turn = 0;
			patience_ns = clock_mono_ns() + step_ns(r);
		}
		/*
		 * The region is unmapped already: the thread has waited for kprof, and gone on
		 * alone.
		 */
		if (process_read(r->pid, done, &state, sizeof(state)))
			return EVENT_STOP;
		if (state == INJECT_DONE)
			return EVENT_STOP;
		if (clock_mono_ns() > patience_ns && looks >= LOOKS_LEAST &&
		    (clock_mono_ns() > r->deadline_ns || proc_thread_state(r->pid, r->tid) != 'R'))
			return EVENT_TIMEOUT;
		pause_briefly(turn);
	}
}

int remote__run(struct remote *r, uint64_t entry, uint64_t stack, uint64_t arg, uint64_t done)
{
	struct user_regs_struct regs = clean_registers(r, entry, stack);
	enum event event;
	int err;

	regs.rbx = arg;
	err = set_registers(r, &regs);
	if (err)
		return err;
	if (ptrace(PTRACE_CONT, r->tid, NULL, NULL))
		return event_error(r, EVENT_GONE);
	r->stopped = false;
	r->stub = entry;
	event = wait_done(r, done);
	if (event == EVENT_STOP && ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL))
		event = EVENT_GONE;
	if (event == EVENT_STOP)
		event = wait_asked(r, PTRACE_CONT);
	if (event != EVENT_STOP)
		return event_error(r, event);
	if (ptrace(PTRACE_GETREGS, r->tid, NULL, &regs))
		return event_error(r, EVENT_GONE);
	r->stub = 0;
	/* kprof was late: the thread goes on alone */
	if (!inject_stub_waits_at(regs.rip - entry))
		r->hijacked = false;
	return 0;
}

/* ---- releasing ---- */

/*
 * Restores everything at once, at the same kind of stop as the thread was found in: from there the
 * kernel treats the interrupted system call as if nothing had happened in between.
 */
static void restore(struct remote *r)
{
	struct iovec iov = {r->xstate, r->xstate_bytes};
	struct user_regs_struct here, regs;

	if (ptrace(PTRACE_GETREGS, r->tid, NULL, &here))
		return;
	if (ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL) || go_on(r, PTRACE_CONT) != EVENT_STOP ||
	    ptrace(PTRACE_GETREGS, r->tid, NULL, &regs) || regs.rip != here.rip)
		return; /* the signal frame restores the thread */
	if (ptrace(PTRACE_SETREGSET, r->tid, NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask))
		return;
	if (!ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs))
		r->hijacked = false;
}

/*
 * May the thread be in a handler of SIGSETXID? For whom it answers there waits, and holds a lock.
 * The signal is blocked then; and, for moments, in the stub and in pthread_create(). Once the stub
 * is done the thread answers nobody.
 */
static bool may_answer(const struct remote *r)
{
	uint64_t mask = 0;
	uint32_t state;

	return r->stub &&
	       !process_read(r->pid, r->stub + INJECT_STUB_DATA, &state, sizeof(state)) &&
	       state != INJECT_DONE && !ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(mask), &mask) &&
	       mask >> (INJECT_SIGNAL_SETXID - 1) & 1;
}

/*
 * Has the stub ended since the thread was last looked at, so that it runs the program again? It
 * must not be put back a second time: the frame is no longer its own.
 */
static bool went_on_alone(const struct remote *r)
{
	struct user_regs_struct regs;

	return r->stub && !ptrace(PTRACE_GETREGS, r->tid, NULL, &regs) &&
	       regs.rsp - r->stub > INJECT_STUB_BYTES && regs.rsp != r->chain &&
	       regs.rsp != r->chain + sizeof(uint64_t);
}

/*
 * Takes the thread out of what it was made to do, wherever it is in that: it goes on in the signal
 * frame, as it does where kprof is killed. What it has half done, such as a lock that it has taken
 * in the C library, stays so: nothing more is tried in this process. Only an answer is given first.
 */
static void take_out(struct remote *r)
{
	struct user_regs_struct regs =
		clean_registers(r, r->restore_rt, r->chain + sizeof(uint64_t));

	for (;;) {
		if (!r->stopped && !ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL))
			wait_asked(r, PTRACE_CONT);
		if (!r->stopped || !may_answer(r) || clock_mono_ns() > r->deadline_ns ||
		    ptrace(PTRACE_CONT, r->tid, NULL, NULL))
			break;
		r->stopped = false;
		pause_briefly(0);
	}
	if (r->stopped && (went_on_alone(r) || !ptrace(PTRACE_SETREGS, r->tid, NULL, &regs)))
		r->hijacked = false;
}

bool remote__release(struct remote *r)
{
	bool released = true;

	if (r->seized && !r->gone) {
		r->deadline_ns = clock_mono_ns() + BACK_NS;
		if (r->hijacked && r->lost)
			take_out(r);
		else if (r->hijacked && r->stopped)
			restore(r);
		if (ptrace(PTRACE_DETACH, r->tid, NULL, NULL))
			released = r->stopped;
		if (r->xstate)
			r->held_ns += clock_mono_ns() - r->held_from;
		if (r->stop_signal)
			kill(r->pid, r->stop_signal);
	}
	r->seized = r->stopped = false;
	free(r->xstate);
	r->xstate = NULL;
	return released;
}
