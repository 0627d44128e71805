/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_OPTIONS_CONFIG_H
#define KPROF_CMD_OPTIONS_CONFIG_H

#include "cmd/options/option.h"

/*
 * Reads a file of long options, one a line without their dashes, "ring = 64M" or "no-agent"; #
 * begins a comment. The file is for all commands that use the table: what this one does not have
 * is passed over. Values are kept in the list. required: that there is no such file is an error.
 * -1: fine; else the exit code, after a message.
 */
int config_read(const struct command *c, const char *path, bool required, void *opts,
		struct value_list *values);

#endif
