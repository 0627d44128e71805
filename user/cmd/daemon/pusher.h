/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends what is sampled to a place that keeps profiles, by a process of its own (kprof/push.h). */
#ifndef KPROF_CMD_DAEMON_PUSHER_H
#define KPROF_CMD_DAEMON_PUSHER_H

#include "cmd/daemon/daemon.h"

struct pusher;
/*
 * Pushes the captures in the daemon's folder of samples, each once: those that come from now on,
 * and those that a pusher before, also of a daemon before, was not handed any more. state: the
 * daemon's folder; the queue is in it. 0 or a negative errno.
 */
int pusher__new(struct loop *loop, const struct push_opts *opts, const char *state,
		struct pusher **out);
void pusher__free(struct pusher *p); /* NULL is fine */
/* A capture of samples is whole. */
void pusher__chunk(struct pusher *p);
/* Once a second. */
void pusher__tend(struct pusher *p, uint64_t now_ns);
/* What is not handed over by then waits for the next one. */
void pusher__stop(struct pusher *p); /* NULL is fine */
/* Nothing is to be pushed any more, nor later what is recorded meanwhile. NULL: it never was. */
void pusher__off(struct pusher *p, const char *state);
/* Goes on with other options, which are kept: the process begins anew. */
void pusher__change(struct pusher *p, const struct push_opts *opts);
/* What it last said of itself; NULL: nothing yet. */
const struct cJSON *pusher__stats(const struct pusher *p);
/* The caller deletes it. */
struct cJSON *pusher__state(const struct pusher *p);

/* ---- handed.c ---- */

#define HANDED_NAME_BYTES SHELF_NAME_BYTES

/* All zero at first. */
struct handed {
	char folder[DAEMON_PATH_BYTES], path[DAEMON_PATH_BYTES];
	struct shelf names;
	size_t lines; /* of the file */
	bool open, complained;
};
/* folder: of captures; path: the file. If it is not there, all captures count as handed over. */
void handed__open(struct handed *h, const char *folder, const char *path);
void handed__close(struct handed *h);
/* The oldest capture that was not handed over. */
bool handed__next(struct handed *h, char name[HANDED_NAME_BYTES]);
void handed__add(struct handed *h, const char *name);

#endif
