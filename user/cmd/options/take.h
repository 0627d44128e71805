/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_OPTIONS_TAKE_H
#define KPROF_CMD_OPTIONS_TAKE_H

#include "cmd/options/option.h"

/*
 * Stores an option's value as its row says. Returns -1 if it is fine, else the exit code, after a
 * message.
 */
int option_take(const struct command *c, const struct option_row *row, void *opts,
		const char *text);

#endif
