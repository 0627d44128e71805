/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts captures together into one, of one machine or of many: the ranks of a training on one
 * timeline.
 *
 * Each machine has a monotonic clock of its own. The difference of two is found from collectives of
 * which ranks on both were recorded: no rank is done before all have begun. So the difference has
 * bounds, at many times, and the clock's offset and drift lie between them; the error is what they
 * leave open. Without such collectives, the machines' Unix time decides, whose error is not known.
 *
 * In what is put together, times are those of one machine's clock. PIDs and TIDs of the first
 * capture's machine stay; those of others get a number before their digits: with 10,000,000 added,
 * 20001234 is PID 1234 of the third machine.
 */
#ifndef KPROF_MERGE_H
#define KPROF_MERGE_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kprof_merge_clock {
	KPROF_MERGE_CLOCK_ITS_OWN,     /* the merged capture has this machine's clock */
	KPROF_MERGE_CLOCK_COLLECTIVES, /* bounded by collectives */
	KPROF_MERGE_CLOCK_UNIX,        /* by Unix time: the error is not known */
};

/* "its own", "collectives", "unix": as in the metadata "merged". */
const char *kprof_merge_clock_name(enum kprof_merge_clock clock);

struct kprof_merge_machine {
	const char *host; /* "": not known */
	size_t captures;
	uint32_t first_pid; /* added to its PIDs and TIDs */
	enum kprof_merge_clock clock;
	int64_t offset_ns; /* to be added to its clock, in the middle of the recording */
	double drift_ppm;  /* how much that grows: microseconds in each second */
	/* Of its times, at most, as long as it was recorded; 0: its own, or not known. */
	uint64_t error_ns;
	uint64_t collectives; /* that bounded it */
	/*
	 * The bounds contradict each other by so much, as if the clock's speed had changed on the
	 * way. It is a part of the error.
	 */
	uint64_t slack_ns;
};

struct kprof_merge_opts {
	size_t sz;          /* sizeof(struct kprof_merge_opts), for compatibility */
	const char *output; /* path of the new capture */
	uint32_t uid, gid;  /* whose the file is to be, if set_owner is set */
	bool set_owner;
	/* Told of each machine, the first capture's first. Valid during the call. NULL: nobody. */
	void (*machine)(void *ctx, const struct kprof_merge_machine *m);
	/* How many bytes of the captures were copied. Not 0: stop with -ECANCELED. NULL: nobody. */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

/*
 * Captures of one machine must not have the same process at the same time. -EINVAL: they do, or two
 * paths are one file, or one is no capture or has been merged; -ERANGE: more machines than PIDs
 * allow. Nothing is left of an output that could not be written to its end, but where the disk is
 * full at the very end: then it is what could be written.
 */
int kprof_merge(const char *const *paths, size_t nr, const struct kprof_merge_opts *opts);

#ifdef __cplusplus
}
#endif

#endif
