/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device's work as far as it can be seen from the host: it lies between the call that launched it
 * and the end of a call that waited for it. When in between the device worked, and on what, is not
 * known. So these are activities of the type gpu_approximate, never kernels. There is one object
 * per process and program.
 */
#ifndef KPROF_CAPTURE_APPROXIMATE_H
#define KPROF_CAPTURE_APPROXIMATE_H

#include <stdint.h>

#include "catalog/runtime.h"
#include "store/store.h"

struct approximate;

int approximate__new(struct store_writer *store, uint32_t pid, struct approximate **out);
void approximate__free(struct approximate *a);

/* A call has begun that queues work (role LAUNCH, COPY, SET) on a stream. */
void approximate__work(struct approximate *a, enum device_role role, uint64_t stream,
		       uint64_t time_ns);
/* An event was recorded: it marks the work queued on the stream so far. */
int approximate__record(struct approximate *a, uint64_t event, uint64_t stream, uint64_t time_ns);
/*
 * A call that waits (role WAIT_*) has returned. handle: the stream or event that it waited for.
 * reason: why no more is known of the work; recorded with each activity.
 */
int approximate__waited(struct approximate *a, enum device_role role, uint64_t handle,
			uint64_t time_ns, const char *reason);

#endif
