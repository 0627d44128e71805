/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts the agent (gpu/, a shared library) into a process that runs already, by ptrace.
 *
 * One thread of the target is stopped at a place where it holds no lock of the loader or of malloc,
 * and made to call dlopen() and kprof_agent_start() before it goes on where it was. A signal frame
 * on its stack holds all that is needed to go on: from the first changed register on, the thread
 * finishes by itself, even when kprof is killed in between. The top of inject.c has the details.
 */
#ifndef KPROF_CAPTURE_INJECT_H
#define KPROF_CAPTURE_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct inject_result {
	/* how long threads of the target were kept from their own work, all tries together */
	uint64_t held_ns;
	bool was_loaded; /* the library was in the process already, and was only started again */
	/* why it failed, as one sentence without a full stop; "": it did not fail */
	char reason[256];
};

/* An injection that is under way, in a thread of its own. */
struct injection;
/*
 * Begins what inject_agent() does. No other thread of this process may wait for children of any
 * number meanwhile (waitpid(-1)). Returns 0 or a negative errno.
 */
int injection__start(pid_t pid, const char *library, struct injection **out);
/* Has it ended? */
bool injection__over(const struct injection *i);
/* Waits for its end, and frees it. Returns what inject_agent() would, and sets the error. */
int injection__finish(struct injection *i, struct inject_result *out);
/*
 * Nobody is interested any more (i may be NULL): it ends as soon as it may, which is waited for so
 * long at most.
 */
void injection__abandon(struct injection *i, unsigned int wait_ms);

/*
 * Loads `library` (a file in kprof's own mount namespace) into process `pid` (of kprof's PID
 * namespace) and has it call kprof_agent_start(). Blocks for at most half a minute; usually some
 * milliseconds.
 *
 * 0: loaded and started. Otherwise a negative errno, *out says why, and so does the error (cause
 * and hint):
 *   -ESRCH      the process is gone, or executed another program meanwhile
 *   -EACCES     not permitted
 *   -EBUSY      another program traces it, or it is stopped
 *   -EAGAIN     no thread was seen at a place where it could be used; later may go better
 *   -ETIMEDOUT  the call was begun but has not ended: it goes on by itself, and may yet succeed
 *   -ENOTSUP    this process cannot be helped (static, 32-bit, musl, seccomp, …)
 *   others      a step failed; everything is as before
 */
int inject_agent(pid_t pid, const char *library, struct inject_result *out);
/*
 * Checks, without touching the process, whether inject_agent() can be tried on it. Returns 0 and
 * whether the library is in the process already, or sets an error and returns a negative errno as
 * above.
 */
int inject_check(pid_t pid, bool *is_loaded);

#endif
