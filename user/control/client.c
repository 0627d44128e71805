// SPDX-License-Identifier: BSD-2-Clause
/* One question to the daemon: a connection of its own, a line there, a line back. */
#include "kprof/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

#define FIRST_BYTES 4096

/* What has been read of the answer so far. */
struct answer {
	char *text;
	size_t len, room;
	int file; /* -1: none came */
};

/* While the daemon has many clients, new ones wait in the kernel's queue, and before it. */
static int connect_to(const char *path, int timeout_ms)
{
	struct timeval most = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(to.sun_path))
		return error_set_usage(-ENAMETOOLONG, NULL, "%s is too long for a socket", path);
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(-errno, NULL, "cannot make a socket: %s", strerror(errno));
	if (timeout_ms >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	err = -errno;
	close(fd);
	if (err == -ENOENT || err == -ECONNREFUSED || err == -ENOTDIR)
		return -ESRCH;
	if (err == -EAGAIN)
		return error_set(-ETIMEDOUT, "try it again", "the daemon has too many clients");
	return error_set_machine(err, NULL, "cannot connect to %s: %s", path, strerror(-err));
}

/* Waits for the socket, until the time that is given. 0; -ETIMEDOUT */
static int wait_for(int fd, short events, uint64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now_ns = clock_mono_ns();
		int64_t left_ms = -1;

		if (until_ns != UINT64_MAX && now_ns >= until_ns)
			return error_set(-ETIMEDOUT, NULL, "the daemon does not answer");
		if (until_ns != UINT64_MAX)
			left_ms = (int64_t)((until_ns - now_ns) / NSEC_PER_MSEC) + 1;
		if (poll(&p, 1, left_ms > 60000 ? 60000 : (int)left_ms) > 0)
			return 0;
	}
}

static int send_all(int fd, const char *text, size_t bytes, uint64_t until_ns)
{
	int err = 0;

	while (bytes && !err) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN || errno == EINTR) {
			err = wait_for(fd, POLLOUT, until_ns);
		} else {
			err = -errno;
		}
	}
	if (err && err != -ETIMEDOUT)
		return error_set(err, NULL, "cannot ask the daemon: %s", strerror(-err));
	return err;
}

/* Keeps the first file that comes with the answer. */
static void keep_file(struct answer *a, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fds[4];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || nr > 4)
			continue;
		memcpy(fds, CMSG_DATA(c), nr * sizeof(int));
		for (size_t i = 0; i < nr; i++) {
			if (a->file < 0)
				a->file = fds[i];
			else
				close(fds[i]);
		}
	}
}

/* Reads what is there. 1: the line is whole; 0: more is to come. */
static int read_some(int fd, struct answer *a)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec to;
	struct msghdr m = {.msg_iov = &to,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	if (a->len + 1 >= a->room) {
		size_t room = a->room ? a->room * 2 : FIRST_BYTES;
		char *text = room > KPROF_CLIENT_ANSWER_BYTES ? NULL : realloc(a->text, room);

		if (!text)
			return error_set(-EMSGSIZE, NULL, "the daemon's answer is too long");
		a->text = text;
		a->room = room;
	}
	to = (struct iovec){.iov_base = a->text + a->len, .iov_len = a->room - a->len - 1};
	n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return error_set(-EPIPE, NULL, "the daemon ended without an answer");
	keep_file(a, &m);
	a->len += (size_t)n;
	a->text[a->len] = '\0';
	return memchr(a->text + a->len - n, '\n', (size_t)n) ? 1 : 0;
}

const char *kprof_client_socket(const char *given)
{
	const char *set = secure_getenv("KPROF_DAEMON_SOCKET");

	return given ? given : set && *set ? set : KPROF_DAEMON_SOCKET;
}

int kprof_client_ask(const char *path, const char *question, int timeout_ms, char **answer,
		     int *file)
{
	uint64_t until_ns = UINT64_MAX;
	struct answer a = {.file = -1};
	int fd, n, err;

	error_clear();
	if (strlen(question) >= KPROF_CLIENT_QUESTION_BYTES || strchr(question, '\n'))
		return error_set_usage(-EMSGSIZE, NULL,
				       "the question is no line of at most 64 KiB");
	if (timeout_ms >= 0)
		until_ns = clock_mono_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	fd = connect_to(kprof_client_socket(path), timeout_ms);
	if (fd < 0)
		return fd;
	err = send_all(fd, question, strlen(question), until_ns);
	if (!err)
		err = send_all(fd, "\n", 1, until_ns);
	while (!err && (n = read_some(fd, &a)) != 1)
		err = n < 0 ? n : wait_for(fd, POLLIN, until_ns);
	close(fd);
	if (!err) {
		a.text[strcspn(a.text, "\n")] = '\0';
		*answer = a.text;
	} else {
		free(a.text);
	}
	if (a.file >= 0 && (err || !file))
		close(a.file);
	if (file)
		*file = err ? -1 : a.file;
	return err;
}
