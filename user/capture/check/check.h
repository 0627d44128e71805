/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of `kprof check`. Other rooms use them through kprof_check() in kprof.h. */
#ifndef KPROF_CAPTURE_CHECK_H
#define KPROF_CAPTURE_CHECK_H

#include <sys/types.h>

#include "capture/process/process.h"
#include "kprof.h"

struct check {
	kprof_check_fn fn;
	void *ctx;
	int stopped; /* what fn returned, or an error: then nothing more is reported */
};

/* Reports a line, unless the check was stopped. hint may be NULL. */
void check_say(struct check *c, enum kprof_check_state state, const char *name, const char *hint,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Checks that this machine has what is needed to record a GPU's own activities. */
void check_agent_machine(struct check *c);
/*
 * Checks whether this process has the agent, needs it, or cannot be given it. Changes nothing in
 * the process.
 */
void check_agent_process(struct check *c, pid_t pid, const struct proc_maps *maps);

#endif
