// SPDX-License-Identifier: BSD-2-Clause
/* A child that is recorded from its first instruction: it waits between fork and exec. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/agent/agent.h"
#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

/* In the child: become the user, wait for the word, execute. Reports errno through the pipe. */
static void child(char *const argv[], uid_t uid, gid_t gid, const char *agent, int go_fd,
		  int error_fd)
{
	const struct passwd *pw;
	char byte;
	int err = 0;

	if (gid != (gid_t)-1) {
		pw = uid != (uid_t)-1 ? getpwuid(uid) : NULL;
		if (pw ? initgroups(pw->pw_name, gid) : setgroups(0, NULL))
			err = errno;
		if (!err && setgid(gid))
			err = errno;
	}
	if (!err && uid != (uid_t)-1 && setuid(uid))
		err = errno;
	if (!err && read(go_fd, &byte, 1) != 1)
		_exit(127); /* the session was given up */
	if (!err) {
		signal(SIGPIPE, SIG_DFL);
		if (agent)
			agent_library__set_environment(agent);
		execvp(argv[0], argv);
		err = errno;
	}
	if (write(error_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

int kprof_session_spawn(struct kprof_session *s, char *const argv[], uid_t uid, gid_t gid,
			pid_t *pid)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1};
	int err;

	error_clear();
	if (s->spawned)
		return error_set_usage(-EINVAL, NULL, "a session starts one program");
	/* A socket: writing to a child that has ended is an error then, not SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) || pipe2(error, O_CLOEXEC)) {
		err = error_set(-errno, NULL, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	if (s->agents.library)
		agent_library__warn_environment(s->agents.library);
	*pid = fork();
	if (*pid < 0) {
		err = error_set(-errno, NULL, "cannot start a process: %s", strerror(errno));
		goto out;
	}
	if (!*pid) {
		close(go[1]); /* else its own copy would keep it waiting when we are gone */
		child(argv, uid, gid, s->agents.library, go[0], error[1]);
	}
	s->spawned = *pid;
	s->spawn_pipe = go[1];
	s->spawn_error = error[0];
	s->spawn_name = argv[0];
	go[1] = error[0] = -1;
	err = kprof_session_add_pid(s, *pid);
out:
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return err;
}

int spawn__release(struct kprof_session *s)
{
	int child_errno = 0;
	ssize_t n;

	if (!s->spawned)
		return 0;
	/* It fails when the child has ended already: that is told below, or by its exit. */
	(void)!send(s->spawn_pipe, "g", 1, MSG_NOSIGNAL);
	close(s->spawn_pipe);
	s->spawn_pipe = -1;
	/* Ends without a word when exec closes it; a child that ended before has left its own there. */
	do
		n = read(s->spawn_error, &child_errno, sizeof(child_errno));
	while (n < 0 && errno == EINTR);
	close(s->spawn_error);
	s->spawn_error = -1;
	if (child_errno)
		return error_set(-child_errno, "is it installed, and in PATH?", "cannot run %s: %s",
				 s->spawn_name, strerror(child_errno));
	return 0;
}

void spawn__abandon(struct kprof_session *s)
{
	if (s->spawn_pipe >= 0)
		close(s->spawn_pipe); /* the child, if it still waits, ends */
	if (s->spawn_error >= 0)
		close(s->spawn_error);
	s->spawn_pipe = s->spawn_error = -1;
}
