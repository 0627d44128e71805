/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon has been asked and has not answered, and what it has answered a moment ago. Many
 * clients that want the same are one question, and what everybody asks for is kept for a moment: so
 * clients, however many, cost the daemon some questions a second.
 */
#ifndef KPROF_CMD_DAEMON_WEB_ASKS_H
#define KPROF_CMD_DAEMON_WEB_ASKS_H

#include "cmd/daemon/web/message.h"

#define ASKS_MOST 16
#define ASKS_KEEP_NS 250000000ull /* how long an answer is passed on to who asks the same */
#define ASKS_FILE_MS 30000        /* how long a trace may take to be made */

/* An answer; several wait for it, and have it until they have passed it on. */
struct answer {
	size_t refs;
	unsigned int code;
	struct MHD_Response *response;
};
void answer__put(struct answer *a); /* NULL is fine */

/* Someone who waits. */
struct waiter {
	struct waiter *next;
	struct answer *answer; /* NULL: not yet */
};

struct ask {
	struct web_question question; /* id 0: none */
	uint64_t until_ns;
	struct waiter *waiters;
};

struct asks {
	int fd;
	unsigned int patience_ms;
	/* Makes a response; it owns the reply's descriptor then. */
	struct answer *(*respond)(void *ctx, const struct web_question *q, struct web_reply *reply);
	/* Its answer is there. */
	void (*wake)(void *ctx, struct waiter *w);
	void *ctx;
	uint32_t last_id;
	struct ask open[ASKS_MOST];
	struct {
		struct answer *answer;
		uint64_t until_ns;
	} kept[WEB_NR_GET];
};

/*
 * Wants an answer: 1: it is there already; 0: it will be, and `wake` is called; -errno: nobody can
 * be asked now.
 */
int asks__want(struct asks *a, const struct web_question *q, struct waiter *w, uint64_t now_ns);
/* Reads what the daemon has answered. False: it has ended. */
bool asks__take(struct asks *a, uint64_t now_ns);
/* Those who have waited for too long get a refusal. */
void asks__expire(struct asks *a, uint64_t now_ns);

#endif
