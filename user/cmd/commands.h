/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: each subcommand parses, calls the library, prints. It knows the library by
 * include/kprof.h only. Results go to stdout, everything else to stderr. The larger commands have
 * rooms of their own.
 */
#ifndef KPROF_CMD_COMMANDS_H
#define KPROF_CMD_COMMANDS_H

#include "cmd/options/option.h"

extern const struct command cmd_check, cmd_dump, cmd_list;

#endif
