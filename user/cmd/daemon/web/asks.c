// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/web/asks.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_AT_ONCE 64

void answer__put(struct answer *a)
{
	if (!a || --a->refs)
		return;
	if (a->response)
		MHD_destroy_response(a->response);
	free(a);
}

static bool same(const struct web_question *a, const struct web_question *b)
{
	return a->get == b->get && !strcmp(a->name, b->name);
}

static void wait_for(struct ask *ask, struct waiter *w)
{
	w->answer = NULL;
	w->next = ask->waiters;
	ask->waiters = w;
}

static struct ask *new_ask(struct asks *a, const struct web_question *q, uint64_t now_ns)
{
	unsigned int ms = a->patience_ms;
	struct ask *ask = NULL;

	for (size_t i = 0; i < ASKS_MOST && !ask; i++)
		if (!a->open[i].question.id)
			ask = &a->open[i];
	if (!ask)
		return NULL;
	*ask = (struct ask){.question = *q};
	ask->question.id = ++a->last_id ? a->last_id : ++a->last_id;
	if (*q->name && ms < ASKS_FILE_MS)
		ms = ASKS_FILE_MS;
	ask->until_ns = now_ns + ms * 1000000ull;
	return ask;
}

int asks__want(struct asks *a, const struct web_question *q, struct waiter *w, uint64_t now_ns)
{
	struct ask *ask;
	int err;

	if (!*q->name && a->kept[q->get].answer && now_ns < a->kept[q->get].until_ns) {
		w->answer = a->kept[q->get].answer;
		w->answer->refs++;
		return 1;
	}
	for (size_t i = 0; i < ASKS_MOST; i++) {
		if (a->open[i].question.id && same(&a->open[i].question, q)) {
			wait_for(&a->open[i], w);
			return 0;
		}
	}
	ask = new_ask(a, q, now_ns);
	if (!ask)
		return -EAGAIN;
	err = message_ask(a->fd, &ask->question);
	if (err) {
		ask->question.id = 0;
		return err;
	}
	wait_for(ask, w);
	return 0;
}

static void keep(struct asks *a, enum web_get get, struct answer *answer, uint64_t now_ns)
{
	answer__put(a->kept[get].answer);
	a->kept[get].answer = answer;
	a->kept[get].until_ns = now_ns + ASKS_KEEP_NS;
	if (answer)
		answer->refs++;
}

/* Everybody who waits for it gets the answer. */
static void close_ask(struct asks *a, struct ask *ask, struct web_reply *reply, uint64_t now_ns)
{
	struct web_question q = ask->question;
	struct answer *answer = a->respond(a->ctx, &q, reply);
	struct waiter *w = ask->waiters;

	ask->question.id = 0;
	ask->waiters = NULL;
	if (!*q.name)
		keep(a, q.get, answer, now_ns);
	while (w) {
		struct waiter *next = w->next;

		w->answer = answer;
		if (answer)
			answer->refs++;
		a->wake(a->ctx, w);
		w = next;
	}
	answer__put(answer);
}

bool asks__take(struct asks *a, uint64_t now_ns)
{
	for (int i = 0; i < MOST_AT_ONCE; i++) {
		struct web_reply reply;
		int n = message_take_reply(a->fd, &reply);
		struct ask *ask = NULL;

		if (n <= 0 && n != -EBADMSG)
			return n == 0;
		for (size_t k = 0; n == 1 && k < ASKS_MOST; k++)
			if (a->open[k].question.id == reply.id)
				ask = &a->open[k];
		if (ask)
			close_ask(a, ask, &reply, now_ns);
		else if (reply.fd >= 0)
			close(reply.fd); /* too late */
	}
	return true;
}

void asks__expire(struct asks *a, uint64_t now_ns)
{
	for (size_t i = 0; i < ASKS_MOST; i++) {
		struct web_reply none = {.code = 503, .fd = -1};

		if (!a->open[i].question.id || now_ns < a->open[i].until_ns)
			continue;
		snprintf(none.error, sizeof(none.error), "the daemon does not answer");
		close_ask(a, &a->open[i], &none, now_ns);
	}
}
