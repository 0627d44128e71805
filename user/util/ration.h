/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For reading processes in the thread that records, which must not sleep: so much CPU time a second
 * of this thread and of the reader (foreign.h). What would go beyond is put off until there is time
 * for it again. Where that is not enough for all that is read, the uses take turns: the one that
 * was served longest ago goes before the others.
 */
#ifndef KPROF_UTIL_RATION_H
#define KPROF_UTIL_RATION_H

#include <stdbool.h>
#include <stdint.h>

/* Of what was used too much, so much is paid back at most, in seconds, where all is paid in. */
#define RATION_DEBT 5

enum ration_use {
	RATION_SAMPLED, /* mappings of a process that was just met, or has mapped more code */
	RATION_NEW,     /* mappings of the others that are new */
	RATION_CHANGED, /* … of those that have executed a program, */
	RATION_STALE,   /* … and of those with code that is in none of the known */
	RATION_COMPILED,
	RATION_THREADS, /* their names */
	RATION_FUNCTIONS,
	RATION_USES,
};

struct ration { /* all zero: there is no bound */
	uint64_t ns_a_second;
	double part;                  /* of that, so much is paid in now */
	int64_t left_ns;              /* below 0: what was used too much */
	uint64_t until_ns;            /* up to when left_ns has been paid in; CLOCK_MONOTONIC */
	uint64_t first_ns;            /* when it began; CLOCK_MONOTONIC */
	uint64_t nr_asked, nr_served; /* how often something was to be read, and was */
	uint64_t begun_ns, reader_ns; /* CPU times, of this thread and of the reader */
	uint64_t rests_ns; /* from this CPU time of both on nothing lasts; 0: not known */
	bool resting;      /* it was met: who asks for each of thousands reads no clock */
	uint64_t served_ns[RATION_USES];
	uint64_t refused_ns[RATION_USES]; /* 0: it was served since */
};

/* So much may be used at once in the first two seconds. */
void ration__begin(struct ration *r, uint64_t ns_a_second, uint64_t at_once_ns);
/*
 * r may be NULL from here on: there is no bound. Where there is none, nothing changes. part: only
 * so much of it for now, above 0 and at most 1.
 */
void ration__set(struct ration *r, uint64_t ns_a_second, double part);
/* Is there time for it? */
bool ration__lasts(struct ration *r, enum ration_use use);
/* The same at that time of CLOCK_MONOTONIC, of a ration with a bound. */
bool ration__lasts_at(struct ration *r, enum ration_use use, uint64_t now_ns);
/*
 * Once this thread and the reader have used so much more CPU time, nothing lasts, until this is
 * called anew.
 */
void ration__rest_after(struct ration *r, uint64_t ns);
/* Has it? All else that can wait goes by that, too. */
bool ration__rests(const struct ration *r);
/* … or will it have, once so much more is used? */
bool ration__rests_within(const struct ration *r, uint64_t ns);
/* Is periodic work due, or was it, where it rests, a second before? */
bool ration__is_due(const struct ration *r, uint64_t now_ns, uint64_t due_ns);
/* Around what is read. */
void ration__open(struct ration *r);
void ration__close(struct ration *r);

#endif
