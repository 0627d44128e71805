/* SPDX-License-Identifier: BSD-2-Clause */
/* How long devices worked for what each operator has launched. */
#ifndef KPROF_REPORT_LAUNCHED_H
#define KPROF_REPORT_LAUNCHED_H

#include "model/correlate/correlate.h"
#include "model/timeline/timeline.h"
#include "util/map64.h"

struct launched_work {
	uint64_t ns;
	uint32_t device; /* ordinal, of the first activity */
};

struct launched {               /* all zero: empty */
	struct correlate *corr; /* what has launched each activity */
	struct map64 by_span;   /* id → index + 1 */
	struct launched_work *list;
	size_t nr, cap;
};

/* Reads all activities of the capture. 0, or negative with the error set. */
int launched__read(struct kprof_capture *t, struct launched *out);
/* Of the operator or annotation with this span id, not of what it calls in turn. NULL: nothing. */
const struct launched_work *launched__of(const struct launched *l, uint64_t span);
void launched__free(struct launched *l);

#endif
