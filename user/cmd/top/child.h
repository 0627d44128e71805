/* SPDX-License-Identifier: BSD-2-Clause */
/* Another kprof that does one thing for kprof top, and may take its time. */
#ifndef KPROF_CMD_TOP_CHILD_H
#define KPROF_CMD_TOP_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child { /* all zero: none was started */
	pid_t pid;
	int fd;     /* what it prints, on both streams */
	char *text; /* what it has printed, NUL-terminated; NULL: nothing */
	size_t bytes, cap;
	bool cut; /* it prints more than is kept */
	int code; /* its exit status, when it has ended */
};

/* argv[0] is the subcommand; NULL at the end. Returns 0 or -errno. */
int child_start(struct child *c, const char *const *argv);
/* Reads what is there. 1: it has ended, and c->code says how; 0: it runs; -1: there is none. */
int child_poll(struct child *c);
/*
 * Ends it, waits for that, and frees the text. A signal meanwhile is passed on as another request
 * to end.
 */
void child_free(struct child *c);

#endif
