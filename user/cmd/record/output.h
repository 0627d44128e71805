/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a recording goes: names, owner, and from the capture to the file that was asked for. */
#ifndef KPROF_CMD_RECORD_OUTPUT_H
#define KPROF_CMD_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/export/export.h"

struct output {
	char *path;         /* what was asked for, or the default name; NULL: not known yet */
	char *capture_path; /* what the session writes: path itself when that is a capture */
	bool direct;        /* it is */
	struct caller owner;
};

/*
 * path NULL: a name will come when the process is known (output_set_default). 0 or an exit code,
 * after a message.
 */
int output_init(struct output *o, const char *path);
/* HOST_PID.NANOSECONDS.pt.trace.json.gz in the current directory, unless there is a path. */
int output_set_default(struct output *o, pid_t pid, const char *suffix);
void output_free(struct output *o);

/*
 * From the finished capture to the files, whose paths go to stdout, one a line; the capture is
 * removed unless it is the output. stop: ends it when it points to true. On failure or stop the
 * capture stays, and it is said where. 0 or an exit code.
 */
int output_write(const struct output *o, bool quiet, const volatile bool *stop);
/* The capture is empty: removes it. False: it is the file that was asked for, and stays. */
bool output_drop(const struct output *o);
/* Says on stderr where the capture is and how to make a trace of it, if there is one. */
void output_say_kept(const struct output *o);

#endif
