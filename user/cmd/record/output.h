/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a recording is written: file names, owner, and the conversion of the capture to the
 * requested file.
 */
#ifndef KPROF_CMD_RECORD_OUTPUT_H
#define KPROF_CMD_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/export/export.h"

struct output {
	char *path;         /* path that was given, or the default name; NULL: not known yet */
	char *capture_path; /* capture that the session writes: path itself if that is a capture */
	bool direct;        /* capture_path is path */
	struct caller owner;
};

/*
 * path NULL: output_set_default() sets the name when the process is known. Returns 0, or an exit
 * code after a message.
 */
int output_init(struct output *o, const char *path);
/*
 * Sets the path HOST_PID.NANOSECONDS.pt.trace.json.gz in the current directory, unless there is
 * one.
 */
int output_set_default(struct output *o, pid_t pid, const char *suffix);
void output_free(struct output *o);
/* The path with a number in front of its suffix, malloc'ed: "out.3.json.gz". NULL: no memory. */
char *output_numbered(const char *path, uint64_t number);

/*
 * Makes the requested files from the finished capture; their paths go to stdout, one on each line.
 * Then removes the capture, unless it is the output. stop: the export ends once it points to true.
 * On failure or stop the capture is kept, and a message says where. Returns 0 or an exit code.
 */
int output_write(const struct output *o, bool off_cpu, bool quiet, const volatile bool *stop);
/* Removes an empty capture. False: it is the requested file, and is kept. */
bool output_drop(const struct output *o);
/* Prints to stderr where the capture is and how to make a trace of it, if there is one. */
void output_say_kept(const struct output *o);

#endif
