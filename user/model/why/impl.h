/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of kprof why. stacks.c: what the stack of a wait says; read.c: reads the capture into
 * arrays that are ordered by thread and time; sweep.c: goes through a thread's steps and says of
 * each moment what it went to; evidence.c: by what that is shown; why.c: chooses the thread and
 * sums up; words.c: names and advice.
 *
 * Memory: arrays of events lie in files beyond some megabytes (util/bulk.h), steps are joined when
 * they are more than MOST_UNITS, and evidence is kept in tables of a fixed size.
 */
#ifndef KPROF_MODEL_WHY_IMPL_H
#define KPROF_MODEL_WHY_IMPL_H

#include "kprof/why.h"
#include "model/timeline/timeline.h"
#include "util/bulk.h"
#include "util/map64.h"
#include "util/util.h"

/*
 * An operator that takes less than this for each one in it, itself too, is tiny: calling it costs
 * as much.
 */
#define TINY_NS 20000
/* A gap between operators that is shorter than this is time for launching the next one. */
#define GAP_NS 100000
#define MOST_UNITS (1u << 16)
#define MOST_SUBJECTS 16
/* How far it is followed who waits for whom. */
#define MOST_DEPTH 4

/* ---- stacks.c ---- */

enum stack_flags {
	STACK_DATA = 1,       /* takes from a queue or a data loader */
	STACK_COLLECTIVE = 2, /* in a library for collectives */
	STACK_MUTEX = 4,      /* takes a lock that another thread has */
	STACK_OWN_LOCK = 8,   /* Python: takes a lock, and not inside of what a library waits by */
	STACK_MESSAGE = 16,   /* in a call of MPI for a message */
	STACK_LOOKED = 128,   /* in a table: nothing else is known of it */
};

/* What kinds of waits there are, as far as the wait itself tells. */
enum wait_kind {
	WAIT_CPU,
	WAIT_GIL,
	WAIT_LOCK,
	WAIT_HANDOFF, /* until another thread says so */
	WAIT_STREAM,  /* for bytes in a pipe or socket */
	WAIT_EVENTS,  /* poll, select, epoll */
	WAIT_DEVICE,
	WAIT_SLEEP,
	WAIT_DISK,
	WAIT_OTHER,
};

uint32_t why_stack_flags(struct kprof_capture *t, uint32_t stack);
enum wait_kind why_wait_kind(struct kprof_capture *t, const struct store_record *r, uint32_t flags);

/* ---- read.c ---- */

enum segment_flags {
	IN_OP = 1,
	IN_DATA = 2,
	IN_COLLECTIVE = 4,
	IN_CALL = 8,  /* of a device's runtime */
	IN_SYNC = 16, /* … that waits for the device */
	IN_TINY = 32, /* in an operator that is tiny */
	IN_MESSAGE = 64,
};

/* A stretch of a thread in which the spans around it are the same. */
struct segment {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t op; /* description of the innermost operator; 0: none */
	uint32_t flags;
	uint32_t pad;
};

/* What a wait's note has: what kind it is, and enum stack_flags of its stack. */
#define WAIT_NOTE(kind, flags) ((uint32_t)(kind) | (uint32_t)(flags) << 16)

static inline enum wait_kind wait_kind(const struct tl_wait *w)
{
	return (enum wait_kind)(w->note & 0xffff);
}

static inline uint32_t wait_flags(const struct tl_wait *w)
{
	return w->note >> 16;
}

/* A thread that has steps. */
struct subject {
	uint32_t thread;
	pid_t pid;
	uint32_t description; /* of the steps; 0: there are none */
	size_t from, to;      /* its steps */
	uint64_t step_ns;     /* how long these are together */
};

/* Everything that is read of a capture. Arrays are sorted by thread and time. */
struct events {
	struct kprof_capture *t;
	struct bulk steps; /* struct tl_step */
	struct subject subjects[MOST_SUBJECTS];
	size_t nr_subjects;
	size_t nr_peers; /* processes with steps, all of them */
	struct bulk segments, waits;
	bool has_ops, has_waits, has_samples, has_calls;
	uint64_t waits_until_ns; /* they were given up then; 0: they were not */
	/* Events were dropped: where there is no operator, one may be missing. */
	bool dropped;
};

/* Chooses the threads that have steps, or the one with this TID (0: any), and reads all. */
int events__read(struct events *e, struct kprof_capture *t, pid_t tid);
void events__free(struct events *e);
/*
 * The first element of a sorted array that belongs to this thread and ends after a moment, or
 * else the first one after the thread's.
 */
size_t events__segment(const struct events *e, uint32_t thread, uint64_t ns);

/* ---- sweep.c ---- */

/* A stretch of the subject's time with one cause. */
struct piece {
	uint64_t start_ns, end_ns;
	uint32_t who; /* thread that it waited for: index + 1; 0: none */
	uint8_t cause;
	uint8_t running; /* it itself on a CPU, as far as is known */
	uint16_t pad;
};

struct top;
struct evidence;

struct sweep {
	const struct events *e;
	const struct subject *subject;
	struct bulk pieces;
	size_t nr_units;
	double *unit_ns, *by[KPROF_WHY_CAUSES]; /* by unit */
	double running_ns[KPROF_WHY_CAUSES];    /* the subject on a CPU, as far as is known */
	struct evidence *evidence;              /* NULL: none is kept */
	size_t unit;
	int err;
};

int sweep__run(struct sweep *s, const struct events *e, const struct subject *subject,
	       struct evidence *evidence);
void sweep__free(struct sweep *s);
double sweep__total(const struct sweep *s, enum kprof_why_cause cause);
/* The share of a cause of all units' time. */
double sweep__share(const struct sweep *s, enum kprof_why_cause cause);

/* ---- evidence.c ---- */

#define TOP 16
/*
 * The keys with most time. When there are more than fit, that with the least makes room, and its
 * time is inherited.
 */
struct top {
	struct {
		uint64_t key; /* 0: free */
		uint64_t ns;
	} of[TOP];
	uint64_t all_ns;
};

struct evidence {
	const struct events *e;
	pid_t pid;                  /* of the subject */
	struct map64 line_of_stack; /* id of the frame + 1 */
	struct top tops[KPROF_WHY_CAUSES][KPROF_WHY_PEER];
	uint64_t sampled_ns[KPROF_WHY_CAUSES];
	uint64_t samples[KPROF_WHY_CAUSES];
};

void evidence__add(struct evidence *v, enum kprof_why_cause cause, enum kprof_why_kind kind,
		   uint64_t key, uint64_t ns);
/* The line of a stack that says most to its reader; 0: none. */
uint64_t evidence__line(struct evidence *v, uint32_t stack);
#define DOING_NO_CPU (1ull << 33) /* in place of a line */
#define WHO_COMM (1ull << 32)     /* in keys of WHO: the rest is a string, not index + 1 */
/* What samples say of the moments of a sweep. */
int evidence__samples(struct evidence *v, const struct sweep *s);
/* The text of a key; malloc'ed. */
char *evidence__text(const struct evidence *v, enum kprof_why_kind kind, uint64_t key);
void evidence__free(struct evidence *v);

/* ---- words.c ---- */

const char *why_advice(enum kprof_why_cause cause, bool other_thread);

#endif
