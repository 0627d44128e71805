// SPDX-License-Identifier: BSD-2-Clause
/*
 * Asks a Java virtual machine (HotSpot) for its perf map by its attach protocol, as jcmd does: a
 * file of a certain name and SIGQUIT make it listen at a Unix socket in its /tmp, where it takes
 * commands of its own user (src/hotspot/os/posix/attachListener_posix.cpp of OpenJDK 17).
 *
 * SIGQUIT ends a process that does not handle it, and the process may be anything that calls itself
 * a JVM. So a child process does this, with the rights of the process's user only and for a limited
 * time, and what answers must be that process.
 */
#include "capture/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/error.h"
#include "util/sandbox.h"
#include "util/util.h"

#define LIMIT_NS (5 * NSEC_PER_SEC) /* for the whole of it */
#define END_MS 100                  /* after which a child that is to end is ended */
#define LOOK_MS 20                  /* how often it is looked whether the socket is there */
#define ANSWER_BYTES 512            /* of the answer, its beginning says all */
#define ANSWER_MOST (1u << 20)

struct jvm {
	const struct proc_info *info;
	gid_t gid;
	int pidfd;
	int tmp; /* its /tmp */
	uint64_t deadline_ns;
};

/* The child is to end. */
static volatile sig_atomic_t given_up;

static void on_term(int signal)
{
	given_up = 1;
}

/* ---- is it one, and does it listen? ---- */

static bool maps_jvm(pid_t pid)
{
	struct proc_maps *maps;
	bool found = false;

	if (proc_maps__read(pid, &maps))
		return false;
	for (size_t i = 0; i < proc_maps__nr(maps) && !found; i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		found = map->flags & PROC_MAP_EXEC && !strcmp(path_base(map->path), "libjvm.so");
	}
	proc_maps__free(maps);
	return found;
}

/* Does the process handle SIGQUIT? With -Xrs a JVM does not. */
static bool handles_sigquit(pid_t pid, gid_t *gid)
{
	uint64_t caught = 0;
	char *text;

	if (proc_thread_read(pid, pid, "status", &text))
		return false;
	caught = strtoull(proc_status_value(text, "SigCgt"), NULL, 16);
	if (gid && sscanf(proc_status_value(text, "Gid"), "%*u %u", gid) != 1)
		caught = 0;
	free(text);
	return caught >> (SIGQUIT - 1) & 1;
}

/* At such a JVM, SIGQUIT prints the stacks of all threads, and nothing listens. */
static bool attach_disabled(pid_t pid)
{
	static const char option[] = "-XX:+DisableAttachMechanism";
	static const char *const variables[] = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
						"_JAVA_OPTIONS"};
	char *text;
	bool found = !proc_cmdline(pid, &text) && strstr(text, option);

	if (!found)
		error_clear();
	for (size_t i = 0; i < ARRAY_SIZE(variables) && !found; i++) {
		text = proc_environment(pid, variables[i]);
		found = text && strstr(text, option);
	}
	return found; /* the child ends soon: texts need not be freed */
}

static int open_tmp(pid_t pid)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char root[40];
	int dir, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, "tmp", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Afterwards, this process may do what the JVM's user may. */
static int become(const struct jvm *j)
{
	if (geteuid() == j->info->uid)
		return 0;
	if (!sandbox_become(j->info->uid, j->gid) || geteuid() != j->info->uid)
		return -EPERM;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change has cleared it */
	return sandbox_keep(0);
}

/* ---- the socket ---- */

/* The process at the other end, when it began to listen, must be the JVM itself. */
static bool is_peer(const struct jvm *j, int fd)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) && cred.pid == j->info->pid;
}

/* Connects to the socket in the directory. -ENOENT: nobody listens there (any more). */
static int connect_to(const struct jvm *j)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char name[40];
	struct stat st;
	int at, fd, err;

	snprintf(name, sizeof(name), ".java_pid%d", (int)j->info->ns_pid);
	at = openat(j->tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return -errno;
	if (fstat(at, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != j->info->uid) {
		close(at);
		return -EPERM;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", at);
	err = fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	close(at);
	if (!err && !is_peer(j, fd))
		err = -EPERM;
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err == -ECONNREFUSED ? -ENOENT : err;
}

/* Makes the JVM listen. *made: the name of a file that is to be removed. */
static int wake(const struct jvm *j, char made[40])
{
	int fd;

	snprintf(made, 40, ".attach_pid%d", (int)j->info->ns_pid);
	fd = openat(j->tmp, made, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		made[0] = '\0';
		if (errno != EEXIST)
			return -errno;
	} else {
		close(fd);
	}
	/* asked again, as late as possible: another program that it executes has no handlers */
	if (!handles_sigquit(j->info->pid, NULL))
		return -EINVAL;
	return syscall(SYS_pidfd_send_signal, j->pidfd, SIGQUIT, NULL, 0) ? -errno : 0;
}

static int connect_in_time(const struct jvm *j, char made[40])
{
	struct pollfd end = {.fd = j->pidfd, .events = POLLIN};
	int fd = connect_to(j), err = 0;

	if (fd == -ENOENT)
		err = wake(j, made);
	/* -EAGAIN: many others wait there */
	while (!err && (fd == -ENOENT || fd == -EAGAIN)) {
		if (given_up || clock_mono_ns() >= j->deadline_ns)
			return -ETIMEDOUT;
		if (poll(&end, 1, LOOK_MS) > 0)
			return -ESRCH;
		fd = connect_to(j);
	}
	return err ? err : fd;
}

/* ---- the command ---- */

static int wait_until(int fd, short what, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = what};
	uint64_t now_ns = clock_mono_ns();

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	poll(&p, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) + 1);
	return 0;
}

