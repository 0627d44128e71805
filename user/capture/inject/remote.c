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
 * interrupted sleep ends as it would have. Only glibc's own SIGSETXID is not blocked: setuid()
 * waits for its handlers while it holds a lock that pthread_create() takes.
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
#define STEP_TIMEOUT_NS (2 * NSEC_PER_SEC) /* for one system call */
#define RUN_TIMEOUT_NS (5 * NSEC_PER_SEC)  /* for loading and starting the agent */
#define XSTATE_MAX_BYTES (16 * 1024)       /* with AMX it is 11,008 */
#define SYSCALL_BYTES 2
#define HANDLER_SYSCALLS 64
#define SIGNAL_SETXID 33 /* SIGSETXID, nptl/internaltypes.h */
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
	const struct timespec nap = {0, turn < 100 ? 10000 : 50000};

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

/* Waits for a stop that kprof has asked for; lets the thread go on from all others. */
static enum event wait_asked(struct remote *r, enum __ptrace_request how, uint64_t timeout_ns)
{
	for (;;) {
		int signal = 0;
		enum event event = wait_event(r, timeout_ns, &signal);

		if (event == EVENT_GONE || event == EVENT_TIMEOUT)
			return event;
		r->stopped = true;
		if (event == EVENT_SYSCALL || (event == EVENT_STOP && signal == SIGTRAP))
			return event;
		signal = signal_to_pass(r, event, signal);
		if (ptrace(how, r->tid, NULL, (void *)(intptr_t)signal))
			return EVENT_GONE;
		r->stopped = false;
	}
}

static enum event go_on(struct remote *r, enum __ptrace_request how, uint64_t timeout_ns)
{
	if (ptrace(how, r->tid, NULL, NULL))
		return EVENT_GONE;
	r->stopped = false;
	return wait_asked(r, how, timeout_ns);
}

/*
 * Lets the thread run until it has left a handler of SIGSETXID, and is back in the code in [from,
 * from + bytes).
 */
static enum event leave_handler(struct remote *r, uint64_t from, uint64_t bytes)
{
	enum event event = EVENT_STOP;
	struct user_regs_struct regs;

	for (int turn = 0; turn < HANDLER_SYSCALLS; turn++) {
		if (ptrace(PTRACE_GETREGS, r->tid, NULL, &regs))
			return EVENT_GONE;
		if (regs.rip - from < bytes)
			return event;
		event = go_on(r, PTRACE_SYSCALL, STEP_TIMEOUT_NS);
		if (event != EVENT_STOP && event != EVENT_SYSCALL)
			return event;
	}
	return EVENT_TIMEOUT;
}

static int event_error(struct remote *r, enum event event)
{
	if (event == EVENT_TIMEOUT)
		return error_set(-ETIMEDOUT, NULL, "thread %d of process %d does not come back",
				 (int)r->tid, (int)r->pid);
	r->gone = true;
	return error_set(-ESRCH, NULL, "thread %d of process %d ended meanwhile", (int)r->tid,
			 (int)r->pid);
}

/* ---- stopping ---- */

/*
 * System calls that end with EINTR when a thread is stopped, handler or not (signal(7)), and can be
 * made again.
 */
static bool ends_when_stopped(uint64_t nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_io_getevents:
	case SYS_read: /* from inotify, and from sockets with a timeout */
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
		return true;
	default:
		return false;
	}
}

/* The set of signals in a line "NAME:\t0123…" of a status file. */
static uint64_t signals_of(const char *status, const char *name)
{
	return strtoull(proc_status_value(status, name), NULL, 16);
}

/*
 * Is a signal pending that would have ended the system call even without kprof, since it is neither
 * blocked nor ignored?
 */
static bool signal_is_due(const struct remote *r)
{
	static const uint64_t ignored_by_default = 1ull << (SIGCHLD - 1) | 1ull << (SIGCONT - 1) |
						   1ull << (SIGURG - 1) | 1ull << (SIGWINCH - 1);
	uint64_t pending, ignored;
	char *text;

	if (proc_thread_read(r->pid, r->tid, "status", &text))
		return true;
	/* The mask of the status file, not r->mask: some system calls set a mask of their own. */
	pending = (signals_of(text, "SigPnd") | signals_of(text, "ShdPnd")) &
		  ~signals_of(text, "SigBlk");
	/* To a traced thread the kernel also sends ignored signals, and wakes it. */
	ignored = signals_of(text, "SigIgn") | (ignored_by_default & ~signals_of(text, "SigCgt"));
	free(text);
	return pending & ~ignored;
}

/*
 * A system call must not fail because of kprof's stop: the kernel is made to restart it, unless a
 * signal has come that would have ended it anyway.
 */
static int undo_eintr(struct remote *r)
{
	if (!ends_when_stopped(r->regs.orig_rax) || (int64_t)r->regs.rax != -EINTR ||
	    signal_is_due(r))
		return 0;
	r->regs.rax = (uint64_t)-514; /* ERESTARTNOHAND, include/linux/errno.h */
	return ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs) ? -errno : 0;
}

/*
 * A sleep that was interrupted before is in restart_syscall(2), which rt_sigreturn(2) makes fail
 * with EINTR. The number of the original system call is in the instruction before it, as compilers
 * write it.
 */
