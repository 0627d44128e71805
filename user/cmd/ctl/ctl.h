/* SPDX-License-Identifier: BSD-2-Clause */
/* kprof ctl: asks the daemon for recordings. */
#ifndef KPROF_CMD_CTL_CTL_H
#define KPROF_CMD_CTL_CTL_H

#include "cmd/options/option.h"

extern const struct command cmd_ctl;

/*
 * A time of the clock: seconds since 1970 (also 1700000000.5), "12:30:00" or "12:30" (the next
 * time that it is, local time), "+5s" from now. 0 or -EINVAL.
 */
int ctl_time(const char *text, uint64_t *real_ns);

/* Who listens there may be somebody else, and what a daemon says has names that others chose. */
struct cJSON;
void ctl_defuse(struct cJSON *o);                             /* NULL is fine */
const char *ctl_text(const struct cJSON *o, const char *key); /* "": it has no such text */

/* Prints what the daemon sends of these processes; nr 0: of those worth it. An exit code. */
struct value_pids;
int ctl_processes(int file, const struct value_pids *pids, bool as_json);

#endif
