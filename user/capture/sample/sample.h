/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in a recording: clocks that sample, unwind tables handed to the kernel, and the kernel's
 * records of stacks turned into frames, stacks and samples of the capture.
 *
 * Everything runs in the recording's thread, but the building of tables (unwind/modules.h) and the
 * looking up of names (symbol/symbolize).
 */
#ifndef KPROF_CAPTURE_SAMPLE_H
#define KPROF_CAPTURE_SAMPLE_H

#include "capture/probe/probe.h"
#include "capture/target/target.h"
#include "capture/record/record.h"
#include "kprof.h"

/* Would the kernel give this process a clock? 0, -errno. */
int sampler_try(void);

struct kprof_python;
struct stacks;

struct stacks_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct attacher *attacher; /* its programs are loaded already */
	uint32_t sample_hz;        /* 0: no samples */
	bool with_stack;           /* stacks at the entries of functions */
	bool gil_only; /* of samples, those of threads that hold the interpreter's lock */
};

int stacks__new(const struct stacks_opts *opts, struct stacks **out);
/* NULL is fine, as in all of these: no stacks are recorded. */
void stacks__free(struct stacks *s);
/*
 * Hands the process's mappings, as they are now, to the kernel. What can't be done now is tried
 * again.
 */
int stacks__look(struct stacks *s, struct target *t);
/* Have this process's mappings been handed over? Then their changes are followed here. */
bool stacks__looks_at(const struct stacks *s, const struct target *t);
/* It runs another program now, or is gone. */
void stacks__forget(struct stacks *s, struct target *t);
/* Waits for tables, for a second at most, and starts the clocks. */
int stacks__start(struct stacks *s);
/* What is due: tables that are ready, processes whose code has changed. */
int stacks__tend(struct stacks *s, uint64_t now_ns);
/* Stops the clocks. */
void stacks__stop(struct stacks *s);
/* The source that a record of the kernel's counts for, by its kind. */
uint32_t stacks__source(const struct stacks *s, uint32_t kind);
/* A record of the kernel's. */
int stacks__event(struct stacks *s, struct thread *th, const struct kprof_wire_stack *e);
/* A span was begun by that record: its stack may have come before, or comes next. */
int stacks__begun(struct stacks *s, struct thread *th, const struct kprof_wire_hdr *h,
		  uint64_t span);
/* Names for every frame, and metadata about it all. */
int stacks__finish(struct stacks *s);
void stacks__stats(const struct stacks *s, struct kprof_session_stats *out);
/* Where the process's interpreter keeps what; NULL: it was not found (yet), or there is none. */
const struct kprof_python *stacks__python_layout(const struct stacks *s, const struct target *t);

#endif
