/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: what the agent's thread (agent.c) calls to carry out kprof's commands (control.c). */
#ifndef KPROF_GPU_AGENT_H
#define KPROF_GPU_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/agent.h"

/* ---- sessions: only one thread at a time may call these (control_lock in agent.c) ---- */

/*
 * Looks at the command, and carries it out. Returns for how many ms to wait before the next look;
 * -1: for ever; -2 (CONTROL_LEAVE): leave.
 */
int control__step(struct kprof_agent_shm *shm);
#define CONTROL_LEAVE (-2)
/* Sets shm->state, and wakes who waits for a change of it. */
void control__set_state(struct kprof_agent_shm *shm, enum kprof_agent_state state);
/* Ends the session, and releases what the modules took from the process. */
void control__leave(struct kprof_agent_shm *shm);
/* The process calls exit(). */
void control__at_exit(struct kprof_agent_shm *shm);
/* In a forked child: forgets everything. */
void control__forget(void);
/*
 * Called where the runtime itself loaded the agent: waits for a session for up to wait_ms, and
 * starts it in this thread.
 */
void control__start_here(struct kprof_agent_shm *shm, unsigned int wait_ms);

#endif
