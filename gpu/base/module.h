/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device runtime as the agent sees it: one table of functions per runtime, all of them in
 * modules.c.
 *
 * Every function is called by the agent's own thread, one at a time, never with a lock held. A
 * module may be asked to start and stop any number of times. Records go to batch.h, from any
 * thread.
 */
#ifndef KPROF_GPU_MODULE_H
#define KPROF_GPU_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/activity.h"
#include "kprof/agent.h"

/* Why device activities cannot be recorded, for shm.reason and shm.detail. */
struct gpu_report {
	enum kprof_agent_reason reason;
	char detail[256];
};
/*
 * Sets reason and words, joined of pieces up to a NULL, cut to fit. Returns err, for `return
 * gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION, "CUPTI ", number, " is not known", NULL)`.
 */
int gpu_report(struct gpu_report *r, int err, enum kprof_agent_reason reason, ...)
	__attribute__((sentinel));

struct gpu_module {
	enum kprof_agent_runtime runtime;
	/*
	 * Is the runtime in this process, and can it be observed? Changes nothing that the process
	 * could notice. 0: start() is worth a try. -EAGAIN: not loaded (yet); called again every
	 * 100 ms while a session wants to record. Other errors: not in this session; r says why.
	 */
	int (*probe)(struct gpu_report *r);
	/*
	 * Begins to record. types: bits 1 << enum kprof_activity; options: KPROF_AGENT_OPT_*. On
	 * error nothing is left enabled. Writes DEVICE and CONTEXT records of the devices and
	 * contexts that are known already.
	 */
	int (*start)(uint64_t types, uint32_t options, struct gpu_report *r);
	/*
	 * Called every 100 ms while recording: fetches finished activities, without waiting for
	 * others. An error ends the recording, and r says why; stop() is not called then. May be
	 * NULL.
	 */
	int (*flush)(struct gpu_report *r);
	/*
	 * Stops recording; all that was recorded has been appended when it returns. May take 2 s at
	 * most.
	 */
	void (*stop)(void);
	/*
	 * Called after stop(): releases what start() took from the process, as far as that is safe.
	 * May take 1 s at most. May be NULL.
	 */
	void (*release)(void);
	/*
	 * Called instead of stop() when the process calls exit() while a session records. The
	 * exiting thread waits meanwhile: appends the records that can be fetched at once. May take
	 * 0.5 s at most. May be NULL.
	 */
	void (*at_exit)(void);
	/*
	 * Called in a forked child: forgets everything, but frees and unlocks nothing that belongs
	 * to the parent. May be NULL.
	 */
	void (*forked)(void);
};

#define GPU_MODULES_MAX 8
extern const struct gpu_module *const gpu_modules[]; /* NULL-terminated, GPU_MODULES_MAX at most */

/*
 * The head of the memory file. Modules set in it the versions of their tool interface, runtime and
 * driver, and .clock, .device_dropped and .buffers. Never NULL when called by a module.
 */
struct kprof_agent_shm *gpu_shm(void);
/*
 * Is the calling thread initializing the runtime? Then no function of the runtime may be called
 * that needs it initialized.
 */
bool gpu_in_injection(void);
/* CLOCK_MONOTONIC of the machine, ns; not before gpu_find_clock(). */
uint64_t gpu_now_ns(void);
/* Where the process starts the agent, also in a child of it. */
void gpu_find_clock(void);
/*
 * Around what a runtime's thread does for the agent for longer than a moment: its CPU time is added
 * to what the agent costs. Begin returns what to pass to end.
 */
uint64_t gpu_cpu_begin(void);
void gpu_cpu_end(uint64_t begin_ns);

/*
 * Makes the memory file and the agent's thread, unless they exist; returns 0 or a negative errno.
 * The exported kprof_agent_start() calls this.
 */
int gpu_start(void);
/*
 * The same where a runtime loads the agent, in the thread that initializes the runtime. On success
 * gpu_wait_for_session() has to follow, which is given held. Until then a thread that was made here
 * does nothing: else it might start a session before the runtime works, and give up.
 */
int gpu_start_in_runtime(bool *held);
/* Waits for a session, for as long as kprof asked for, and starts it in this thread. */
void gpu_wait_for_session(bool held);

#endif
