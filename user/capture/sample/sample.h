/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in a recording: clocks that trigger samples, unwind tables that are handed to the kernel,
 * and the kernel's records of stacks, which become frames, stacks and samples of the capture.
 *
 * Everything runs in the recording's thread, except building the tables (unwind/modules.h) and
 * looking up names (symbol/symbolize).
 */
#ifndef KPROF_CAPTURE_SAMPLE_H
#define KPROF_CAPTURE_SAMPLE_H

#include "capture/probe/probe.h"
#include "capture/target/target.h"
#include "capture/record/record.h"
#include "kprof.h"
#include "util/ration.h"

/* Tries whether the kernel lets this process open a sampling clock. Returns 0 or -errno. */
int sampler_try(void);

struct kprof_python;
struct stacks;

struct stacks_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct attacher *attacher; /* its BPF programs must be loaded */
	uint32_t sample_hz;        /* 0: no samples */
	bool with_stack;           /* stacks at the entries of functions */
	bool waits;                /* stacks of threads that wait, and of those that wake them */
	bool gil_only;             /* record only samples of threads that hold Python's GIL */
	bool ask_jvm;              /* ask JVMs for the names of their compiled code */
	bool all_processes;        /* one thread builds tables, in the background */
	bool few;                  /* only so many frames and stacks as fit in some MiB */
	/*
	 * It goes on for long: names are looked up meanwhile, a file at a time. They and the thread
	 * that builds tables hold to stacks__set_pace(); until then tables to .pace_ns, names to a
	 * fifth of it. 0: to nothing.
	 */
	bool steady;
	uint64_t pace_ns;
	struct ration *reading; /* what new processes are read by */
	uint64_t kernel_bytes;  /* for tables and mappings, at most; 0: no limit of its own */
	/*
	 * Takes the stack at an entry, with the number that stacks__begun() was told. NULL: it is
	 * an attribute of the span with that number.
	 */
	int (*taken)(void *ctx, uint64_t number, uint32_t stack);
	void *ctx;
};

int stacks__new(const struct stacks_opts *opts, struct stacks **out);
/*
 * s may be NULL, here and below except in stacks__source() and stacks__event(): then no stacks are
 * recorded.
 */
void stacks__free(struct stacks *s);
/*
 * Hands the process's current mappings to the kernel. A process that cannot be read now is tried
 * again later.
 */
int stacks__look(struct stacks *s, struct target *t);
/* The same if there is time for it (.reading). 1: there is none, later. */
int stacks__look_by(struct stacks *s, struct target *t, enum ration_use use);
/*
 * Have this process's mappings been handed to the kernel? Then this part also follows their
 * changes.
 */
bool stacks__looks_at(const struct stacks *s, const struct target *t);
/* Forgets the process: it runs another program, or has ended. */
void stacks__forget(struct stacks *s, struct target *t);
/*
 * Gives up memory that only saves work: a stack that was written to the capture is written once
 * more when it comes again.
 */
void stacks__shrink(struct stacks *s);
/* Waits for unwind tables, for at most a second, and starts the clocks. */
int stacks__start(struct stacks *s);
/* Periodic work: hands over tables that are ready, and reads processes whose code has changed. */
int stacks__tend(struct stacks *s, uint64_t now_ns);
/* A descriptor to which something comes when a table is ready for stacks__tend(). */
int stacks__fd(const struct stacks *s);
/* The mean period of the clocks in ns. 0: there are none. */
uint64_t stacks__period(const struct stacks *s);
/* Changes it. A sample stands for the time since the one before, as ever. */
void stacks__set_period(struct stacks *s, uint64_t period_ns);
/* How much CPU time in a second what can wait may take, in ns. */
struct stacks_pace {
	uint64_t tables_ns, names_ns;
};
/* Where .pace_ns asked for that. Tables wait while a capture's end is near. */
void stacks__set_pace(struct stacks *s, const struct stacks_pace *pace);
/*
 * Does the capture end in about a second, or has the one before just ended? By when the last two
 * did, which stacks__names_so_far() notes.
 */
bool stacks__border_is_near(const struct stacks *s, uint64_t now_ns);
/* How much was used for tables at such a pace. */
uint64_t stacks__paced_ns(const struct stacks *s);
/* Stops the clocks. */
void stacks__stop(struct stacks *s);
/* The source that a record (of kind KPROF_WIRE_SAMPLE or _STACK) counts for. */
uint32_t stacks__source(const struct stacks *s, const struct kprof_wire_hdr *h);
/* Handles a stack that the BPF programs recorded. */
int stacks__event(struct stacks *s, struct thread *th, const struct kprof_wire_stack *e);
/*
 * The record h has begun a span, with this number. The record of the span's stack was read before
 * h, or comes next.
 */
int stacks__begun(struct stacks *s, struct thread *th, const struct kprof_wire_hdr *h,
		  uint64_t span);
/*
 * Records the names of the frames met since the last time, without source lines. Frames of a file
 * whose table is being built get theirs the next time.
 */
int stacks__names_so_far(struct stacks *s);
/* Records metadata about samples and walks so far. */
int stacks__summary(const struct stacks *s);
/* Records names for every frame, and metadata about samples and walks. */
int stacks__finish(struct stacks *s);
void stacks__stats(const struct stacks *s, struct kprof_session_stats *out);
/* The layout of the process's interpreter in memory; NULL: not found (yet), or none. */
const struct kprof_python *stacks__python_layout(const struct stacks *s, const struct target *t);

#endif
