/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is recorded from its first instruction: its process waits between fork and exec. */
#ifndef KPROF_CAPTURE_SPAWN_H
#define KPROF_CAPTURE_SPAWN_H

#include <sys/types.h>

struct spawn {     /* see spawn__init() */
	pid_t pid; /* 0: nothing was started */
	int go;    /* a byte into it: the child goes on; -1: none */
	int error; /* reports the errno of a failed exec; -1: none */
	const char *name;
};

struct spawn_opts {
	char *const *argv; /* alive until spawn__release() */
	uid_t uid;         /* (uid_t)-1, (gid_t)-1: as the caller */
	gid_t gid;
	void (*prepare)(
		const char *arg); /* called in the child before it executes its program; NULL */
	const char *arg;
};

void spawn__init(struct spawn *s);
/* Starts the child, which waits. Error and hint set. */
int spawn__start(struct spawn *s, const struct spawn_opts *opts);
/* Lets the child execute its program; fails when it can't. Nothing, if none waits. */
int spawn__release(struct spawn *s);
/* A child that still waits ends. */
void spawn__abandon(struct spawn *s);

#endif
