/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections, so that none keeps its place for nothing: one whose request does not come, or
 * whose answer is not read, is closed after a while, and earlier where there are many.
 */
#ifndef KPROF_CMD_DAEMON_WEB_CONNS_H
#define KPROF_CMD_DAEMON_WEB_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONNS_MOST 64 /* of each address that is listened on */
#define CONNS_MANY 48 /* of all together: from here on, they have to hurry */
/* How long a request may take to come, and an answer to be taken, both as a whole. */
#define CONNS_IDLE_S 10
#define CONNS_BUSY_S 900
#define CONNS_IDLE_HURRIED_S 1
#define CONNS_BUSY_HURRIED_S 60

struct conn {
	struct conn *next;
	int fd;
	bool busy;         /* a request is there, and its answer is not yet gone */
	uint64_t since_ns; /* since when it is so */
	bool closed;       /* to be */
};

struct conns {
	struct conn *first; /* the newest */
	size_t nr;
};

/* NULL: no memory, and the connection is closed at once. */
struct conn *conns__add(struct conns *c, int fd, uint64_t now_ns);
void conns__remove(struct conns *c, struct conn *conn);
void conns__busy(struct conn *conn, bool busy, uint64_t now_ns);
/* Closes those that have had their time. To be called every so often. */
void conns__sweep(struct conns *c, uint64_t now_ns);

#endif
