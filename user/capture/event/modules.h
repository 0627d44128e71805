/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of PyTorch's modules (torch.nn.Module) that threads are in. The kernel's programs find
 * them on a thread's Python stack at each event (bpf/modules.h); here they become spans, each from
 * the first event that was met inside of the call to the end of the last one. No code runs in the
 * target, and a call without any event inside is not seen.
 *
 * Modules get names: "Linear_0" for the first of class Linear that was met in its process, and the
 * attribute path from the module that it was met in ("layers.3.attn"), which is read from the
 * process's memory.
 */
#ifndef KPROF_CAPTURE_MODULES_H
#define KPROF_CAPTURE_MODULES_H

#include "capture/event/thread_names.h"
#include "capture/probe/probe.h"
#include "capture/span/spans.h"
#include "kprof/modules.h"

/* Modules with names, of all processes together; what is called beyond has a common name. */
#define MODULES_MOST 65536

struct attacher;
struct modules_seen;

struct modules_seen_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct attacher *attacher; /* its programs were loaded with .modules */
	struct spans *spans;
	/* The layout of the process's interpreter in memory; NULL: not found (yet), or none. */
	const struct kprof_python *(*layout)(void *ctx, struct target *t);
	void *ctx;
};

int modules_seen__new(const struct modules_seen_opts *opts, struct modules_seen **out);
/* m may be NULL, in all of these. */
void modules_seen__free(struct modules_seen *m);
/* Looks for PyTorch in processes that are new, or have not imported it so far. */
int modules_seen__tend(struct modules_seen *m, uint64_t now_ns);
/* The source that records count for. */
uint32_t modules_seen__source(const struct modules_seen *m);
int modules_seen__event(struct modules_seen *m, struct thread *th,
			const struct kprof_wire_modules *e);
/* The process runs another program, or has ended. */
void modules_seen__forget(struct modules_seen *m, struct target *t);
/* Writes the metadata "modules", and warns of what could not be recorded. */
int modules_seen__account(struct modules_seen *m);

#endif
