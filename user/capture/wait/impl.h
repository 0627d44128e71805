/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of waits beside priv.h: waits.c records them; part.c splits them where the recording's
 * file ends and it goes on in another one, by what border.c works out.
 */
#ifndef KPROF_CAPTURE_WAITS_IMPL_H
#define KPROF_CAPTURE_WAITS_IMPL_H

#include "capture/wait/priv.h"
#include "capture/wait/waits.h"
#include "util/map64.h"
#include "util/util.h"

/* What a thread of which no event was seen has been doing all the time. */
struct still {
	uint64_t number; /* process id << 32 | thread id */
	uint64_t start_ns, fd;
	uint32_t call; /* as in the record */
	char state;    /* as in /proc/PID/stat */
	/* it has had events, but the last one of them, with which it left its CPU, was not seen */
	bool left_unseen;
};

struct waits {
	struct waits_opts opts;
	uint32_t source;
	uint64_t from_ns, until_ns;
	struct still *stills;
	size_t nr_stills, cap_stills;
	struct wait_object objects[WAIT_OBJECTS];
	uint64_t without_stack; /* waits that were recorded without */
	uint64_t recorded;
	uint64_t unseen; /* threads whose last switch was not seen */
	bool given_up, finished;
	bool absent; /* they were given up before the file began */
	/* threads have their borders: what comes of after these is kept for the next file */
	bool bordering;
	uint64_t begin_ns, border_ns; /* since when they have been given them; of all others */
	struct map64 unknown; /* PID << 32 | TID: threads of processes that no record has told of */
	struct vec kept;      /* struct store_record */
};

/* Records the thread's latest wait. flags: more of enum store_wait_flags */
int waits_record(struct waits *w, struct thread *th, const struct kprof_wait *k, uint64_t end_ns,
		 uint32_t flags);
/* Records the thread's time, without what the files before have. */
int waits_record_time(struct waits *w, const struct thread *th, const struct kprof_wait *k);
/* They have ended: records the waits that were going on, and the times of the threads that live. */
int waits_finish_all(struct waits *w);
/* Writes the metadata "waits". */
int waits_summary(const struct waits *w);
/* 1: the thread has had no event, and *out is what it does; 0: it has had some, or ends. */
int waits_look_still(struct waits *w, const struct thread *th, struct still *out);
/* Records that it has been doing that all the time, until then. */
int waits_finish_still(struct waits *w, const struct still *s, struct thread *th,
		       uint64_t until_ns);

/* ---- border.c ---- */

/* Is the record of what ended then one for the next file? It is kept for that. */
bool waits_keep(struct waits *w, const struct thread *th, const struct kprof_wait *k,
		uint64_t end_ns, const struct store_record *r);

/*
 * Brings what was read of a thread, which did the same at at_ns or has changed since, up to that
 * time, or that change. Returns that time.
 */
uint64_t wait_at(struct kprof_wait *k, uint64_t at_ns);
/* Leaves out of it what was told before. */
void wait_part(struct kprof_wait *k, const struct wait_told *told);

#endif
