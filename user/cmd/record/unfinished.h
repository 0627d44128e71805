/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures that recordings left unfinished because they were killed. */
#ifndef KPROF_CMD_RECORD_UNFINISHED_H
#define KPROF_CMD_RECORD_UNFINISHED_H

#include "cmd/export/export.h"

/*
 * Names those in the directory of this path to stderr, and says how to read them. Only regular
 * files of this user, or of the one that called sudo, which no process is writing any more. Removes
 * none.
 */
void unfinished_say(const char *path, const struct caller *owner);

#endif
