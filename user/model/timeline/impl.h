/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of struct kprof_capture. timeline.c opens one and answers queries; tables.c fills it
 * from the table records, spans.c streams the events, details.c the details and samples (wait_fit.c
 * mends estimated waits), stacks.c joins frames to stacks.
 */
#ifndef KPROF_TIMELINE_IMPL_H
#define KPROF_TIMELINE_IMPL_H

#include <errno.h>

#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/map64.h"
#include "util/util.h"

struct meta_entry;
struct process_entry;
struct tl_stacks;
struct tl_waits;
struct tl_merged;

struct clock_reading {
	uint64_t mono_ns, real_ns;
};

/* The selected part of the recorded time. */
struct tl_range {
	bool set;
	bool cut; /* see timeline__cut() */
	/*
	 * The first and the last moment of it. Where it begins or ends with the window, what lies
	 * beyond that belongs to it, too.
	 */
	uint64_t from_ns, upto_ns;
	uint64_t extent_start_ns, extent_end_ns; /* with what sticks out of it */
	struct kprof_selection selection;
};

struct kprof_capture {
	char *path; /* for messages */
	struct store_reader *reader;
	struct kprof_capture_info info;

	/*
	 * Filled by tl_tables__read() and never moved afterwards, so pointers to elements may be
	 * handed out. Each string is an allocation of its own, which the other tables point at.
	 */
	struct vec strings;      /* char *, by id; 0 is "" */
	struct vec metas;        /* struct meta_entry *, by first appearance */
	struct vec processes;    /* struct process_entry *, by first appearance */
	struct vec threads;      /* struct tl_thread, by index */
	struct vec descriptions; /* struct tl_description, by id - 1 */
	struct vec sources;      /* struct kprof_source, by index */
	struct vec gaps;         /* struct kprof_gap */
	struct vec clocks;       /* struct clock_reading, by mono_ns */
	struct meta_entry *meta_by_key;
	struct process_entry *process_by_start;
	struct map64 process_by_pid; /* number of the latest, from 1 on */
	struct tl_stacks *stacks;    /* NULL: the capture has none */
	struct tl_waits *waits;      /* NULL: nothing of waits was needed yet */
	struct bulk fitted;          /* see tl_wait_fit__make() */
	bool is_fitted;
	struct tl_merged *merged;        /* NULL: it is no merged capture */
	char *counters[TL_MAX_COUNTERS]; /* names */
	uint32_t nr_counters;

	uint64_t first_ns, last_ns; /* earliest and latest time in the tables, CLOCK_MONOTONIC */
	uint64_t finish_ns;         /* time of the FINISH record; 0: there is none */
	uint64_t orphan_ends;       /* END records without a BEGIN, in the last complete walk */
	uint64_t lost_attrs;        /* attributes that found no span, in the last complete walk */
	/* The recorded window. That of info is the selected range. */
	uint64_t start_ns, end_ns;
	struct tl_range range;
	bool walking; /* in a pass: the reader is in use */
};

/* A string of the capture; NULL if no string has this id. */
static inline const char *tl_string(const struct kprof_capture *t, uint32_t id)
{
	return id < t->strings.nr ? ((char **)t->strings.data)[id] : NULL;
}

/* The process of a thread that exists. */
static inline pid_t tl_pid(const struct kprof_capture *t, uint32_t thread)
{
	return ((const struct tl_thread *)t->threads.data)[thread].pid;
}

/* Adds a copy of an element. -ENOMEM. */
static inline int tl_add(struct vec *v, const void *element, size_t size)
{
	void *slot = vec_push(v, size);

	if (!slot)
		return -ENOMEM;
	memcpy(slot, element, size);
	return 0;
}

/* Element i, which is added, all zero, if there is none; i <= v->nr. NULL: no memory. */
static inline void *tl_element(struct vec *v, size_t i, size_t size)
{
	return i < v->nr ? (char *)v->data + i * size : vec_push(v, size);
}

/*
 * Whether a stretch of time has a part in the selected range; one without a duration does where it
 * begins.
 */
static inline bool tl_overlaps(const struct kprof_capture *t, uint64_t start_ns, uint64_t end_ns)
{
	const struct tl_range *r = &t->range;

	return !r->set ||
	       (start_ns <= r->upto_ns && (end_ns > r->from_ns || start_ns >= r->from_ns));
}

static inline uint32_t tl_beyond(const struct kprof_capture *t, uint64_t start_ns, uint64_t end_ns)
{
	const struct tl_range *r = &t->range;

	return !r->set ? 0
		       : (start_ns < r->from_ns ? TL_BEFORE : 0) |
				 (end_ns && end_ns - 1 > r->upto_ns ? TL_AFTER : 0);
}

/* Makes the window what was recorded, or what is selected of it. */
void tl_set_window(struct kprof_capture *t);

/* Reads every table record. The error is set on failure. */
int tl_tables__read(struct kprof_capture *t);
void tl_tables__free(struct kprof_capture *t);

/* Adds a MODULE, FRAME, PYTHON_FRAME or STACK record. -EBADMSG, -ENOMEM; the error is not set. */
int tl_stacks__add(struct kprof_capture *t, const struct store_record *r);
/* Joins modules, frames and stacks once all tables are read. -ENOMEM; the error is not set. */
int tl_stacks__settle(struct kprof_capture *t);
void tl_stacks__free(struct kprof_capture *t);

/* The stack of the caller, also where a frame of the interpreter is not shown; 0: none. */
uint32_t tl_stacks__caller(const struct kprof_capture *t, uint32_t stack);

/* Finds which counters were recorded, once all tables are read. */
void tl_counters__read(struct kprof_capture *t);
void tl_counters__free(struct kprof_capture *t);

/* Adds a THREAD_TIME record. -EBADMSG, -ENOMEM; the error is not set. */
/* Needs the tables. -ENOMEM. */
int tl_merged__read(struct kprof_capture *t);
void tl_merged__free(struct kprof_capture *t);

int tl_waits__add_time(struct kprof_capture *t, const struct store_record *r);
void tl_waits__free(struct kprof_capture *t);
/* Calls fn with samples of the wait: of its blocked time, and of that in the run queue. */
int tl_waits__hand_out(struct kprof_capture *t, const struct store_record *wait,
		       int (*fn)(void *ctx, const struct store_record *r), void *ctx);

/* What an instant says of a block. False: nothing, or nothing that can be. */
bool tl_block__read(const struct kprof_capture *t, const struct store_record *r,
		    struct tl_block *out);
/* Calls fn with a sample for the block of the instant, if it is alive: see timeline__samples(). */
int tl_block__hand_out(const struct kprof_capture *t, const struct store_record *instant,
		       int (*fn)(void *ctx, const struct store_record *r), void *ctx);

/*
 * Makes a list of the waits whose estimated times what their threads did disproves. The error is
 * set on failure.
 */
int tl_wait_fit__make(struct kprof_capture *t, struct bulk *fitted);
/* Gives a WAIT record the times that it can have had. */
void tl_wait_fit__apply(const struct bulk *fitted, struct store_record *r);

/*
 * Starts a pass over the file; whoever ends it clears t->walking. -EBUSY, with the error set: one
 * is going on.
 */
int tl_pass__start(struct kprof_capture *t, enum store_read_mode mode);
/* Sets the error for a file that was added to since its tables were read, and returns it. */
int tl_changed(const struct kprof_capture *t);

#endif
