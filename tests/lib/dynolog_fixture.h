/* SPDX-License-Identifier: BSD-2-Clause */
/* What Kineto and dyno send, for tests of the server's. */
#ifndef KPROF_TESTS_DYNOLOG_FIXTURE_H
#define KPROF_TESTS_DYNOLOG_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dynolog/impl.h"

#define PATIENCE_MS 20000

/* Writes a datagram; its length. */
static inline size_t make_poll(char *to, int32_t takes, int64_t job, const int32_t *pids,
			       int32_t nr)
{
	struct datagram_head head = datagram_head(true, 16 + 4 * (size_t)nr);

	memcpy(to, &head, sizeof(head));
	memcpy(to + 40, &takes, 4);
	memcpy(to + 44, &nr, 4);
	memcpy(to + 48, &job, 8);
	memcpy(to + 56, pids, 4 * (size_t)nr);
	return 56 + 4 * (size_t)nr;
}

static inline size_t make_context(char *to, int32_t gpu, int32_t pid, int64_t job)
{
	struct datagram_head head = datagram_head(false, 16);

	memcpy(to, &head, sizeof(head));
	memcpy(to + 40, &gpu, 4);
	memcpy(to + 44, &pid, 4);
	memcpy(to + 48, &job, 8);
	return 56;
}

static inline socklen_t abstract_address(const char *name, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(to->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 2);
}

/* A client's socket, connected to nobody; name NULL: not bound. */
static inline int client_socket(const char *name)
{
	struct sockaddr_un own;
	socklen_t bytes;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!name)
		return fd;
	if (name[0] == '/') {
		own = (struct sockaddr_un){.sun_family = AF_UNIX};
		snprintf(own.sun_path, sizeof(own.sun_path), "%s", name);
		bytes = sizeof(own);
	} else {
		bytes = abstract_address(name, &own);
	}
	if (bind(fd, (struct sockaddr *)&own, bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int send_to(int fd, const char *name, const void *data, size_t bytes)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(to);

	if (name[0] == '/')
		snprintf(to.sun_path, sizeof(to.sun_path), "%s", name);
	else
		len = abstract_address(name, &to);
	return sendto(fd, data, bytes, 0, (struct sockaddr *)&to, len) == (ssize_t)bytes ? 0 : -1;
}

/* Serves until this descriptor is readable; false: it never was. */
static inline bool serve_until(struct kprof_dynolog *d, int fd)
{
	for (;;) {
		struct pollfd p[] = {{.fd = fd, .events = POLLIN},
				     {.fd = kprof_dynolog_fd(d), .events = POLLIN}};

		if (poll(p, 2, PATIENCE_MS) <= 0)
			return false;
		if (p[0].revents)
			return true;
		kprof_dynolog_serve(d);
	}
}

/* Serves all that is there. */
static inline void serve_all(struct kprof_dynolog *d)
{
	struct pollfd p = {.fd = kprof_dynolog_fd(d), .events = POLLIN};

	for (int i = 0; i < 1000 && poll(&p, 1, 0) > 0; i++)
		kprof_dynolog_serve(d);
}

static inline int dyno_connect(const struct kprof_dynolog *d)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)kprof_dynolog_port(d)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

static inline void dyno_send(int fd, const char *json)
{
	int32_t n = (int32_t)strlen(json);

	if (send(fd, &n, sizeof(n), MSG_NOSIGNAL) < 0 ||
	    send(fd, json, (size_t)n, MSG_NOSIGNAL) < 0)
		perror("send");
}

/* The whole answer with a NUL; its length, 0: closed without one. */
static inline size_t dyno_receive(struct kprof_dynolog *d, int fd, char *to, size_t most)
{
	size_t have = 0;
	int32_t n = 0;
	ssize_t got = 1;

	while (got > 0 && have < most - 1 && serve_until(d, fd)) {
		got = recv(fd, to + have, most - 1 - have, 0);
		have += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (have < sizeof(n))
		return 0;
	memcpy(&n, to, sizeof(n));
	memmove(to, to + sizeof(n), have - sizeof(n));
	to[have - sizeof(n)] = '\0';
	return (size_t)n == have - sizeof(n) ? (size_t)n : 0;
}

static inline size_t dyno_ask(struct kprof_dynolog *d, const char *json, char *to, size_t most)
{
	int fd = dyno_connect(d);

	if (fd < 0)
		return 0;
	dyno_send(fd, json);
	return dyno_receive(d, fd, to, most);
}

#endif
