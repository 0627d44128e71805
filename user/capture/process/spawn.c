// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

/* exec() leaves ignored signals ignored, and sets caught ones to their default. */
static void set_signals(uint64_t ignores)
{
	signal(SIGPIPE, SIG_DFL);
	for (int n = 1; n < 64; n++)
		if (ignores >> (n - 1) & 1)
			signal(n, SIG_IGN);
}

/*
 * Runs in the child: changes to the user, waits for a byte, executes the program. Reports a
 * failure's errno through the pipe.
 */
static void child(const struct spawn_opts *opts, int go_fd, int error_fd)
{
	const struct passwd *pw;
	char byte;
	int err = 0;

	if (opts->gid != (gid_t)-1) {
		pw = opts->uid != (uid_t)-1 ? getpwuid(opts->uid) : NULL;
		if (pw ? initgroups(pw->pw_name, opts->gid) : setgroups(0, NULL))
			err = errno;
		if (!err && setgid(opts->gid))
			err = errno;
	}
	if (!err && opts->uid != (uid_t)-1) {
		spawn_env_change(geteuid(), opts->uid);
		err = setuid(opts->uid) ? errno : 0;
	}
	if (!err && read(go_fd, &byte, 1) != 1)
		_exit(127); /* spawn__abandon(), or kprof has ended */
	if (!err) {
		set_signals(opts->ignores);
		if (opts->prepare)
			opts->prepare(opts->arg);
		execvp(opts->argv[0], opts->argv);
		err = errno;
	}
	if (write(error_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

int spawn__start(struct spawn *s, const struct spawn_opts *opts)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1};
	int err = 0;

	/* A socket, not a pipe: send() to a child that has ended can then fail without SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) || pipe2(error, O_CLOEXEC)) {
		err = error_set(-errno, NULL, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	s->pid = fork();
	if (s->pid < 0) {
		err = error_set(-errno, NULL, "cannot start a process: %s", strerror(errno));
		s->pid = 0;
		goto out;
	}
	if (!s->pid) {
		/* else the child's own copy would keep it waiting when kprof has ended */
		close(go[1]);
		child(opts, go[0], error[1]);
	}
	s->waits = true;
	s->go = go[1];
	s->error = error[0];
	s->name = opts->argv[0];
	go[1] = error[0] = -1;
out:
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return err;
}

int spawn__release(struct spawn *s)
{
	int child_errno = 0;
	ssize_t n;

	if (!s->waits)
		return 0;
	s->waits = false;
	/*
	 * send() fails when the child has already ended: its errno is read below, or its exit is
	 * seen.
	 */
	(void)!send(s->go, "g", 1, MSG_NOSIGNAL);
	close(s->go);
	/*
	 * A successful exec closes the pipe, and read() returns 0. A child that failed before has
	 * already written its errno.
	 */
	do
		n = read(s->error, &child_errno, sizeof(child_errno));
	while (n < 0 && errno == EINTR);
	close(s->error);
	if (child_errno)
		return error_set(-child_errno, "is it installed, and in PATH?", "cannot run %s: %s",
				 s->name, strerror(child_errno));
	return 0;
}

void spawn__abandon(struct spawn *s)
{
	if (!s->waits)
		return;
	s->waits = false;
	close(s->go); /* the child reads the end of file and ends */
	close(s->error);
}
