/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets that the child is to serve, and the token that clients must know. */
#ifndef KPROF_CMD_DAEMON_WEB_LISTEN_H
#define KPROF_CMD_DAEMON_WEB_LISTEN_H

#include "cmd/daemon/web/web.h"

#define LISTEN_TOKEN_LEAST 16
#define LISTEN_TOKEN_BYTES 256

struct listener {
	int fd;
	bool loopback; /* only this machine's programs can connect */
	uint16_t port;
};

/* Listens on all addresses. 0; -errno and why, and then nothing is open. */
int listen_all(const struct web_opts *opts, struct listener out[WEB_LISTEN], size_t *nr,
	       struct web_error *why);
/* Reads the token; makes the file if it is not there. 0; -errno and why. */
int listen_token(const char *path, char token[LISTEN_TOKEN_BYTES + 1], struct web_error *why);
/* The same file by a number that is none of the standard streams'; or what it was. */
int listen_above(int fd);
/* Sets why, and returns err. hint: NULL: there is none. */
int listen_error(struct web_error *why, int err, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
