/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets between the daemon and its child, on the child's side; the daemon's is in web.h. */
#ifndef KPROF_CMD_DAEMON_WEB_MESSAGE_H
#define KPROF_CMD_DAEMON_WEB_MESSAGE_H

#include "cmd/daemon/web/web.h"

#define MESSAGE_BYTES 4096
#define MESSAGE_SUFFIX_BYTES 16

struct web_reply {
	uint32_t id;
	unsigned int code; /* 200, or of the refusal */
	char error[WEB_ERROR_BYTES];
	char suffix[MESSAGE_SUFFIX_BYTES + 1]; /* ".pftrace"; "": the usual one */
	int fd;                                /* the receiver's; -1: none */
};

/* [0-9A-Za-z._-]{1,128}, which is neither hidden nor a way out of a folder. */
bool message_is_name(const char *name);
int message_ask(int fd, const struct web_question *q);
/* 1; 0: there is none; -EPIPE: the daemon has ended; -EBADMSG: to be passed over. Never waits. */
int message_take_reply(int fd, struct web_reply *out);

#endif
