/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to the memory file that an agent and kprof share (kprof/agent.h), on kprof's side.
 *
 * The file belongs to a process that is not trusted: it could be truncated, or filled with
 * anything, at any time. So it is accessed by pread() and pwrite(), which merely fail where an
 * access to mapped memory would end kprof with SIGBUS. One page is mapped for the futexes, and only
 * the kernel accesses that.
 */
#ifndef KPROF_CAPTURE_AGENT_MEMORY_H
#define KPROF_CAPTURE_AGENT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process.h"
#include "kprof/agent.h"

struct agent_memory;

/*
 * Opens the memory file that the process itself made; the one of its parent, which a forked child
 * still has mapped, is ignored. -ENOENT: the process has none, or is making it. -EPROTO: it has one
 * that this kprof does not understand. Other errors may occur; the error text says which.
 */
int agent_memory__open(pid_t pid, pid_t ns_pid, const struct proc_maps *maps,
		       struct agent_memory **out);
void agent_memory__close(struct agent_memory *m);

/*
 * Makes the agent this kprof's, by a lock on the file that the kernel releases when kprof ends, by
 * kill -9 too. false: it is another's.
 */
bool agent_memory__claim(const struct agent_memory *m);
void agent_memory__release(const struct agent_memory *m);

/* Reads the head as it is now; detail[] and metrics_detail[] end with a NUL. */
int agent_memory__head(const struct agent_memory *m, struct kprof_agent_shm *out);
/* Reads only .state; LEFT if that cannot be read. */
uint32_t agent_memory__state(const struct agent_memory *m);
int agent_memory__slot(const struct agent_memory *m, uint32_t i, struct kprof_agent_slot *out);
/* The same without its data. */
int agent_memory__slot_head(const struct agent_memory *m, uint32_t i, struct kprof_agent_slot *out);

/*
 * Sends the command RECORD, and the first heartbeat. modules: which ones record (bits 1 << enum
 * kprof_agent_runtime).
 */
int agent_memory__record(struct agent_memory *m, uint32_t session, uint32_t modules, uint64_t types,
			 uint32_t options);
/* What a RECORD with OPT_METRICS is about; to be called before it. Forgets an earlier answer. */
int agent_memory__metrics(struct agent_memory *m, const char *names, uint64_t range_ns);
/* The same with OPT_INPUTS. */
int agent_memory__layout(struct agent_memory *m, const struct kprof_agent_layout *layout);
/* … and the name of the annotations that operators are to be inside of. */
int agent_memory__within(struct agent_memory *m, const char *name);
int agent_memory__command(struct agent_memory *m, enum kprof_agent_command command);
void agent_memory__beat(const struct agent_memory *m, uint64_t now_ns);
/* Waits until .state is no longer this one, or the time is over. */
void agent_memory__wait(const struct agent_memory *m, uint32_t state, uint32_t timeout_ms);

/*
 * Sends heartbeats to agents, in a thread that does nothing else: even if the recording is rarely
 * polled, agents know that kprof lives.
 */
struct agent_pulse;
int agent_pulse__new(struct agent_pulse **out);
/* Ends the thread. p may be NULL. */
void agent_pulse__free(struct agent_pulse *p);
int agent_pulse__add(struct agent_pulse *p, const struct agent_memory *m);
/* To be called before the memory is closed. */
void agent_pulse__remove(struct agent_pulse *p, const struct agent_memory *m);

#endif
