/* SPDX-License-Identifier: BSD-2-Clause */
/* What metrics.c keeps, for exposition.c, which writes it. */
#ifndef KPROF_CMD_DAEMON_WEB_REGISTRY_H
#define KPROF_CMD_DAEMON_WEB_REGISTRY_H

#include <stdbool.h>

#include "cmd/daemon/web/metrics.h"

struct series {
	char labels[METRICS_LABELS][METRICS_LABEL_BYTES + 1];
	bool other;       /* of all that have no place of their own */
	uint64_t heard_s; /* when it was last set or added to */
	double value;
	/* Of a histogram: observations in all, their sum, and how many fell into each bucket. */
	uint64_t count;
	double sum;
	uint64_t buckets[]; /* one for each bound */
};

struct family {
	struct series **series;
	size_t nr;
};

struct metrics {
	struct family families[METRICS_NR];
	uint64_t now_s;
};

size_t metrics__nr_bounds(const struct metrics_family *f);

#endif
