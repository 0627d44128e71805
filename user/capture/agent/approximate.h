/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device's work as the host alone can see it: between the call that launched it, and the end of a
 * call that waited for it. Nothing is known of where in between the device was at work, or on what:
 * activities of the type gpu_approximate, never kernels.
 */
#ifndef KPROF_CAPTURE_APPROXIMATE_H
#define KPROF_CAPTURE_APPROXIMATE_H

#include <stdint.h>

#include "catalog/runtime.h"
#include "store/store.h"

struct approximate;

int approximate__new(struct store_writer *store, struct approximate **out);
void approximate__free(struct approximate *a);

/* A call has begun that queues work (role LAUNCH, COPY, SET) on a stream. */
int approximate__work(struct approximate *a, uint32_t pid, enum device_role role, uint64_t stream,
		      uint64_t time_ns);
/* An event marks where the stream is. */
int approximate__record(struct approximate *a, uint32_t pid, uint64_t event, uint64_t stream,
			uint64_t time_ns);
/*
 * A call that waited has returned (role WAIT_…). handle: of the stream or event. reason: why no
 * more is known; recorded with each.
 */
int approximate__waited(struct approximate *a, uint32_t pid, enum device_role role, uint64_t handle,
			uint64_t time_ns, const char *reason);
/* The process is gone, or runs another program. */
void approximate__forget(struct approximate *a, uint32_t pid);
/* Calls that launched work whose end was not waited for. */
uint64_t approximate__open(const struct approximate *a);

#endif
