/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of the one process that is looked at, of its last ten seconds. */
#ifndef KPROF_CMD_TOP_LOOK_H
#define KPROF_CMD_TOP_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "kprof/top.h"

/* A row of a table by function, line, operator or device call. */
struct look_row {
	char *name, *where;
	double self, total; /* shares */
	uint64_t calls, total_ns;
	uint64_t average_ns; /* 0: not known, as no end of a call was seen */
};

struct look_table {
	struct look_row *rows;
	size_t nr;
};

struct look_thread {
	pid_t tid;
	char name[64];
	char state;
	double cpu, runnable, blocked;
	char *now; /* the line that it executed when it was sampled last; NULL: it was not */
};

/* A function in the stacks, with those that it calls. */
struct look_node {
	char *name;
	enum kprof_frame_kind kind;
	uint64_t weight_ns;
	struct look_node *child, *next;
};

enum look_kind { LOOK_FUNCTIONS, LOOK_LINES, LOOK_OPERATORS, LOOK_CALLS, LOOK_NR_TABLES };

struct look {
	pid_t pid;
	uint64_t start_ticks;
	char *command;
	bool operators;  /* they and device calls are recorded: probes are placed in it */
	bool no_runtime; /* it has no device runtime, as far as is known */
	bool ended;
	struct kprof_watch *watch;
	uint64_t window_ns; /* how long the part is that is shown */
	uint64_t samples, sampled_ns;
	struct look_table tables[LOOK_NR_TABLES];
	struct look_thread *threads; /* those that use a CPU most come first */
	size_t nr_threads;
	struct look_node root;
	size_t nr_nodes;
	bool nodes_full; /* there are more functions than are kept */
};

/* Begins to sample it; with its operators and device calls if that is set. 0 or -errno. */
int look_new(const struct kprof_top_process *p, bool operators, struct look **out);
/* Goes on recording for a moment. 0, or -errno; l->ended: the process has ended. */
int look_poll(struct look *l, int timeout_ms);
/* Looks up what was recorded. 0 or -errno. */
int look_update(struct look *l, struct kprof_top *top);
/* Writes a flame graph of the part that is shown. 0 or -errno. */
int look_draw(struct look *l, const char *path);
void look_free(struct look *l); /* NULL is fine */

#endif
