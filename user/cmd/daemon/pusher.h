/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends what is sampled to a place that keeps profiles, by a process of its own (kprof/push.h). */
#ifndef KPROF_CMD_DAEMON_PUSHER_H
#define KPROF_CMD_DAEMON_PUSHER_H

#include "cmd/daemon/daemon.h"

struct pusher;
/* queue: a folder, which becomes the process's user's. 0 or a negative errno. */
int pusher__new(struct loop *loop, const struct push_opts *opts, const char *queue,
		struct pusher **out);
void pusher__free(struct pusher *p); /* NULL is fine */
/* A capture of samples is whole. */
void pusher__chunk(struct pusher *p, const char *path);
/* Once a second. */
void pusher__tend(struct pusher *p, uint64_t now_ns);
void pusher__stop(struct pusher *p); /* NULL is fine */
/* Goes on with other options, which are kept: the process begins anew. */
void pusher__change(struct pusher *p, const struct push_opts *opts);
/* What it last said of itself; NULL: nothing yet. */
const struct cJSON *pusher__stats(const struct pusher *p);
/* The caller deletes it. */
struct cJSON *pusher__state(const struct pusher *p);

#endif
