// SPDX-License-Identifier: BSD-2-Clause
/* Where who connects is: here, in a PID namespace of its own, or gone already. */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

static struct sockaddr_un at = {.sun_family = AF_UNIX};
static socklen_t at_bytes;
static int listener;

static void begin(void)
{
	int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "kprof-unit-peer-%d", getpid());

	at_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&at, at_bytes) && !listen(listener, 8));
	alarm(120);
}

static _Noreturn void come(bool stay)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&at, at_bytes))
		_exit(1);
	while (stay)
		pause();
	_exit(0);
}

/* A process that connects, in a namespace of its own below the one that is returned. */
static pid_t begin_elsewhere(void)
{
	pid_t pid = fork(), inside;

	if (pid)
		return pid;
	if (unshare(CLONE_NEWPID))
		_exit(1);
	inside = fork();
	if (!inside)
		come(true);
	waitpid(inside, NULL, 0);
	_exit(0);
}

static int take(struct ucred *who)
{
	int fd = accept(listener, NULL, NULL);
	socklen_t bytes = sizeof(*who);

	CHECK(fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &bytes));
	return fd;
}

static void end_process(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

static void here(void)
{
	pid_t pid = fork();
	struct ucred who;
	int fd, alive;

	if (!pid)
		come(true);
	fd = take(&who);
	CHECK_EQ(who.pid, pid);
	CHECK_EQ(peer_space(fd, who.pid, &alive), 0);
	CHECK_EQ(alive, -1);
	end_process(pid); /* what is not known is not this namespace */
	CHECK_EQ(peer_space(fd, who.pid, &alive), SPACE_UNKNOWN);
	close(fd);
}

static void gone(void)
{
	pid_t pid = fork();
	socklen_t bytes = sizeof(int);
	struct ucred who;
	int fd, pidfd, alive;

	if (!pid)
		come(false);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	fd = take(&who);
	CHECK_EQ(peer_space(fd, who.pid, &alive), SPACE_UNKNOWN);
	/* the number may be another's by then: that one is not meant, as far as the kernel knows */
	if (!getsockopt(fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &bytes) ||
	    errno != ENOPROTOOPT)
		CHECK_EQ(peer_space(fd, getpid(), &alive), SPACE_UNKNOWN);
	close(fd);
}

static void elsewhere(void)
{
	uint64_t space;
	struct ucred who;
	int fd, alive;
	pid_t pid;

	if (geteuid()) /* it takes root to make one */
		return;
	pid = begin_elsewhere();
	fd = take(&who);
	space = peer_space(fd, who.pid, &alive);
	CHECK(space && space != SPACE_UNKNOWN && space != process_space(getpid()));
	CHECK_EQ(space, process_space(who.pid));
	CHECK(alive >= 0 && !peer_ended(alive));
	CHECK_EQ(space_user(0, space), (uid_t)-1);
	CHECK_EQ(space_user(7, space), 7);
	CHECK_EQ(space_user(0, 0), 0);
	/* root there owns what has no rights, and itself; root elsewhere does not */
	CHECK_EQ(process_check_owner(who.pid, 0, space, who.pid), 0);
	CHECK_EQ(process_check_owner(who.pid, 0, space, getpid()), -EPERM);
	CHECK_EQ(process_check_owner(getpid(), 0, space, getpid()), -EPERM);
	CHECK_EQ(process_check_owner(who.pid, 0, SPACE_UNKNOWN, who.pid), -EPERM);
	/* it is held as often as it was, and only as what it is */
	CHECK_EQ(space_hold(space, getpid()), -ESRCH);
	CHECK_EQ(space_hold(SPACE_UNKNOWN, who.pid), -ESRCH);
	CHECK_EQ(space_hold(space, who.pid), 0);
	CHECK(!kill(who.pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	CHECK(peer_ended(alive));
	CHECK_EQ(space_hold(space, who.pid), 0); /* also when its processes are gone */
	space_drop(space);
	space_drop(space);
	space_drop(space);
	CHECK_EQ(space_hold(space, who.pid), -ESRCH);
	close(alive);
	close(fd);
}

UNIT_MAIN(TEST(begin), TEST(here), TEST(gone), TEST(elsewhere))
