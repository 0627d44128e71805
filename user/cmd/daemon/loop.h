/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon waits for: descriptors, each with a function that is called when it is ready. */
#ifndef KPROF_CMD_DAEMON_LOOP_H
#define KPROF_CMD_DAEMON_LOOP_H

#include <stdint.h>

/* The caller's; it stays where it is until loop__remove(). */
struct loop_watch {
	int fd;
	/* events: those of epoll(7). May remove this watch, or any other. */
	void (*ready)(void *ctx, uint32_t events);
	void *ctx;
};

struct loop;

/* NULL: no memory, or no descriptor. */
struct loop *loop__new(void);
void loop__free(struct loop *l); /* NULL is fine */
/* 0 or a negative errno. */
int loop__add(struct loop *l, struct loop_watch *w, uint32_t events);
int loop__change(struct loop *l, struct loop_watch *w, uint32_t events);
/* The descriptor stays open. */
void loop__remove(struct loop *l, struct loop_watch *w);
/* Waits for what comes first, at most so long, and handles that. */
void loop__run_once(struct loop *l, int timeout_ms);

#endif
