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

/* Why something cannot be had, for shm.reason and shm.detail. */
struct gpu_report {
	enum kprof_agent_reason reason;
	char detail[256];
};
/*
 * Sets reason and words, joined of up to four pieces (NULL: none), cut to fit. Returns err, for
 * `return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION, "CUPTI ", number, " is not known",
 * NULL)`.
 */
int gpu_report(struct gpu_report *r, int err, enum kprof_agent_reason reason, const char *a,
	       const char *b, const char *c, const char *d);

struct gpu_module {
	const char *name;
	enum kprof_agent_runtime runtime;
	/*
	 * Is the runtime in this process, and can it be observed? Changes nothing that the process
	 * could notice. 0: start() is worth a try. -EAGAIN: not loaded (yet); asked again each 100
	 * ms while a session wants to record. Other errors: never, for this session; r says why.
	 */
	int (*probe)(struct gpu_report *r);
	/*
	 * Begins to record the types asked for: bits 1 << enum kprof_activity, and
	 * KPROF_AGENT_OPT_*. On error nothing is left enabled. Writes DEVICE and CONTEXT records of
	 * what is known already.
	 */
	int (*start)(uint64_t types, uint32_t options, struct gpu_report *r);
	/*
	 * Each 100 ms while recording: makes finished activities come forward, without waiting. May
	 * be NULL.
	 */
	void (*flush)(void);
	/*
	 * Nothing is recorded after it; everything recorded before it has been appended. Bounded: 2
	 * s.
	 */
	void (*stop)(void);
	/*
	 * After stop(): gives back what start() took from the process, as far as that is safe.
	 * Bounded: 1 s. May be NULL.
	 */
	void (*release)(void);
	/*
	 * The process calls exit() while a session records; called instead of stop(), while the
	 * exiting thread waits: what can be had at once is appended. Bounded: 0.5 s. May be NULL.
	 */
	void (*at_exit)(void);
	/*
	 * In a forked child: forget everything, free and unlock nothing that is the parent's. May
	 * be NULL.
	 */
	void (*forked)(void);
};

#define GPU_MODULES_MAX 8
extern const struct gpu_module *const gpu_modules[]; /* NULL-terminated, GPU_MODULES_MAX at most */

/*
 * Head of the memory file: modules set the versions of their tool interface, runtime and driver,
 * clock, device_dropped, buffers. Never NULL in a module.
 */
struct kprof_agent_shm *gpu_shm(void);
/*
 * The runtime is being initialized by the thread that asks: it may not be asked for anything that
 * needs it ready.
 */
bool gpu_in_injection(void);
/* CLOCK_MONOTONIC. */
uint64_t gpu_now_ns(void);

/*
 * Makes the memory file and the thread if they are not there; 0 or a negative errno. What the
 * exported kprof_agent_start() does; where the runtime itself loads the agent, its entry point
 * calls it, …
 */
int gpu_start(void);
/*
 * … and then this: holds the thread that initializes the runtime for as long as kprof asked for,
 * and starts the session.
 */
void gpu_wait_for_session(void);

#endif
