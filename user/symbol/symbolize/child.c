// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work that is not trusted with this process: what a library does that was not made for hostile
 * files, or talks to servers for as long as it likes. It is done in a child that has none of this
 * process's descriptors but a pipe (and one that it is given), may take so much memory and time,
 * may crash, and has handed over by then what it knew. It is another user, gets no rights back by
 * running a program, and where it only reads no other system call does anything for it.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/util.h"

#define CHILD_MEMORY (4ull << 30) /* beyond what this process has */
#define LAST_WAIT_NS NSEC_PER_SEC /* for what was killed and does not die: it hangs in the kernel */

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

/*
 * From root on; of a group of its own there is none that a file would say. False: it is root still.
 */
static bool become(uid_t user)
{
	if (geteuid() != 0 || user == 0)
		return true;
	if (!setgroups(0, NULL) &&
	    !setresgid(SYMBOL_CHILD_NOBODY, SYMBOL_CHILD_NOBODY, SYMBOL_CHILD_NOBODY) &&
	    !setresuid(user, user, user))
		return true;
	return errno == EINVAL; /* no number of this namespace, whose root is not the machine's */
}

static bool confine(const struct symbol_child_opts *opts)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE};

	if (!become(opts->user) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	/* Another user's process forgets it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		signal(crashes[i], SIG_DFL);
	/* A terminal's ^C goes to kprof, too, which decides about this process. */
	signal(SIGINT, SIG_IGN);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, opts->time_ns / NSEC_PER_SEC + 2);
	limit(RLIMIT_DATA, own_data_bytes() + CHILD_MEMORY);
	/* A kernel without filters has taken the rights all the same. */
	if (opts->only_reads) {
		limit(RLIMIT_FSIZE, 0);
		symbol_sandbox__enter();
	}
	return true;
}

/*
 * 3: the pipe, 4: what it keeps; the terminal, to which a line may be typed for who has it open, is
 * not there any more.
 */
static bool arrange(int to, int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Out of the way of those below first. */
	to = fcntl(to, F_DUPFD_CLOEXEC, SYMBOL_CHILD_KEPT + 1);
	if (kept >= 0)
		kept = fcntl(kept, F_DUPFD_CLOEXEC, SYMBOL_CHILD_KEPT + 1);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	return to >= 0 && dup2(to, 3) == 3 &&
	       (kept < 0 || dup2(kept, SYMBOL_CHILD_KEPT) == SYMBOL_CHILD_KEPT) &&
	       !close_range(kept < 0 ? SYMBOL_CHILD_KEPT : SYMBOL_CHILD_KEPT + 1, ~0u, 0);
}

/* ---- this side ---- */

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
			_exit(1);
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
	/* Who has closed the pipe may still never end; who cannot be killed even is left alone. */
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
	/* Where the program ignores SIGCHLD its exit status is lost. */
	if (waited < 0)
		return 0;
	return waited && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
