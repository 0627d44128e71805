/* SPDX-License-Identifier: BSD-2-Clause */
/* The attacher, for the files that it consists of. */
#ifndef KPROF_CAPTURE_ATTACH_IMPL_H
#define KPROF_CAPTURE_ATTACH_IMPL_H

#include "capture/probe/attach.h"
#include "kprof.skel.h"
#include "kprof/wait.h"

struct attacher {
	struct kprof_bpf *skel;
	struct bpf_program *programs[ATTACH_NR];
	bool single;
	bool within;              /* annotations, or a function, are around what is recorded */
	bool ranges;              /* … and they are annotations */
	struct attach_left *left; /* not taken yet, by time */
	size_t nr_left, cap_left;
	uint32_t nr_refused; /* places at which the kernel refused a probe */
	uint64_t map_bytes, map_bytes_at_ns;
	struct kprof_wait_bucket *wait_buckets; /* the kernel's; NULL: waits are not recorded */
};

/* attach_within.c. Before loading. 0 or -errno. */
int attach_within_prepare(struct attacher *a, const struct attacher_opts *opts);
/* No thread of the process is inside any more; pid 0 or less: of all. */
void attach_within_leave(struct attacher *a, pid_t pid);
/*
 * Probes of the process were placed, or removed and placed again: where they say of ranges, none of
 * its threads is inside.
 */
void attach_within_placed(struct attacher *a, enum attach_program program, pid_t pid,
			  const struct attach_point *points, size_t nr);

/* attach_counters.c. Before loading: which counters are read at hits. 0 or -errno. */
int attach_counters_prepare(struct attacher *a, const struct attacher_opts *opts);

#endif
