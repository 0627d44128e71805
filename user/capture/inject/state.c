// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a thread that was just stopped: it is saved, and what the stop did to the system
 * call that it interrupted is undone.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "capture/inject/priv.h"

#define XSTATE_MAX_BYTES (16 * 1024) /* with AMX it is 11,008 */

bool inject_call_ends_when_stopped(uint64_t nr)
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
		return true;
	default:
		return false;
	}
}

/* The same, if only for some files. */
static bool may_end_when_stopped(uint64_t nr)
{
	switch (nr) {
	case SYS_read: /* from inotify, and from sockets with a timeout */
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
		return true;
	default:
		return inject_call_ends_when_stopped(nr);
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
	if (!may_end_when_stopped(r->regs.orig_rax) || (int64_t)r->regs.rax != -EINTR ||
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

int remote_save(struct remote *r)
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
