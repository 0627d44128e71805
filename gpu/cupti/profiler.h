/* SPDX-License-Identifier: BSD-2-Clause */
/* Between profiler.c, which calls CUPTI's profiler, and metrics.c, which says when. */
#ifndef KPROF_GPU_CUPTI_PROFILER_H
#define KPROF_GPU_CUPTI_PROFILER_H

#include "gpu/cupti/cupti.h"

#define PROFILER_RANGES 100 /* that are measured before their values are read */

struct profiler_device {
	enum { PROFILER_UNUSED, PROFILER_OPEN, PROFILER_OVER } state;
	uint32_t ordinal, context_id;
	void *context;
	uint32_t gone; /* the program destroys the context */
	void *host, *object;
	bool enabled, started, pushed;
	/* what the device has counters for: used by .host as long as that is there */
	uint8_t *availability;
	uint8_t *config, *data;
	size_t availability_bytes, config_bytes, data_bytes;
	unsigned int nr; /* ranges of this round; the last is open where .pushed */
	uint64_t begin_ns[PROFILER_RANGES], end_ns[PROFILER_RANGES]; /* CLOCK_MONOTONIC; 0: none */
};

/* A session begins. The names stay the caller's, and must live as long as it. */
void profiler__use(const struct cupti_functions *f, const char **names, size_t nr);
/* Calls a function of the profiler's; false: it failed, which has been told. */
bool profiler__works(struct profiler_device *d, enum profiler_call id, void *parameters);
int profiler__call(struct profiler_device *d, enum profiler_call id, void *parameters);
/* Tells why nothing is measured, in three pieces, if it is the session's first failure. False. */
bool profiler__fail(enum kprof_agent_metrics_reason reason, const char *what, const char *more,
		    const char *last);
bool profiler__gone(void); /* the same, of a context that was destroyed */
void profiler__set_state(enum kprof_agent_metrics state);

/* Has CUPTI measure the metrics in the device's .context, once it is started. */
bool profiler__open(struct profiler_device *d);
void profiler__close(struct profiler_device *d);
/* Begins a round of ranges, with the first of them. */
bool profiler__start(struct profiler_device *d);
bool profiler__push(struct profiler_device *d);
bool profiler__pop(struct profiler_device *d);

/* A thread of the program is about to destroy the context. */
void profiler__context_ends(struct profiler_device *d);

#endif
