/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_OPTIONS_CONFIG_H
#define KPROF_CMD_OPTIONS_CONFIG_H

#include <stdio.h>

#include "cmd/options/option.h"

/*
 * Reads a file of long options without their dashes, one on each line: "ring = 64M" or "no-agent".
 * A # begins a comment. The file is for all commands that use the table, so options of other
 * commands are ignored. A line [NAME] begins a part for that command alone: own: only this part is
 * read, otherwise only what stands before all of them. Values are kept in the list. required: it is
 * an error if the file does not exist. Returns -1 to go on, else the exit code, after a message.
 */
int config_read(const struct command *c, const char *path, bool required, bool own, void *opts,
		struct value_list *values);
/* The same for a file that is open; the path is for messages. */
int config_take(const struct command *c, FILE *file, const char *path, bool own, void *opts,
		struct value_list *values);

#endif
