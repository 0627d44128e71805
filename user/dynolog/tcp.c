// SPDX-License-Identifier: BSD-2-Clause
/*
 * dyno's port. A connection is one request and its answer, and has some seconds for both; where
 * there are too many, the oldest one gives way, since who is honest needs a moment only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dynolog/impl.h"
#include "util/error.h"

#define BACKLOG 50
#define ANY_PORT_TRIES 16
#define MOST_NS (5 * NSEC_PER_SEC)

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse_address(const char *text, int port, union address *out, socklen_t *bytes)
{
	*out = (union address){0};
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons((uint16_t)port);
		*bytes = sizeof(out->v4);
		return true;
	}
	if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) != 1)
		return false;
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons((uint16_t)port);
	*bytes = sizeof(out->v6);
	return true;
}

static int port_of(int fd)
{
	union address a = {0};
	socklen_t bytes = sizeof(a);

	if (getsockname(fd, &a.any, &bytes))
		return 0;
	return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

int kprof_dynolog_port(const struct kprof_dynolog *d)
{
	return d->nr_listeners ? port_of(d->listeners[0].fd) : 0;
}

static int listen_at(const char *text, int port, int *out)
{
	const int on = 1;
	union address a;
	socklen_t bytes;
	int fd, err;

	if (!parse_address(text, port, &a, &bytes))
		return error_set_usage(-EINVAL, NULL, "%s is no IP address to listen at", text);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		/* 0.0.0.0 and :: may both be listened at */
		if (a.any.sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		if (!bind(fd, &a.any, bytes) && !listen(fd, BACKLOG)) {
			*out = fd;
			return 0;
		}
	}
	err = -errno;
	if (fd >= 0)
		close(fd);
	return error_set(
		err, err == -EADDRINUSE ? "is another daemon running, dynolog's or kprof's?" : NULL,
		"cannot listen at %s, port %d: %s", text, port, strerror(-err));
}

/* A machine may be without one of the two protocols. */
static bool is_missing(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL;
}

static int listen_at_all(struct kprof_dynolog *d, const char *const *addresses, size_t nr, bool all)
{
	int port = d->o.port < 0 ? 0 : d->o.port ? d->o.port : KPROF_DYNOLOG_PORT, err = 0;

	for (size_t i = 0; i < nr; i++) {
		struct source *s = &d->listeners[d->nr_listeners];

		s->kind = SOURCE_LISTENER;
		err = listen_at(addresses[i], port, &s->fd);
		if (err && (all || !is_missing(err)))
			return err;
		d->nr_listeners += !err;
		if (!err)
			port = port_of(s->fd);
	}
	return d->nr_listeners ? 0 : err;
}

int tcp_open(struct kprof_dynolog *d, const char *const *addresses, size_t nr, bool all)
{
	int tries = ANY_PORT_TRIES, err;

	d->listeners = calloc(nr, sizeof(*d->listeners));
	if (!d->listeners)
		return error_set(-ENOMEM, NULL, "no memory for a port");
	err = listen_at_all(d, addresses, nr, all);
	/* a port that is free at the first address may be taken at the next one */
	while (err == -EADDRINUSE && d->o.port < 0 && tries--) {
		while (d->nr_listeners)
			close(d->listeners[--d->nr_listeners].fd);
		err = listen_at_all(d, addresses, nr, all);
	}
	if (!err)
		error_clear();
	return err;
}

/* ---- connections ---- */

static void drop(struct connection *c)
{
	close(c->s.fd); /* epoll forgets it */
	frame__free(&c->in);
	free(c->answer);
	*c = (struct connection){.s = {SOURCE_CONNECTION, -1}};
}

/* A free place, or that of the oldest connection. */
static struct connection *find_place(struct kprof_dynolog *d)
{
	struct connection *oldest = &d->connections[0];

	for (size_t i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &d->connections[i];

		if (c->s.fd < 0)
			return c;
		if (c->since_ns < oldest->since_ns)
			oldest = c;
	}
	d->counts.slow++;
	drop(oldest);
	return oldest;
}

static void name_peer(struct connection *c, const union address *a)
{
	char text[INET6_ADDRSTRLEN] = "?";
	bool v6 = a->any.sa_family == AF_INET6;

	inet_ntop(a->any.sa_family, v6 ? (const void *)&a->v6.sin6_addr : &a->v4.sin_addr, text,
		  sizeof(text));
	snprintf(c->peer, sizeof(c->peer), v6 ? "[%s]:%d" : "%s:%d", text,
		 ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port));
	c->loopback = v6 ? IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr)
			 : ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

bool tcp_accept(struct kprof_dynolog *d, struct source *listener)
{
	union address from = {0};
	socklen_t bytes = sizeof(from);
	struct epoll_event e = {.events = EPOLLIN};
	struct connection *c;
	int fd = accept4(listener->fd, &from.any, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
	c = find_place(d);
	c->s.fd = fd;
	c->since_ns = clock_mono_ns();
	c->until_ns = c->since_ns + MOST_NS;
	name_peer(c, &from);
	e.data.ptr = &c->s;
	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e))
		drop(c);
	return true;
}

/* Sends what it takes now. */
static void send_some(struct kprof_dynolog *d, struct connection *c)
{
	struct epoll_event e = {.events = EPOLLOUT, .data.ptr = &c->s};
	ssize_t n = send(c->s.fd, c->answer + c->sent, c->answer_bytes - c->sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->answer_bytes || (n < 0 && errno != EAGAIN && errno != EINTR))
		drop(c);
	else if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, c->s.fd, &e))
		drop(c);
}

static void answer(struct kprof_dynolog *d, struct connection *c)
{
	char *json;
	int32_t length;

	if (request_answer(d, c->in.data, c->in.length, c->peer, c->loopback, &json)) {
		d->counts.bad_requests++;
		drop(c);
		return;
	}
	frame__free(&c->in);
	length = (int32_t)strlen(json);
	c->answer_bytes = sizeof(length) + (size_t)length;
	c->answer = malloc(c->answer_bytes);
	if (c->answer) {
		memcpy(c->answer, &length, sizeof(length));
		memcpy(c->answer + sizeof(length), json, (size_t)length);
	}
	free(json);
	if (c->answer)
		send_some(d, c);
	else
		drop(c);
}

void tcp_serve(struct kprof_dynolog *d, struct connection *c)
{
	char data[4096];
	ssize_t n;
	int state;

	if (c->answer) {
		send_some(d, c);
		return;
	}
	n = recv(c->s.fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	state = n > 0 ? frame__feed(&c->in, data, (size_t)n) : -EBADMSG;
	if (state > 0) {
		answer(d, c);
	} else if (state) {
		d->counts.bad_requests++;
		drop(c);
	}
}

uint64_t tcp_next_ns(const struct kprof_dynolog *d)
{
	uint64_t next = 0;

	for (size_t i = 0; i < CONNECTIONS; i++) {
		const struct connection *c = &d->connections[i];

		if (c->s.fd >= 0 && (!next || c->until_ns < next))
			next = c->until_ns;
	}
	return next;
}

void tcp_expire(struct kprof_dynolog *d, uint64_t now_ns)
{
	for (size_t i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &d->connections[i];

		if (c->s.fd < 0 || c->until_ns > now_ns)
			continue;
		d->counts.slow++;
		drop(c);
	}
}

void tcp_close(struct kprof_dynolog *d)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (d->connections[i].s.fd >= 0)
			drop(&d->connections[i]);
	for (size_t i = 0; i < d->nr_listeners; i++)
		close(d->listeners[i].fd);
	free(d->listeners);
}
