// SPDX-License-Identifier: BSD-2-Clause
#include "kprof/sent_files.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS /* include/uapi/asm-generic/socket.h of Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif
#define LOOK_US 50 /* from one look to the next one */

void kprof_sent_files_refuse(int fd)
{
	const int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

ssize_t kprof_sent_files_peek(int fd, void *buf, size_t bytes)
{
	struct iovec to = {.iov_base = buf, .iov_len = bytes};
	struct msghdr m = {.msg_iov = &to, .msg_iovlen = 1};
	const int on = 1;
	ssize_t n;

	/* otherwise such data (MSG_OOB) is not seen, but recv() of what is behind it drops it */
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	do
		n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* which is said once, first */
	if (n < 0)
		return -errno;
	return m.msg_flags & MSG_CTRUNC ? -EBADMSG : n; /* there was no room for them */
}

/* In a child: it ends with its parent, which may have ended meanwhile. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/*
 * In a process of its own. The kernel writes into *m that it has taken the message before it closes
 * the files; for a process that is killed, they do not linger.
 */
void kprof_sent_files_drop(int fd)
{
	struct msghdr *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t self = getpid(), pid, ended = 0;

	if (m == MAP_FAILED)
		return;
	pid = fork();
	if (!pid) {
		end_with(self);
		_exit(recvmsg(fd, m, MSG_DONTWAIT) < 0);
	}
	while (pid > 0 && !ended && !__atomic_load_n(&m->msg_flags, __ATOMIC_RELAXED)) {
		usleep(LOOK_US);
		ended = waitpid(pid, NULL, WNOHANG);
	}
	if (pid > 0 && !ended)
		end(pid);
	munmap(m, sizeof(*m));
}

void kprof_sent_files_leave(int fd)
{
	pid_t self = getpid(), pid = fork();

	if (!pid) { /* what an ending process closes does not linger */
		end_with(self);
		for (;;)
			pause();
	}
	close(fd);
	if (pid > 0)
		end(pid);
}

/* Others count no messages without bytes, or the first one alone. */
static bool is_empty_stream(int fd)
{
	socklen_t len = sizeof(int);
	int type, bytes;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM &&
	       !ioctl(fd, FIONREAD, &bytes) && !bytes;
}

void kprof_sent_files_close(int fd)
{
	shutdown(fd, SHUT_RDWR); /* from here on, nothing comes */
	if (is_empty_stream(fd))
		close(fd);
	else
		kprof_sent_files_leave(fd);
}
