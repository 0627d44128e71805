/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_RECORD_RECORD_H
#define KPROF_CMD_RECORD_RECORD_H

#include "cmd/record/options.h"

extern const struct command cmd_attach, cmd_run, cmd_sample;

/*
 * Records as the options say, writes the output, and reports the result on stderr. argv is the
 * whole command line, for the trace's metadata. Returns the exit code.
 */
int record(const struct record_opts *opts, int argc, char **argv);

#endif
