/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of `kprof check`; what they offer to others is kprof_check() in kprof.h. */
#ifndef KPROF_CAPTURE_CHECK_H
#define KPROF_CAPTURE_CHECK_H

#include <sys/types.h>

#include "capture/process/process.h"
#include "kprof.h"

/* What recording a GPU's own activities needs of this machine. Returns what fn returned. */
int check_agent_machine(kprof_check_fn fn, void *ctx);
/* Whether this process has, needs, or cannot be given the agent. Changes nothing in it. */
int check_agent_process(pid_t pid, const struct proc_maps *maps, kprof_check_fn fn, void *ctx);

#endif