/* What the answer says: its first line is the result, the rest is for people. */
static int verdict(const char *answer)
{
	if (!strncmp(answer, "0\n", 2))
		return 0;
	return strstr(answer, "nknown diagnostic command") ? -EOPNOTSUPP : -EPROTO;
}

static int command(int fd, uint64_t deadline_ns)
{
	/* the protocol's version, a command, three arguments */
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	char answer[ANSWER_BYTES] = "", rest[4096];
	size_t have = 0, all = 0;
	int err = 0;

	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return -EPROTO;
	while (!err && all < ANSWER_MOST) {
		bool fits = have < sizeof(answer) - 1;
		ssize_t n = recv(fd, fits ? answer + have : rest,
				 fits ? sizeof(answer) - 1 - have : sizeof(rest), 0);

		if (!n)
			return verdict(answer);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -EPROTO;
		if (n < 0) {
			err = wait_until(fd, POLLIN, deadline_ns);
			continue;
		}
		have += fits ? (size_t)n : 0;
		all += (size_t)n;
	}
	return err ? err : -EPROTO;
}

/* ---- the child ---- */

static int ask(pid_t pid, uint64_t start_ticks)
{
	struct proc_info info;
	struct jvm j = {.info = &info, .deadline_ns = clock_mono_ns() + LIMIT_NS};
	char made[40] = "";
	int fd, err;

	j.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (j.pidfd < 0 || proc_info_read(pid, &info) || info.zombie ||
	    info.start_ticks != start_ticks)
		return -ESRCH;
	if (!maps_jvm(pid) || !handles_sigquit(pid, &j.gid))
		return -EINVAL;
	if (attach_disabled(pid))
		return -EACCES;
	j.tmp = open_tmp(pid);
	err = j.tmp < 0 ? j.tmp : become(&j);
	if (err)
		return err;
	fd = connect_in_time(&j, made);
	if (made[0])
		unlinkat(j.tmp, made, 0);
	return fd < 0 ? fd : command(fd, j.deadline_ns);
}

#define ANSWER_FD 3

/* 0 to 2 are /dev/null, 3 is the pipe: nothing else of kprof's stays open in what may hang. */
static bool arrange(int to)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	to = fcntl(to, F_DUPFD_CLOEXEC, ANSWER_FD + 1);
	for (int fd = 0; fd < ANSWER_FD && null >= 0; fd++)
		dup2(null, fd);
	return to >= 0 && null >= 0 && dup2(to, ANSWER_FD) == ANSWER_FD &&
	       !close_range(ANSWER_FD + 1, ~0u, 0);
}

static _Noreturn void be_child(int to, pid_t parent, pid_t pid, uint64_t start_ticks)
{
	struct sigaction term = {.sa_handler = on_term};
	sigset_t none;
	int answer;

	sigaction(SIGTERM, &term, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* a ^C also reaches kprof, which decides when this ends */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!arrange(to) || getppid() != parent)
		_exit(1);
	answer = ask(pid, start_ticks);
	_exit(write(ANSWER_FD, &answer, sizeof(answer)) != sizeof(answer));
}

/* ---- this process ---- */

int jvm_ask__begin(pid_t pid, uint64_t start_ticks, struct jvm_ask *out)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	*out = (struct jvm_ask){.fd = fds[0],
				/* it gives up by itself, unless it hangs */
				.deadline_ns = clock_mono_ns() + LIMIT_NS + NSEC_PER_SEC};
	out->child = fork();
	if (!out->child)
		be_child(fds[1], parent, pid, start_ticks);
	close(fds[1]);
	if (out->child > 0)
		return 0;
	close(fds[0]);
	out->child = 0;
	return -EAGAIN;
}

void jvm_ask__end(struct jvm_ask *a)
{
	if (!a->child)
		return;
	close(a->fd);
	kill(a->child, SIGTERM); /* it removes what it has made, unless it hangs */
	for (int i = 0; i < 2 * END_MS && !waitpid(a->child, NULL, WNOHANG); i++) {
		if (i == END_MS)
			kill(a->child, SIGKILL);
		poll(NULL, 0, 1);
	}
	a->child = 0;
}

int jvm_ask__answer(struct jvm_ask *a, int wait_ms)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	int answer;
	ssize_t n;

	if (poll(&p, 1, wait_ms) <= 0 && clock_mono_ns() < a->deadline_ns)
		return JVM_ASKING;
	n = read(a->fd, &answer, sizeof(answer));
	jvm_ask__end(a);
	if (n != sizeof(answer))
		return n < 0 ? -ETIMEDOUT : -EPROTO;
	return answer > 0 ? -EPROTO : answer;
}
