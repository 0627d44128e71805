/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record emitter: everything that a recording writes into its capture goes through here. It
 * owns the capture's writer, the window of time that is recorded, the sources of events with their
 * counts, and the numbers of event descriptions. It knows nothing of processes or probes.
 */
#ifndef KPROF_CAPTURE_RECORD_H
#define KPROF_CAPTURE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "util/outfile.h"

struct cJSON;
struct recorder;

/* Creates the capture file. */
int recorder__new(const char *path, const struct outfile_opts *owner, struct recorder **out);
/* A capture that was not finished is removed. NULL is fine. */
void recorder__free(struct recorder *r);
/* The capture appears under its name. */
int recorder__finish(struct recorder *r, uint64_t end_ns);
/* After an error: what was written stays beside the capture's place, hidden and readable. */
void recorder__salvage(struct recorder *r);
/* False once the capture is finished: nothing can be written any more. */
bool recorder__writable(const struct recorder *r);
int recorder__flush(struct recorder *r);
uint64_t recorder__bytes(const struct recorder *r);
/* For parts that write records of their own. NULL once it is finished. */
struct store_writer *recorder__store(const struct recorder *r);

/* ---- records ---- */

int recorder__put(struct recorder *r, const struct store_record *record);
/* The text's number in the capture, written when it is new; 0: no memory. */
uint32_t recorder__string(struct recorder *r, const char *text);
/* Metadata; json is valid JSON. */
int recorder__meta(struct recorder *r, const char *key, const char *json);
/* The same of a value, which is freed; NULL: -ENOMEM. */
int recorder__meta_value(struct recorder *r, const char *key, struct cJSON *value);
/* What of this process could not be seen, between two moments. */
int recorder__gap(struct recorder *r, uint32_t pid, const char *what, const char *reason,
		  uint64_t start_ns, uint64_t end_ns);
int recorder__clock(struct recorder *r, uint64_t mono_ns, uint64_t real_ns);
/* Attributes of the span of this number; nr 0: nothing is written. */
int recorder__attrs(struct recorder *r, uint64_t span, const struct store_attr *attrs, uint32_t nr);
/* What events are: their name, category and source. Written once, events refer to it by its id. */
struct record_description {
	uint32_t name, overload, category; /* string ids */
	uint32_t source;
	uint32_t flags; /* KPROF_EVENT_… */
};
int recorder__describe(struct recorder *r, const struct record_description *d, uint32_t *id);
/* A begin, an instant or an activity that counts as an event of the recording. */
int recorder__event(struct recorder *r, const struct store_record *record);
uint64_t recorder__nr_events(const struct recorder *r);
/* Number of the begin that was written last: what attributes refer to. */
uint64_t recorder__last_begin(const struct recorder *r);

/* ---- the window ---- */

struct record_window {
	uint64_t start_ns; /* before it is open: when the recording's preparation began */
	uint64_t end_ns;   /* 0: still recording */
	bool open;         /* has been opened: events count from start_ns on */
	bool closed; /* nothing is placed in processes any more; last records are being read */
};
const struct record_window *recorder__window(const struct recorder *r);
void recorder__prepare(struct recorder *r, uint64_t now_ns);
void recorder__open_window(struct recorder *r, uint64_t start_ns);
void recorder__close_window(struct recorder *r, uint64_t end_ns);
/* Is the window open, and the moment not before it? */
bool recorder__in_window(const struct recorder *r, uint64_t time_ns);

/* ---- sources of events ---- */

struct record_source {
	const char *name;
	uint32_t string;
	uint64_t captured;
	uint64_t range_ends; /* hits that end a range: no span of their own */
	uint64_t ignored;    /* hits that are no event */
	uint64_t folded;     /* … of these, calls that another call made as a part of itself */
	uint64_t failed;     /* calls whose result says so */
	uint64_t answered;   /* calls whose result was seen */
	bool counted_here;   /* not probe runs: fired is captured + dropped … */
	uint64_t dropped;    /* … and this is not the kernel's number */
};
/* The index of the source of this name, written when it is new. name is kept, not copied. */
int recorder__source(struct recorder *r, const char *name, uint32_t *index);
struct record_source *recorder__source_at(struct recorder *r, uint32_t index);
uint32_t recorder__nr_sources(const struct recorder *r);

#endif
