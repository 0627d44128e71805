/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the requested files from a capture: for the export command, and at the end of a recording.
 */
#ifndef KPROF_CMD_EXPORT_EXPORT_H
#define KPROF_CMD_EXPORT_EXPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/options/option.h"
#include "cmd/options/range.h"
#include "kprof.h"

extern const struct command cmd_export;

/* An option row's .check: whether there is a format for a file of this name. */
int export_check_output(const struct command *c, void *opts, const char *text);

/* The user who called kprof or, under sudo, the user who called sudo. */
struct caller {
	bool by_sudo; /* kprof is root on behalf of uid and gid */
	uid_t uid;
	gid_t gid;
};
struct caller caller_get(void);

/* What is exported of a capture besides what opts of write_capture() say. */
struct write_what {
	bool interpreter;               /* stacks show CPython's own frames */
	bool quiet;                     /* no line of progress */
	const volatile bool *stop;      /* the export ends once it points to true; NULL: never */
	const struct command *self;     /* whose range this is */
	const struct range_opts *range; /* NULL: all of the recording */
};

/*
 * Exports the capture as opts (path, process, compression) says, to files owned by the caller.
 * Their paths go to stdout, one on each line. Returns 0, or an exit code after a message.
 */
int write_capture(const char *capture, struct kprof_export_opts *opts,
		  const struct write_what *what);

#endif
