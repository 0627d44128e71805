/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF programs that watch the scheduler: which are loaded, and in which order they begin. */
#ifndef KPROF_CAPTURE_ATTACH_WAITS_H
#define KPROF_CAPTURE_ATTACH_WAITS_H

struct attacher;
struct attacher_opts;
struct kprof_bpf;

/* Before loading: chooses the programs, or leaves them out, and sets their limits. */
int attach_waits_prepare(struct kprof_bpf *skel, const struct attacher_opts *opts);
/* After loading. 0 or -errno. */
int attach_waits_map(struct attacher *a);
void attach_waits_unmap(struct attacher *a);
/* Attaches those that were loaded. 0 or -errno. */
int attach_waits_start(struct kprof_bpf *skel);
/* Detaches those at switches and wakings. */
void attach_waits_stop(struct kprof_bpf *skel);

#endif
