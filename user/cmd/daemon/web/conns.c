// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/web/conns.h"

#include <stdlib.h>
#include <sys/socket.h>

#define SECOND_NS 1000000000ull

struct conn *conns__add(struct conns *c, int fd, uint64_t now_ns)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		shutdown(fd, SHUT_RDWR);
		return NULL;
	}
	*conn = (struct conn){.next = c->first, .fd = fd, .since_ns = now_ns};
	c->first = conn;
	c->nr++;
	return conn;
}

void conns__remove(struct conns *c, struct conn *conn)
{
	for (struct conn **at = &c->first; conn && *at; at = &(*at)->next) {
		if (*at == conn) {
			*at = conn->next;
			c->nr--;
			free(conn);
			return;
		}
	}
}

void conns__busy(struct conn *conn, bool busy, uint64_t now_ns)
{
	if (!conn)
		return;
	conn->busy = busy;
	conn->since_ns = now_ns;
}

void conns__sweep(struct conns *c, uint64_t now_ns)
{
	bool many = c->nr >= CONNS_MANY;
	uint64_t idle_s = many ? CONNS_IDLE_HURRIED_S : CONNS_IDLE_S;
	uint64_t busy_s = many ? CONNS_BUSY_HURRIED_S : CONNS_BUSY_S;

	for (struct conn *conn = c->first; conn; conn = conn->next) {
		uint64_t most_ns = (conn->busy ? busy_s : idle_s) * SECOND_NS;

		/* The server then finds its end, and removes it. */
		if (!conn->closed && now_ns - conn->since_ns >= most_ns) {
			conn->closed = true;
			shutdown(conn->fd, SHUT_RDWR);
		}
	}
}
