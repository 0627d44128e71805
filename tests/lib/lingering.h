/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that cannot be closed at once, sent along: who closes the last one waits. */
#ifndef KPROF_TESTS_LINGERING_H
#define KPROF_TESTS_LINGERING_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unit.h"

#define PASS_RIGHTS 83  /* SO_PASSRIGHTS of Linux 6.16 */
#define LINGERING_S 200 /* after which a test that waits is ended */

struct lingering {
	int fd, peer, listener;
};

static bool files_can_be_refused;

/* In the place of the C library's: as an older kernel, which lets files in. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
	if (level != SOL_SOCKET || option != PASS_RIGHTS || files_can_be_refused)
		return (int)syscall(SYS_setsockopt, fd, level, option, value, bytes);
	errno = ENOPROTOOPT;
	return -1;
}

/* A TCP socket with bytes that nobody reads: closing it takes as long as it says. */
static inline struct lingering lingering_new(void)
{
	static char bytes[65536];
	const struct linger forever = {.l_onoff = 1, .l_linger = 30000};
	struct lingering l = {.fd = socket(AF_INET, SOCK_STREAM, 0),
			      .listener = socket(AF_INET, SOCK_STREAM, 0)};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	CHECK(!bind(l.listener, (struct sockaddr *)&at, sizeof(at)) && !listen(l.listener, 1) &&
	      !getsockname(l.listener, (struct sockaddr *)&at, &len) &&
	      !connect(l.fd, (struct sockaddr *)&at, sizeof(at)));
	l.peer = accept(l.listener, NULL, NULL);
	while (send(l.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	CHECK(!setsockopt(l.fd, SOL_SOCKET, SO_LINGER, &forever, sizeof(forever)));
	return l;
}

/* Sends it along; to: as connect() takes it, or NULL. */
static inline ssize_t lingering_send(const struct lingering *l, int by, const void *data,
				     size_t bytes, int flags, const struct sockaddr *to,
				     socklen_t to_bytes)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)data, bytes};
	struct msghdr m = {.msg_name = (void *)to,
			   .msg_namelen = to_bytes,
			   .msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &l->fd, sizeof(int));
	return sendmsg(by, &m, flags | MSG_NOSIGNAL);
}

/* Can this kernel refuse files? From here on, this program does not hide it, either. */
static inline bool lingering_refused(void)
{
	int off = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);

	files_can_be_refused =
		!syscall(SYS_setsockopt, fd, SOL_SOCKET, PASS_RIGHTS, &off, sizeof(off));
	close(fd);
	if (!files_can_be_refused)
		printf("# this kernel refuses no files: it is older than Linux 6.16\n");
	return files_can_be_refused;
}

/* The kernel lets bytes through there, and no file. */
static inline void lingering_check_refused(int by, const struct sockaddr *to, socklen_t to_bytes)
{
	struct lingering any = {.fd = 0};

	CHECK_EQ(lingering_send(&any, by, "x", 1, 0, to, to_bytes), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(sendto(by, "x", 1, 0, to, to_bytes), 1);
}

/* Messages alone have it from here on. Until lingering_gone(), nobody may wait for it. */
static inline void lingering_leave(struct lingering *l)
{
	close(l->fd);
	alarm(LINGERING_S);
}

/* It was closed, and nobody has waited. */
static inline void lingering_gone(struct lingering *l)
{
	char bytes[4096];

	while (recv(l->peer, bytes, sizeof(bytes), 0) > 0)
		;
	alarm(0);
	close(l->peer);
	close(l->listener);
}

#endif
