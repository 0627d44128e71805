/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: between the agent's thread (agent.c) and what it does (control.c). */
#ifndef KPROF_GPU_AGENT_H
#define KPROF_GPU_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/agent.h"

/* ---- sessions: what the thread does. One caller at a time: control__lock. ---- */

/* One look at the command. Returns how long to wait before the next: ms, -1 for ever, -2: leave. */
int control__step(struct kprof_agent_shm *shm);
#define CONTROL_LEAVE (-2)
/* Ends whatever is being recorded and gives back what it took. */
void control__leave(struct kprof_agent_shm *shm);
/* The process calls exit(). */
void control__at_exit(struct kprof_agent_shm *shm);
/* A forked child. */
void control__forget(void);
/*
 * Called by the runtime's own injection: waits for a session for up to wait_ms, and starts it in
 * this thread.
 */
void control__start_here(struct kprof_agent_shm *shm, unsigned int wait_ms);

#endif
