/* SPDX-License-Identifier: BSD-2-Clause */
/* From a capture to the files that were asked for: the command, and what a recording ends with. */
#ifndef KPROF_CMD_EXPORT_EXPORT_H
#define KPROF_CMD_EXPORT_EXPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/options/option.h"
#include "kprof.h"

extern const struct command cmd_export;

/* Whether a file can be written in a format that its name asks for: an option row's .check. */
int export_check_output(const struct command *c, void *opts, const char *text);

/* Who called kprof; under sudo, the user who called sudo. */
struct caller {
	bool by_sudo; /* we are root on behalf of uid and gid */
	uid_t uid;
	gid_t gid;
};
struct caller caller_get(void);

/*
 * Exports the capture as opts (path, process, compression) says, owned by the caller; the files'
 * paths go to stdout, one a line. interpreter: stacks show CPython's own frames. stop: gives up
 * when it points to true; NULL: never. 0 or an exit code, after a message.
 */
int write_capture(const char *capture, struct kprof_export_opts *opts, bool interpreter, bool quiet,
		  const volatile bool *stop);

#endif
