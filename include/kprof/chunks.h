/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts the captures of a recording that was rotated (kprof_session_rotate()) together again: what
 * comes out is as if there had been one capture all the time. They may be of several recordings on
 * one boot of a machine that followed each other, or overlapped for a moment.
 */
#ifndef KPROF_CHUNKS_H
#define KPROF_CHUNKS_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_join_opts {
	size_t sz;          /* sizeof(struct kprof_join_opts), for compatibility */
	const char *output; /* path of the new capture */
	uint32_t uid, gid;  /* whose the file is to be, if set_owner is set */
	bool set_owner;
	bool skip_gone; /* go on without those that are not there (any more) when they are read */
	/*
	 * Only captures with a part in this time (CLOCK_MONOTONIC), each as a whole; 0: from the
	 * first one, to the last one.
	 */
	uint64_t from_mono_ns, to_mono_ns;
	/* How many of the captures are done. Not 0: stop with -ECANCELED. NULL: nobody is told. */
	int (*progress)(void *ctx, size_t done, size_t total);
	void *ctx;
};

struct kprof_join_info {
	uint64_t start_mono_ns, end_mono_ns; /* the window of what was written */
	size_t joined;                       /* captures that are in it */
	size_t missing;    /* places between two of them of which there is none: gaps say so */
	size_t incomplete; /* captures that were cut short */
	size_t gone;       /* captures that were not there (any more): skip_gone */
};

/*
 * Joins the captures, in whatever order they are given. Spans and waits that were split are one
 * again, counts are added up, processes and threads are there once. Where one is missing, or was
 * cut short, there is a gap of everything. Where two recordings overlap, the later one begins where
 * its window does; counts of sources then count what was in both twice. info may be NULL. -EINVAL:
 * there is none in that time, one is no capture, or they are of several boots. -ENOENT: one is not
 * there; with skip_gone, none is.
 */
int kprof_join(const char *const *captures, size_t nr, const struct kprof_join_opts *opts,
	       struct kprof_join_info *info);

#ifdef __cplusplus
}
#endif

#endif
