// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct loop {
	int epoll;
};

struct loop *loop__new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll >= 0)
		return l;
	free(l);
	return NULL;
}

void loop__free(struct loop *l)
{
	if (!l)
		return;
	close(l->epoll);
	free(l);
}

static int control(struct loop *l, int op, struct loop_watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(l->epoll, op, w->fd, &e) ? -errno : 0;
}

int loop__add(struct loop *l, struct loop_watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_ADD, w, events);
}

int loop__change(struct loop *l, struct loop_watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_MOD, w, events);
}

void loop__remove(struct loop *l, struct loop_watch *w)
{
	control(l, EPOLL_CTL_DEL, w, 0);
}

void loop__run_once(struct loop *l, int timeout_ms)
{
	struct epoll_event e;

	/* one at a time: what is handled may remove another watch, whose event would be stale */
	if (epoll_wait(l->epoll, &e, 1, timeout_ms) == 1) {
		const struct loop_watch *w = e.data.ptr;

		w->ready(w->ctx, e.events);
	}
}
