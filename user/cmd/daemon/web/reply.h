/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses: each with its type, and with what browsers must not do with it. */
#ifndef KPROF_CMD_DAEMON_WEB_REPLY_H
#define KPROF_CMD_DAEMON_WEB_REPLY_H

#include <microhttpd.h>

#include "cmd/daemon/web/message.h"

/* A text for people. NULL: no memory. */
struct MHD_Response *reply_text(const char *text);
/* What the daemon has answered; the descriptor is the response's then. NULL: it is not fit. */
struct MHD_Response *reply_content(const struct web_question *q, struct web_reply *reply);
/* The page. perfetto: an origin. */
struct MHD_Response *reply_page(const char *perfetto);

#endif
