/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: each subcommand parses its arguments, calls the library, and prints. It uses
 * the library only by include/kprof.h. Results go to stdout, everything else to stderr. The larger
 * commands have rooms of their own.
 */
#ifndef KPROF_CMD_COMMANDS_H
#define KPROF_CMD_COMMANDS_H

#include "cmd/options/option.h"

extern const struct command cmd_check, cmd_dump, cmd_list, cmd_merge, cmd_status;

#endif
