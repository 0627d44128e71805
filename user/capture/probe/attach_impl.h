/* SPDX-License-Identifier: BSD-2-Clause */
/* The attacher, for the files that it consists of. */
#ifndef KPROF_CAPTURE_ATTACH_IMPL_H
#define KPROF_CAPTURE_ATTACH_IMPL_H

#include "capture/probe/attach.h"
#include "kprof.skel.h"

struct attacher {
	struct kprof_bpf *skel;
	struct bpf_program *programs[ATTACH_NR];
	bool single;
	uint32_t nr_refused; /* places at which the kernel refused a probe */
};

/* attach_counters.c. Before loading: which counters are read at hits. 0 or -errno. */
int attach_counters_prepare(struct attacher *a, const struct attacher_opts *opts);

#endif
