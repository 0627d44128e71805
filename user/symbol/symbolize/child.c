// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs work in a child process that kprof cannot trust itself with: libraries that were not made
 * for hostile files, or that talk to servers for a long time. The child has none of this process's
 * descriptors except a pipe (and one that it is given), and limited memory and time. If it crashes,
 * the output that it has written so far can be used. It runs as another user, cannot regain
 * privileges by executing a program, and if it only has to read, all other system calls fail.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/sandbox.h"
#include "util/util.h"

#define CHILD_MEMORY (4ull << 30) /* limit in bytes, in addition to what this process uses */
/* for a killed process that does not end because it hangs in the kernel */
#define LAST_WAIT_NS NSEC_PER_SEC

/* ---- the child ---- */

static uint64_t own_data_bytes(void)
{
	char *text = NULL;
	unsigned long pages = 0;

	if (!read_file("/proc/self/statm", 4096, &text, NULL))
		sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages);
	free(text);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, uint64_t to)
{
	struct rlimit was, r = {to, to};

	if (!getrlimit(what, &was) && was.rlim_max < to)
		r = was;
	setrlimit(what, &r);
}

static bool confine(const struct symbol_child_opts *opts)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE};

	if (!sandbox_become(opts->user, SYMBOL_CHILD_NOBODY) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	/* setresuid() has cleared this setting. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		signal(crashes[i], SIG_DFL);
	/* A ^C on the terminal also reaches kprof, which decides when this process ends. */
	signal(SIGINT, SIG_IGN);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, opts->time_ns / NSEC_PER_SEC + 2);
	limit(RLIMIT_DATA, own_data_bytes() + CHILD_MEMORY);
	if (opts->only_reads)
		limit(RLIMIT_FSIZE, 0);
	return !opts->only_reads || !sandbox_only_reads();
}

/*
 * Arranges the descriptors: 0 to 2 are /dev/null, 3 is the pipe, 4 the descriptor that the child
 * keeps, all others are closed. Without the terminal the child cannot insert input there (TIOCSTI).
 */
static bool arrange(int to, int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Moves both above the numbers that are assigned below. */
	to = fcntl(to, F_DUPFD_CLOEXEC, SYMBOL_CHILD_KEPT + 1);
	if (kept >= 0)
		kept = fcntl(kept, F_DUPFD_CLOEXEC, SYMBOL_CHILD_KEPT + 1);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	return to >= 0 && dup2(to, 3) == 3 &&
	       (kept < 0 || dup2(kept, SYMBOL_CHILD_KEPT) == SYMBOL_CHILD_KEPT) &&
	       !close_range(kept < 0 ? SYMBOL_CHILD_KEPT : SYMBOL_CHILD_KEPT + 1, ~0u, 0);
}

/* ---- the parent's side ---- */

int symbol_child__start(struct symbol_child *c, int (*work)(void *ctx, int fd), void *ctx,
			const struct symbol_child_opts *opts)
{
	int fds[2];

	*c = (struct symbol_child){.fd = -1, .deadline_ns = clock_mono_ns() + opts->time_ns};
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	c->pid = fork();
	if (!c->pid) {
		if (!arrange(fds[1], opts->fd) || !confine(opts))
			_exit(SYMBOL_CHILD_UNCONFINED);
		_exit(work(ctx, 3));
	}
	close(fds[1]);
	if (c->pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	c->fd = fds[0];
	return 0;
}

ssize_t symbol_child__some(struct symbol_child *c, void *to, size_t bytes)
{
	for (;;) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		uint64_t now = clock_mono_ns();
		ssize_t n;

		if (now >= c->deadline_ns)
			return -ETIME;
		if (poll(&p, 1, (int)((c->deadline_ns - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = read(c->fd, to, bytes);
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n < 0 ? -errno : n;
	}
}

int symbol_child__read(struct symbol_child *c, void *to, size_t bytes)
{
	size_t have = 0;

	while (have < bytes) {
		ssize_t n = symbol_child__some(c, (char *)to + have, bytes - have);

		if (n == -ETIME)
			return -ETIME;
		if (n <= 0)
			return have ? -EBADMSG : 1;
		have += (size_t)n;
	}
	return 0;
}

int symbol_child__end(struct symbol_child *c, bool enough)
{
	uint64_t kill_ns = enough ? 0 : c->deadline_ns, give_up_ns = UINT64_MAX;
	int status = 0;
	pid_t waited;

	close(c->fd);
	/*
	 * A child that has closed the pipe may still not end. One that does not even end when
	 * killed is abandoned.
	 */
	for (;;) {
		uint64_t now_ns = clock_mono_ns();

		waited = waitpid(c->pid, &status, WNOHANG);
		if ((waited && (waited > 0 || errno != EINTR)) || now_ns >= give_up_ns)
			break;
		if (now_ns >= kill_ns) {
			kill(c->pid, SIGKILL);
			kill_ns = UINT64_MAX;
			give_up_ns = now_ns + LAST_WAIT_NS;
		}
		poll(NULL, 0, 1);
	}
	/* If the program ignores SIGCHLD, the exit status is lost. */
	if (waited < 0)
		return 0;
	return waited && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
