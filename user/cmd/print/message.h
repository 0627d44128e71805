/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that goes to stderr: causes, hints, notes, and the progress line of a terminal. */
#ifndef KPROF_CMD_PRINT_MESSAGE_H
#define KPROF_CMD_PRINT_MESSAGE_H

#include <stdbool.h>

#include "kprof.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MACHINE = 3, /* permission or a kernel feature is missing */
	EXIT_LOST = 4,    /* done, but events were lost and --strict was given */
};

struct message_opts {
	bool quiet;   /* only warnings and errors */
	bool verbose; /* the library's details, too */
};

/* Warnings and details of the library come to stderr from now on. opts must live on. */
void message_listen(const struct message_opts *opts);

/* Prints cause and hint of the library's last failed call; returns the exit code. */
int message_error(void);
/* A wrong command line. The hint names the command's --help. Returns EXIT_USAGE. */
int message_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "kprof: …", and a hint unless NULL. */
void message_warn(const char *hint, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void message_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Warns when the capture is not whole, with what is lost of it. Call it after reading. */
void message_cut(const char *path, const struct kprof_capture_info *info);

/*
 * The line that is rewritten in place; nothing unless stderr is a terminal. Any message erases it
 * first, message_line("") too.
 */
void message_line(const char *text);
bool message_line_wanted(void);

#endif
