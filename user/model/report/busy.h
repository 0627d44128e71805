/* SPDX-License-Identifier: BSD-2-Clause */
/* When devices worked for a process, for tables that are not of devices. */
#ifndef KPROF_REPORT_BUSY_H
#define KPROF_REPORT_BUSY_H

#include "model/timeline/timeline.h"

/*
 * Calls fn with every stretch of the selected range in which a device worked for a process: for
 * each device in order of time, without overlaps. fn returns non-zero to stop.
 */
int busy__each(struct kprof_capture *t,
	       int (*fn)(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns), void *ctx);

#endif
