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

/*
 * Of a thread's time and waits, what the files before have: up to end_ns; WAIT_ENDED: all; 0:
 * nothing.
 */
#define WAIT_ENDED UINT64_MAX
struct wait_told {
	uint64_t end_ns;
	uint64_t runnable_ns, blocked_ns, switches, told;
	uint64_t split_ns; /* begin of the wait of which a part was put; 0: none */
};

/* A file's end, and what has been told of each thread by then. All zero: there was none. */
struct wait_border {
	uint64_t at_ns;  /* of all threads that are not in the table; 0: these have none */
	struct map64 at; /* PID << 32 | TID: where in told, + 1 */
	struct vec told; /* struct wait_told */
};

/* What a thread does at the border. */
struct wait_look {
	struct kprof_wait k; /* up to then */
	bool splits;         /* the old file has a part of its wait */
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
	bool attached; /* given up, but its programs are still there */
	bool absent;   /* they were given up before the file began */
	/* threads have their borders: what comes of after these is kept for the next file */
	bool bordering;
	struct wait_border latest, before;
	struct map64 unknown_at; /* PID << 32 | TID: where in unknown, + 1 */
	struct vec unknown;      /* struct wait_look; no record has told of their processes */
	struct vec kept;         /* struct store_record */
	struct vec pieces;       /* the same; each is put after the waits before it */
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
/*
 * The kernel's programs take this thread to be on a CPU; does it sleep, so that the last switch was
 * not seen? *out: what it does.
 */
bool waits_left_unseen(const struct waits *w, const struct kprof_wait *k, struct still *out);
/* Makes up for that switch. */
void waits_leave_unseen(struct kprof_wait *k, const struct still *s, uint64_t until_ns);
/* Records that it has been doing that all the time, until then. */
int waits_finish_still(struct waits *w, const struct still *s, struct thread *th,
		       uint64_t until_ns);

/* ---- border.c ---- */

/*
 * The first record, in the order of time, of a thread that was not known at the border: decides
 * whether it had ended by then, or begins. Returns 0 or -ENOMEM.
 */
int waits_settle(struct waits *w, const struct kprof_wait *k);
/*
 * Is it the record of a wait that was put at the border before it came? It seemed to go on, as the
 * kernel's programs noted its end late.
 */
bool waits_has(struct waits *w, const struct kprof_wait *k);
/* Is the record of what ended then one for the next file? It is kept for that. */
bool waits_keep(struct waits *w, const struct kprof_wait *k, uint64_t end_ns,
		const struct store_record *r);

/* This has been told of the thread by the border. Returns 0 or -ENOMEM. */
int wait_border_tell(struct wait_border *b, uint64_t number, const struct wait_told *told);
/* NULL: the thread is not in the table. */
struct wait_told *wait_border_find(const struct wait_border *b, uint64_t number);
void wait_border_free(struct wait_border *b); /* it is as if there was none */

/* What the files have that end before what the thread does at end_ns, or has done until then. */
struct wait_told waits_told(const struct waits *w, const struct kprof_wait *k, uint64_t end_ns);

/* A wait's part up to the border: put once all is read that ended before that. */
int waits_hold_piece(struct waits *w, const struct store_record *r);

/*
 * Brings what was read of a thread, which did the same at at_ns or has changed since, up to that
 * time, or that change. Returns that time.
 */
uint64_t wait_at(struct kprof_wait *k, uint64_t at_ns);
/*
 * Since when its wait is in this file: those before have a part of it if that was long enough for a
 * record.
 */
uint64_t wait_from(const struct kprof_wait *k, const struct wait_told *before,
		   uint64_t min_wait_ns);
/* Leaves out of it what was told before. */
void wait_part(struct kprof_wait *k, const struct wait_told *told);

#endif
