// SPDX-License-Identifier: BSD-2-Clause
/*
 * kill_at N COMMAND…: runs the command and kills it with SIGKILL when it stands before (N even) or
 * behind (N odd) the N/2-th of its system calls that another process can feel: ptrace, and what
 * writes memory or files.
 *
 * Exit status: 0 it was killed there; 3 it ended before, with fewer such calls: prints "COUNT N"
 * for the N places that there were; 1 anything else.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool can_be_felt(unsigned long long nr)
{
	switch (nr) {
	case SYS_ptrace:
	case SYS_process_vm_writev:
	case SYS_pwrite64:
	case SYS_ftruncate:
	case SYS_kill:
		return true;
	default:
		return false;
	}
}

static long count; /* of places seen */

/* Whether this stop of a thread is the n-th that counts. */
static bool is_there(pid_t tid, long n)
{
	struct __ptrace_syscall_info info = {0};
	static unsigned long long
		entered; /* one thread of the command makes such calls at a time */

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0)
		return false;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && can_be_felt(info.entry.nr)) {
		entered = (unsigned long long)tid;
		return count++ == n;
	}
	if (info.op == PTRACE_SYSCALL_INFO_EXIT && entered == (unsigned long long)tid) {
		entered = 0;
		return count++ == n;
	}
	return false;
}

static int follow(pid_t child, long n)
{
	for (;;) {
		int status, signal = 0;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno != ECHILD)
			return 1;
		if (tid < 0 || (tid == child && (WIFEXITED(status) || WIFSIGNALED(status)))) {
			printf("COUNT %ld\n", count);
			return 3;
		}
		if (WIFEXITED(status) || WIFSIGNALED(status))
			continue;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (is_there(tid, n)) {
				kill(child, SIGKILL);
				while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR)
					;
				return 0;
			}
		} else if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP &&
			   WSTOPSIG(status) != SIGTRAP) { /* which is what exec() shows as */
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(long)signal);
	}
}

int main(int argc, char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	pid_t child;
	int status;

	if (argc < 3)
		return 2;
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options) ||
	    ptrace(PTRACE_SYSCALL, child, NULL, NULL)) {
		perror("kill_at");
		return 1;
	}
	return follow(child, strtol(argv[1], NULL, 10));
}