static uint64_t number_to_restart(const struct remote *r)
{
	uint8_t code[5]; /* mov $NR, %eax */
	uint32_t nr;

	if (r->regs.orig_rax != SYS_restart_syscall ||
	    process_read(r->pid, r->regs.rip - SYSCALL_BYTES - sizeof(code), code, sizeof(code)) ||
	    code[0] != 0xb8)
		return r->regs.orig_rax;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}

static int save_state(struct remote *r)
{
	struct iovec iov;

	/* First undo the effect of the stop, in case kprof is killed right now. */
	if (ptrace(PTRACE_GETREGS, r->tid, NULL, &r->regs) || undo_eintr(r))
		return -errno;
	r->xstate = malloc(XSTATE_MAX_BYTES);
	if (!r->xstate)
		return -ENOMEM;
	iov = (struct iovec){r->xstate, XSTATE_MAX_BYTES};
	if (ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(r->mask), &r->mask) ||
	    ptrace(PTRACE_GETREGSET, r->tid, NT_X86_XSTATE, &iov))
		return -errno;
	if (iov.iov_len >= XSTATE_MAX_BYTES || iov.iov_len < 576)
		return -E2BIG;
	r->xstate_bytes = iov.iov_len;
	r->restart_nr = number_to_restart(r);
	return 0;
}

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
	err = save_state(r);
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
	return 0;
}

/* Sets the registers first, then the blocked signals: see the top of this file. */
static int set_registers(struct remote *r, const struct user_regs_struct *regs)
{
	uint64_t mask = ~(1ull << (SIGNAL_SETXID - 1));

	if (ptrace(PTRACE_SETREGS, r->tid, NULL, regs))
		return event_error(r, EVENT_GONE);
	if (!r->hijacked && ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(mask), &mask))
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

int remote__syscall(struct remote *r, const struct inject_target *t, long nr,
		    const uint64_t args[6], int64_t *result)
{
	struct user_regs_struct regs = clean_registers(r, t->syscall_ret, r->chain);
	int err;

	regs.rax = (uint64_t)nr;
	regs.rdi = args[0], regs.rsi = args[1], regs.rdx = args[2];
	regs.r10 = args[3], regs.r8 = args[4], regs.r9 = args[5];
	err = set_registers(r, &regs);
	if (err)
		return err;
	for (;;) {
		struct __ptrace_syscall_info info = {0};
		enum event event = go_on(r, PTRACE_SYSCALL, STEP_TIMEOUT_NS);

		if (event == EVENT_STOP)
			continue;
		if (event != EVENT_SYSCALL)
			return event_error(r, event);
		if (ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(info), &info) < 0)
			return event_error(r, EVENT_GONE);
		/* Skip system calls of a handler of SIGSETXID. */
		if (info.instruction_pointer != t->syscall_ret + SYSCALL_BYTES ||
		    info.op != PTRACE_SYSCALL_INFO_EXIT)
			continue;
		*result = info.exit.rval;
		return 0;
	}
}

/* Waits until the flag is set, or can no longer be. */
static enum event wait_done(struct remote *r, uint64_t done)
{
	uint64_t deadline = clock_mono_ns() + RUN_TIMEOUT_NS;

	for (unsigned int turn = 0;; turn++) {
		uint32_t state = 0;
		int signal = 0;
		enum event event = wait_event(r, 0, &signal);

		if (event == EVENT_GONE)
			return event;
		if (event != EVENT_TIMEOUT) { /* a signal, or the process is being stopped */
			signal = signal_to_pass(r, event, signal);
			if (ptrace(PTRACE_CONT, r->tid, NULL, (void *)(intptr_t)signal))
				return EVENT_GONE;
		}
		/*
		 * The region is unmapped already: the thread has waited for kprof, and gone on
		 * alone.
		 */
		if (process_read(r->pid, done, &state, sizeof(state)))
			return EVENT_STOP;
		if (state == INJECT_STUB_DONE)
			return EVENT_STOP;
		if (clock_mono_ns() > deadline && turn >= LOOKS_LEAST)
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
	event = wait_done(r, done);
	if (event == EVENT_STOP && ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL))
		event = EVENT_GONE;
	if (event == EVENT_STOP)
		event = wait_asked(r, PTRACE_CONT, STEP_TIMEOUT_NS);
	if (event == EVENT_STOP && !ptrace(PTRACE_GETREGS, r->tid, NULL, &regs) &&
	    stack - regs.rsp < INJECT_STUB_STACK_BYTES)
		event = leave_handler(r, entry, INJECT_STUB_PAGE);
	if (event != EVENT_STOP && event != EVENT_SYSCALL)
		return event_error(r, event);
	if (ptrace(PTRACE_GETREGS, r->tid, NULL, &regs))
		return event_error(r, EVENT_GONE);
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
	for (int turn = 0;; turn++) {
		if (turn == HANDLER_SYSCALLS || ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL) ||
		    go_on(r, PTRACE_CONT, STEP_TIMEOUT_NS) != EVENT_STOP ||
		    ptrace(PTRACE_GETREGS, r->tid, NULL, &regs))
			return; /* the signal frame restores the thread */
		if (regs.rip == here.rip)
			break;
		if (leave_handler(r, here.rip, 1) == EVENT_TIMEOUT)
			return;
	}
	if (ptrace(PTRACE_SETREGSET, r->tid, NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask))
		return;
	if (!ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs))
		r->hijacked = false;
}

bool remote__release(struct remote *r)
{
	bool released = true;

	if (r->seized && !r->gone) {
		if (r->stopped && r->hijacked)
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
