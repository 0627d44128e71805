/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory file that an agent and kprof share (kprof/agent.h), seen from kprof.
 *
 * It belongs to a process that is not trusted, and could be cut short or filled with anything at
 * any time. So it is read and written by pread and pwrite, which fail where touching mapped memory
 * would end kprof with SIGBUS; the one page that is mapped is for the futexes alone, and only the
 * kernel touches it.
 */
#ifndef KPROF_CAPTURE_AGENT_MEMORY_H
#define KPROF_CAPTURE_AGENT_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process.h"
#include "kprof/agent.h"

struct agent_memory;

/*
 * Opens the memory file that the process itself made (a forked child has its parent's mapped: that
 * one is not looked at). -ENOENT: it has none. -EPROTO: it has one that this kprof does not
 * understand; other errors; the error says which.
 */
int agent_memory__open(pid_t pid, pid_t ns_pid, const struct proc_maps *maps,
		       struct agent_memory **out);
/* The same for a file that is open already, which is taken over also on error. */
int agent_memory__open_fd(int fd, pid_t ns_pid, struct agent_memory **out);
void agent_memory__close(struct agent_memory *m);

/* The head as it is now; detail[] ends with a NUL. */
int agent_memory__head(const struct agent_memory *m, struct kprof_agent_shm *out);
/* Just .state and .recording; -EIO … */
int agent_memory__state(const struct agent_memory *m, uint32_t *state, uint32_t *recording);
int agent_memory__slot(const struct agent_memory *m, uint32_t i, struct kprof_agent_slot *out);

/* The first heartbeat is sent with it. */
/* Before it: only these runtimes' modules (bits 1 << enum kprof_agent_runtime) shall record. */
int agent_memory__want(struct agent_memory *m, uint32_t modules);
int agent_memory__record(struct agent_memory *m, uint32_t session, uint64_t types,
			 uint32_t options);
int agent_memory__command(struct agent_memory *m, enum kprof_agent_command command);
void agent_memory__beat(const struct agent_memory *m, uint64_t now_ns);
/* Waits until the state is another one, or the time is over. */
void agent_memory__wait(const struct agent_memory *m, uint32_t state, uint32_t timeout_ms);

/*
 * Heartbeats, from a thread that does nothing else: however slowly kprof is polled, its agents know
 * that it lives.
 */
struct agent_pulse;
int agent_pulse__new(struct agent_pulse **out);
/* Ends the thread. NULL is fine. */
void agent_pulse__free(struct agent_pulse *p);
int agent_pulse__add(struct agent_pulse *p, const struct agent_memory *m);
/* Before the memory is closed. */
void agent_pulse__remove(struct agent_pulse *p, const struct agent_memory *m);

#endif
