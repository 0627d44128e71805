/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof top, in layers:
 *
 *   rows.c    processes in the order and with the cells that are shown, on a screen and without
 *   steps.c   the rate of training steps, by annotations
 *   plain.c   tables and lines of JSON, for pipes and programs
 *   screen.c  the terminal: begin, end, text that cannot harm it, keys
 *   child.c   another kprof, which dumps or records a process
 *   look.c    what is known of the one process that is looked at
 *   view.c    what all views share
 *   list.c, process.c, flame.c, text.c    the views: what is drawn, and what keys do there
 *   live.c    the loop around them
 *   top.c     options
 */
#ifndef KPROF_CMD_TOP_TOP_H
#define KPROF_CMD_TOP_TOP_H

#include "cmd/options/option.h"
#include "kprof/top.h"

extern const struct command cmd_top;

enum top_sort {
	TOP_SORT_CPU,
	TOP_SORT_WAIT,
	TOP_SORT_GPU,
	TOP_SORT_STEPS,
	TOP_SORT_RSS,
	TOP_SORT_THREADS,
	TOP_SORT_PID,
	TOP_NR_SORTS
};
extern const struct option_choice top_sorts[];

struct top_opts {
	uint64_t interval_ns;
	uint64_t looks; /* how many tables; 0: without end */
	uint64_t most;  /* rows of a table; 0: all */
	bool once, json, steps;
	enum top_sort sort;
	const char *filter; /* NULL: all processes */
};

/* ---- rows.c ---- */

struct top_steps;

struct top_row {
	const struct kprof_top_process *p;
	double steps; /* a second; below 0: not known */
};

struct top_rows {
	struct top_row *all;
	size_t nr, cap;
};

/* steps may be NULL. False: out of memory. */
bool top_rows_make(struct top_rows *rows, const struct kprof_top *top,
		   const struct top_steps *steps, enum top_sort sort, const char *filter);
void top_rows_free(struct top_rows *rows);

#define TOP_CELL_BYTES 48

enum top_column_when { TOP_ALWAYS, TOP_WITH_GPU, TOP_WITH_STEPS };

struct top_column {
	const char *title;
	unsigned int width; /* on a screen; 0: what is left */
	bool right;
	enum top_column_when when;
	enum top_sort sort; /* TOP_NR_SORTS: none */
	/* The cell's text; it may have any bytes. buf has TOP_CELL_BYTES. */
	const char *(*text)(char *buf, const struct top_row *row);
};
/* The i-th column that is shown; NULL: there are no more. */
const struct top_column *top_column_at(size_t i, bool gpu, bool steps);

/* "3.4", of a share as percent; "-": not known */
const char *top_percent(char *buf, double share);
/* The table's first line: the time, CPUs, processes. */
void top_headline(char *buf, size_t bytes, const struct kprof_top *top);

/* ---- steps.c ---- */

/* Begins to count the steps of all processes that have a framework. 0 or -errno. */
int top_steps_new(const struct kprof_top *top, struct top_steps **out);
/* To be called often. 1: there is no process now whose steps are counted; -errno. */
int top_steps_poll(struct top_steps *s, int timeout_ms);
/* Counts those of the last ten seconds, from now on also of processes that are new in top. */
int top_steps_look(struct top_steps *s, const struct kprof_top *top);
/* How many processes there are whose steps are counted. */
size_t top_steps_nr(const struct top_steps *s);
/* Steps a second; below 0: not known. */
double top_steps_rate(const struct top_steps *s, pid_t pid);
void top_steps_free(struct top_steps *s); /* NULL is fine */

/* The part of the recording that is shown. */
#define TOP_WINDOW_NS 10000000000ull
/*
 * Opens what was recorded, and selects its last ten seconds. 1: done; 0: nothing was recorded in
 * them; -errno. *window_ns: how long the part is.
 */
int top_open_last(struct kprof_watch *w, struct kprof_capture **out, uint64_t *window_ns);

/* ---- plain.c, live.c: these return the exit code ---- */

int top_plain(const struct top_opts *opts, struct kprof_top *top);
/* -1: this terminal cannot show a screen. */
int top_live(const struct top_opts *opts, struct kprof_top *top);

#endif
