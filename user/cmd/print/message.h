/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes everything that goes to stderr: causes, hints, notes, and the progress line of a terminal.
 */
#ifndef KPROF_CMD_PRINT_MESSAGE_H
#define KPROF_CMD_PRINT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "kprof.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MACHINE = 3, /* permission or a kernel feature is missing */
	EXIT_LOST = 4,    /* done, but events were lost and --strict was given */
	EXIT_ABOVE = 5,   /* done, and something grew by more than --fail-above allows */
};

struct message_opts {
	bool quiet;   /* print only warnings and errors */
	bool verbose; /* also print the library's details */
};

/* Prints the library's warnings and details to stderr from now on. opts is kept, not copied. */
void message_listen(const struct message_opts *opts);

/*
 * Instead of printing them, hands the messages of the functions below to fn from now on. hint may
 * be NULL.
 */
void message_redirect(void (*fn)(void *ctx, const char *cause, const char *hint), void *ctx);

/* Prints cause and hint of the library's last failed call; returns the exit code. */
int message_error(void);
/* Reports a wrong command line. The hint names the command's --help. Returns EXIT_USAGE. */
int message_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints "kprof: …", and the hint unless it is NULL. */
void message_warn(const char *hint, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define message_note(...) message_warn(NULL, __VA_ARGS__)
/* Reports it; returns the exit code. */
int message_no_memory(void);

/* Warns if the capture is incomplete, with what is lost. Call it after reading the capture. */
void message_cut(const char *path, const struct kprof_capture_info *info);

/*
 * Shows the progress line, which is rewritten in place; does nothing unless stderr is a terminal.
 * Any message erases the line first, and so does message_line("").
 */
void message_line(const char *text);
bool message_line_wanted(void);
/* The same with how much is done: "writing 42 %", now and then. */
struct message_progress {
	bool shown;
	uint64_t next_ns; /* time of the next update, in nanoseconds */
};
void message_progress(struct message_progress *p, const char *doing, uint64_t done, uint64_t total);
#define PROGRESS_NS 200000000u /* between two updates of the progress line */
/* The time in nanoseconds, for these, for limits and for names of files. */
uint64_t now_ns(clockid_t clock);

#endif
