/* SPDX-License-Identifier: BSD-2-Clause */
/* The child: serves until the daemon has ended. */
#ifndef KPROF_CMD_DAEMON_WEB_SERVER_H
#define KPROF_CMD_DAEMON_WEB_SERVER_H

#include "cmd/daemon/web/listen.h"

struct server_opts {
	const struct web_opts *web;
	int fd; /* to the daemon */
	const struct listener *listeners;
	size_t nr;
	const char *token; /* "": there is none */
	const char *perfetto;
};

struct server;
/* Begins to serve these sockets, which are nonblocking. NULL: it cannot. */
struct server *server__new(const struct server_opts *opts);
/* Serves, until the daemon has closed its end. */
void server__run(struct server *s);

#endif
