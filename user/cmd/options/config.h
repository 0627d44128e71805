/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_OPTIONS_CONFIG_H
#define KPROF_CMD_OPTIONS_CONFIG_H

#include "cmd/options/option.h"

/*
 * Reads a file of long options, one a line without their dashes, "ring = 64M" or "no-agent"; #
 * begins a comment. Adds "--ring=64M" and so on to the list: all that a row of the command's table
 * allows, even what is another command's, but these only when the command itself has them.
 * required: that there is no such file is an error. -1: fine; else the exit code, after a message.
 */
int config_read(const struct command *c, const char *path, bool required, struct value_list *list);

#endif
