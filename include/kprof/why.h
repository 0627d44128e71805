/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in one page where a program's time went: of each step of a training (or second, where there
 * are no steps) the share of computing, launching, and waiting for what, with evidence. The
 * conventions are those of kprof.h.
 */
#ifndef KPROF_WHY_H
#define KPROF_WHY_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread's time goes to: each moment of a step is in one of these. */
enum kprof_why_cause {
	KPROF_WHY_COMPUTE, /* in operators; without any: on a CPU */
	KPROF_WHY_CODE,    /* on a CPU, outside of operators */
	KPROF_WHY_LAUNCH,  /* between operators, in tiny ones, in calls that launch device work */
	KPROF_WHY_DATA,    /* waits for a loader, a queue, or bytes of a pipe or socket */
	KPROF_WHY_GIL,     /* waits for Python's interpreter lock */
	KPROF_WHY_LOCK,    /* waits for another lock */
	KPROF_WHY_CPU,     /* could run, but has no CPU */
	KPROF_WHY_DEVICE,  /* waits for a device */
	KPROF_WHY_COLLECTIVE,
	KPROF_WHY_MESSAGE, /* waits for a message between two processes (MPI) */
	KPROF_WHY_THREAD,  /* waits for another thread, which works */
	KPROF_WHY_SLEEP,
	KPROF_WHY_DISK,  /* waits for a disk or another file */
	KPROF_WHY_OTHER, /* other waits: a connection, a child process, a page of memory */
	KPROF_WHY_UNKNOWN,
	KPROF_WHY_CAUSES,
};
/* "data", "gil" …, and in words: "waiting for data". */
const char *kprof_why_cause_key(enum kprof_why_cause cause);
const char *kprof_why_cause_name(enum kprof_why_cause cause);

struct kprof_why_opts {
	size_t sz; /* sizeof(struct kprof_why_opts), for compatibility */
	pid_t tid; /* of this thread; 0: the one that has the steps, or does most */
	/* A cause is found if its `win` is at least this share; 0: KPROF_WHY_LEAST. */
	double least;
};
#define KPROF_WHY_LEAST 0.1

enum kprof_why_kind {
	KPROF_WHY_LINE,     /* where the thread was: "get (queue.py:171)" */
	KPROF_WHY_OPERATOR, /* inside of which operator */
	KPROF_WHY_WHO,      /* the thread that it waited for */
	KPROF_WHY_DOING,    /* where that one was meanwhile */
	KPROF_WHY_PEER,     /* another process with steps, in a sentence */
};
struct kprof_why_evidence {
	enum kprof_why_kind kind;
	const char *text;
	/* Of the cause's time; of LINE and DOING, of the moments at which lines are known. */
	double share;
};

struct kprof_why_row {
	enum kprof_why_cause cause;
	double ns;     /* per step or second */
	double share;  /* 0 … 1; those of all rows together are 1 */
	bool interval; /* low and high are known: the 95 % confidence interval of the share */
	double low, high;
	bool found; /* it stands out */
	/* If the cause were gone, a step took at most this share less; 0: nothing to be won. */
	double win;
	const char *advice; /* what to look at first; "" */
	const struct kprof_why_evidence *evidence;
	size_t nr_evidence;
};

struct kprof_why_info {
	bool by_step;     /* else by second */
	const char *step; /* name of the steps' annotation */
	uint64_t units;   /* steps */
	double unit_ns;   /* how long one is, on average */
	pid_t pid, tid;
	const char *thread, *process; /* its name; command line */
	const char *chosen;           /* why this thread */
	size_t peers;                 /* other processes with steps */
	bool ops, waits, samples, device;
	double device_share; /* with a device: how much of the time it was busy */
};

struct kprof_why;
int kprof_why_new(struct kprof_capture *c, const struct kprof_why_opts *opts,
		  struct kprof_why **out);
const struct kprof_why_info *kprof_why_info(const struct kprof_why *w);
/* First what was found, by what could be won; then the others, by their time. */
size_t kprof_why_nr_rows(const struct kprof_why *w);
const struct kprof_why_row *kprof_why_row(const struct kprof_why *w, size_t i);
/* What the capture can't show, and the option that would; false past the end. */
bool kprof_why_missing(const struct kprof_why *w, size_t i, const char **what, const char **how);
void kprof_why_free(struct kprof_why *w); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif /* KPROF_WHY_H */
