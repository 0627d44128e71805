/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits in a recording: what the kernel's programs tell of threads off a CPU (kprof/wait.h), and
 * how long each thread ran, was runnable and was blocked.
 */
#ifndef KPROF_CAPTURE_WAITS_H
#define KPROF_CAPTURE_WAITS_H

#include "capture/probe/probe.h"
#include "capture/record/record.h"
#include "capture/target/target.h"
#include "kprof/wait.h"

struct waits;

struct waits_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct attacher *attacher; /* its BPF programs must be loaded */
	uint64_t min_wait_ns;
	/*
	 * The recording's window is a part of the time from waits__open() to waits__close(): waits
	 * are cut to it, and how long threads ran and waited in all is not recorded.
	 */
	bool part;
	void *ctx;
	/* Are waits of the thread with this number (PID << 32 | TID) recorded? NULL: of all. */
	bool (*wants)(void *ctx, uint64_t pid_tgid);
	/* The thread of this process with this id, which is added if it is new; NULL: no memory. */
	struct thread *(*thread)(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns);
};

int waits__new(const struct waits_opts *opts, struct waits **out);
void waits__free(struct waits *w); /* NULL is fine */
/* Begins to count; returns the time from which on everything counts, which has just passed. */
uint64_t waits__open(struct waits *w);
/*
 * Ends it, if waits__give_up() has not; returns the time up to which everything has been counted,
 * which has just passed.
 */
uint64_t waits__close(struct waits *w);
/* Ends it before the recording ends. Its programs are removed by waits__tend(). */
void waits__give_up(struct waits *w);
/*
 * Begins anew, in a file that has just begun, after they were given up; *from_ns: from then on.
 * -EAGAIN: what was given up has not been finished yet.
 */
int waits__resume(struct waits *w, uint64_t *from_ns);
/*
 * Periodic work: records what was going on once they were given up and all their records have been
 * read. read_ns: all records of before have been. rests: what can wait is to do so.
 */
int waits__tend(struct waits *w, uint64_t read_ns, uint64_t now_ns, bool rests);
/*
 * The recording's file is about to end, and it goes on in another one: puts what goes on, and
 * threads' times up to now. All records up to a later moment are to be read then. w may be NULL,
 * here and below.
 */
int waits__border(struct waits *w);
/* They have been: puts the metadata "waits". */
int waits__end_part(struct waits *w);
/* The next file has begun. */
int waits__next_part(struct waits *w);
/* It could not be begun: what was kept for it is in the old one, which goes on. */
int waits__same_part(struct waits *w);
uint32_t waits__source(const struct waits *w);
/* Handles the record of a wait, or of the end of a thread. */
int waits__event(struct waits *w, struct thread *th, const struct kprof_wire_wait *e);
/* Had the wait ended by the latest border, so that it is not one for the file that has begun? */
bool waits__is_before(const struct waits *w, const struct kprof_wire_wait *e);
/*
 * After waits__close(), when all records have been read: records the waits that were going on, the
 * times of the threads that live, and the metadata "waits". Does nothing the second time. w may be
 * NULL.
 */
int waits__finish(struct waits *w);

#endif
