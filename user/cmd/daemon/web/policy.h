/* SPDX-License-Identifier: BSD-2-Clause */
/* Which requests are answered, and with what: decisions on texts of clients, and nothing else. */
#ifndef KPROF_CMD_DAEMON_WEB_POLICY_H
#define KPROF_CMD_DAEMON_WEB_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/daemon/web/web.h"

/*
 * Whether a Host header is one of ours: localhost, any address, or one of these names, with any
 * port. A web page of somebody else's can make its own name lead to this machine (DNS rebinding),
 * and a browser would then let it read what we answer; but its name is none of these.
 */
bool policy_host(const char *host, const char *const *names, size_t nr);
/* Whether two texts are equal, in a time that depends on the given one alone. */
bool policy_equal(const char *given, const char *secret);
/* The token of "Bearer TOKEN"; NULL: it is none. */
const char *policy_bearer(const char *authorization);
/* Whether the client of this Accept header (NULL: it has none) wants OpenMetrics. */
bool policy_openmetrics(const char *accept);

enum policy_path { POLICY_NOTHING, POLICY_PAGE, POLICY_ASK };
/* What a path stands for; of POLICY_ASK, get and name are then set. */
enum policy_path policy_path(const char *path, struct web_question *q);

#endif
