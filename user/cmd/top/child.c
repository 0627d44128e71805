// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/top/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ARGUMENTS 16
#define MOST_BYTES (4u << 20)
#define PIECE_BYTES 65536

/* In the child. It ends with its parent, however that ends. */
static void execute(const char *const *argv, int out, pid_t parent)
{
	char *args[MOST_ARGUMENTS + 2] = {(char *)"kprof"};
	int nothing = open("/dev/null", O_RDONLY);

	for (size_t i = 0; argv[i] && i < MOST_ARGUMENTS; i++)
		args[i + 1] = (char *)argv[i];
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(127);
	setpgid(0, 0); /* a Ctrl-C of the terminal is for the screen */
	execv("/proc/self/exe", args);
	_exit(127);
}

int child_start(struct child *c, const char *const *argv)
{
	pid_t self = getpid();
	int pipes[2];

	child_free(c);
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	c->pid = fork();
	if (!c->pid)
		execute(argv, pipes[1], self);
	close(pipes[1]);
	if (c->pid < 0) {
		int err = errno;

		close(pipes[0]);
		c->pid = 0;
		return -err;
	}
	c->fd = pipes[0];
	return 0;
}

/* False: there is no more. */
static bool read_piece(struct child *c)
{
	ssize_t n;

	if (c->bytes + PIECE_BYTES + 1 > c->cap) {
		char *more = realloc(c->text, c->cap + 2 * PIECE_BYTES);

		if (!more)
			return false;
		c->text = more;
		c->cap += 2 * PIECE_BYTES;
	}
	n = read(c->fd, c->text + c->bytes, PIECE_BYTES);
	if (n <= 0) {
		c->text[c->bytes] = '\0';
		return false;
	}
	if (c->cut || c->bytes + (size_t)n > MOST_BYTES)
		c->cut = true; /* read, so that it need not wait, and not kept */
	else
		c->bytes += (size_t)n;
	c->text[c->bytes] = '\0';
	return true;
}

int child_poll(struct child *c)
{
	int status;
	pid_t ended;

	if (!c->pid)
		return -1;
	ended = waitpid(c->pid, &status, WNOHANG);
	while (read_piece(c))
		;
	if (ended != c->pid)
		return 0;
	c->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(c->fd);
	c->pid = 0;
	return 1;
}

void child_free(struct child *c)
{
	if (c->pid) {
		kill(c->pid, SIGTERM);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			kill(c->pid, SIGTERM); /* who waits has pressed Ctrl-C */
		close(c->fd);
	}
	free(c->text);
	*c = (struct child){0};
}
