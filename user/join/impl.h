/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of kprof_join(): join.c is about the whole, chunk.c copies one capture, tables.c knows
 * what the output has already, spans.c puts spans together again, and times.c waits, gaps and
 * threads' times; metadata.c adds up what is said of the recordings.
 */
#ifndef KPROF_JOIN_IMPL_H
#define KPROF_JOIN_IMPL_H

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "kprof/chunks.h"
#include "sink/kprof/copy.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

struct chunk {
	const char *path;
	char *boot, *of; /* which recording it is a part of; "": it does not say */
	uint64_t start_ns, end_ns;
	bool complete;
	/* In the output: up to when it is used, as another recording begins then. */
	uint64_t until_ns;
	uint64_t session;   /* number of the recording */
	struct vec sources; /* struct store_record, by index in it: the latest */
	struct vec counts;  /* struct kprof_source: of one that was cut short */
	struct vec times;   /* struct store_record: THREAD_TIME, by thread of the output: latest */
	cJSON *metadata;    /* an object: parsed values */
	struct kprof_copy *copy;
};

/* An open span. */
struct join_span {
	uint64_t number, what; /* of the span in the output; what it is: a hash */
	uint64_t source;       /* index in the output + 1; 0: not known */
	bool from_start;       /* it was open when a recording began */
};

struct join_thread { /* by index in the output */
	bool ended;
	uint64_t start_ns;
	struct join_span *open;
	size_t nr, cap;
	size_t went_on;   /* of those, how many this chunk has begun again … */
	size_t at_border; /* … of so many that were open at its begin */
	/* a wait that goes on at the end of the chunk before; .type 0: none */
	struct store_record wait;
	uint64_t joined_waits;    /* pairs that became one */
	struct store_record time; /* the sum; .type 0: none */
};

struct join {
	const struct kprof_join_opts *opts;
	struct chunk *chunks;
	size_t nr;
	struct chunk *now;
	struct store_writer *out;
	struct kprof_copy_numbers numbers;
	uint64_t seed;      /* of hashes, so that nobody can choose what is taken for the same */
	struct map64 known; /* hash of what it is → number in the output + 1 */
	struct map64 said;  /* hash of what a record is about → hash of what it says */
	struct map64 named; /* frame of the output → how well its name is known */
	struct map64 alive; /* PID → start of the process that has it + 1 */
	/* description of the output → hash of what it is; → its source + 1 */
	struct map64 what, source_of;
	uint64_t border_ns;    /* up to when there is something before the capture that is copied */
	struct vec threads;    /* struct join_thread */
	struct vec gaps;       /* struct store_record */
	struct map64 last_gap; /* hash of what it is of → index + 1 */
	struct vec sources;    /* struct store_record: sums, by index in the output */
	struct map64 source_by_name;
	cJSON *metadata;
	uint32_t before_key; /* string: the attribute of spans that go on */
	struct kprof_join_info info;
};

static inline int join_no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory to join the captures");
}

static inline uint64_t join_mix(uint64_t h, uint64_t value)
{
	return hash64(h ^ hash64(value + 0x9e3779b97f4a7c15ull));
}

/* ---- tables.c ---- */

/*
 * Looks at a record that defines a number. 1: it is to be put (again); 0: the output has it; the
 * number in the output is known in either case.
 */
int join_define(struct join *j, const struct store_record *r);
/* Has the same been said before of what this is about? 1, 0, or -ENOMEM. */
int join_repeats(struct join *j, struct store_record *r);
struct join_thread *join_thread(struct join *j, uint64_t index);

/* ---- spans.c ---- */

int join_event(void *ctx, struct store_record *r, uint64_t *span);
/* A chunk begins, or has ended: what it has not begun again has ended. */
void join_border(struct join *j);
int join_end_border(struct join *j);

/* ---- times.c ---- */

int join_wait(struct join *j, struct store_record *r);
int join_time(struct join *j, const struct store_record *r);
int join_end_times(struct join *j);
int join_gap(struct join *j, const struct store_record *r);
/* A gap of everything between two chunks, if there is one. */
int join_missing(struct join *j, const struct chunk *before, const struct chunk *next);
/* The end of all: puts waits that go on, sums and gaps. */
int join_put_times(struct join *j);

/* ---- metadata.c ---- */

int join_metadata(struct join *j);
int join_put_metadata(struct join *j);

/* ---- chunk.c ---- */

/* To be called first. -ENOENT: it is not there any more, and nothing was done. */
int join_open(struct join *j, struct chunk *c);
int join_copy(struct join *j, struct chunk *c);

#endif
