/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of `kprof check`. Other rooms use them through kprof_check() in kprof.h. */
#ifndef KPROF_CAPTURE_CHECK_H
#define KPROF_CAPTURE_CHECK_H

#include <sys/types.h>

#include "capture/process/process.h"
#include "kprof.h"

/*
 * Checks that this machine has what is needed to record a GPU's own activities. Returns what fn
 * returned.
 */
int check_agent_machine(kprof_check_fn fn, void *ctx);
/*
 * Checks whether this process has the agent, needs it, or cannot be given it. Changes nothing in
 * the process.
 */
int check_agent_process(pid_t pid, const struct proc_maps *maps, kprof_check_fn fn, void *ctx);

#endif
