/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's side of dynolog's protocols (kprof/dynolog.h). */
#ifndef KPROF_CMD_DAEMON_KINETO_H
#define KPROF_CMD_DAEMON_KINETO_H

#include "cmd/daemon/daemon.h"

struct kineto;
/* 0 or a negative errno, with the library's error. */
int kineto__new(struct daemon *d, struct kineto **out);
void kineto__free(struct kineto *k); /* NULL is fine */
/* Whether the Kineto inside of a process asks for configs. */
bool kineto__has(struct kineto *k, pid_t pid);
/* The caller deletes it. */
struct cJSON *kineto__state(struct kineto *k);

#endif
