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
/* Removes the capture file unless it was finished. r may be NULL. */
void recorder__free(struct recorder *r);
/* Writes the end of the capture, which then appears under its name. */
int recorder__finish(struct recorder *r, uint64_t end_ns);
/* After an error: keeps what was written as a hidden, readable file in the capture's directory. */
void recorder__salvage(struct recorder *r);
int recorder__flush(struct recorder *r);
uint64_t recorder__bytes(const struct recorder *r);
/*
 * From now on, no events, details and threads are written: only the tables that they would refer
 * to, of at most so many bytes. -EFBIG for more.
 */
void recorder__only_tables(struct recorder *r, uint64_t most_bytes);
/*
 * What is written from now on goes to a second capture, which has all that was written so far;
 * recorder__end_copy() finishes that, and goes on with the first one. Numbers that were new in
 * between are not known afterwards.
 */
int recorder__begin_copy(struct recorder *r, const char *path);
/* err: an error, after which the copy is given up; it is returned. */
int recorder__end_copy(struct recorder *r, uint64_t end_ns, int err);
/* An event or a thread all the same. */
int recorder__put_anyway(struct recorder *r, const struct store_record *record);
/* String id of the name of an event description; 0: there is none. */
uint32_t recorder__name_of(const struct recorder *r, uint32_t description);
/*
 * The capture's writer, for parts that write records themselves. NULL once the capture is finished.
 */
struct store_writer *recorder__store(const struct recorder *r);

/* ---- another file ---- */

/*
 * Says so before the first record: recorder__rotate_…() will be called. Then an error of writing
 * does not show in other calls, and nothing is stored until the next rotation.
 */
void recorder__may_rotate(struct recorder *r);
/* See store_writer__rotate_begin(). Strings that come meanwhile are in both files. */
int recorder__rotate_begin(struct recorder *r, const char *path);
void recorder__rotate_cancel(struct recorder *r);
/*
 * The window ends at that time. Until recorder__rotate_end(), what is put is about it; of numbers
 * in metadata that count from the recording's begin, the part since the last rotation is put.
 */
void recorder__close_part(struct recorder *r, uint64_t end_ns);
/*
 * Ends the file, and goes on in the next one with a window that begins at the end of the old one.
 * *why: see store_writer__rotate_end().
 */
int recorder__rotate_end(struct recorder *r, int *why);
/* See store_writer__continues(). */
int recorder__continues(struct recorder *r, uint64_t span);
uint64_t recorder__rotations(const struct recorder *r);
/*
 * Since when what was recorded may be missing from the file, as something could not be stored.
 * *err: why, -errno; 0: nothing is missing, and it is stored up to then.
 */
uint64_t recorder__unstored_since(const struct recorder *r, int *err);
uint64_t recorder__table_bytes(const struct recorder *r);
uint64_t recorder__unstored(const struct recorder *r);
/* Is .closing under way: are numbers in metadata those of this window? */
bool recorder__is_closing(const struct recorder *r);

/* ---- records ---- */

int recorder__put(struct recorder *r, const struct store_record *record);
/* The string id of the text, which is written to the capture when it is new. 0: no memory. */
uint32_t recorder__string(struct recorder *r, const char *text);
/* Writes metadata. json must be valid JSON. */
int recorder__meta(struct recorder *r, const char *key, const char *json);
/* The same of this file alone, and not of one that goes on after it. */
int recorder__meta_here(struct recorder *r, const char *key, const char *json);
/* Writes metadata from a JSON value, and frees the value. value NULL: returns -ENOMEM. */
int recorder__meta_value(struct recorder *r, const char *key, struct cJSON *value);
/* Records a gap: what could not be seen of this process, and why, from start_ns to end_ns. */
int recorder__gap(struct recorder *r, uint32_t pid, const char *what, const char *reason,
		  uint64_t start_ns, uint64_t end_ns);
int recorder__clock(struct recorder *r, uint64_t mono_ns, uint64_t real_ns);
/* Writes attributes of the span with this number; nothing when nr is 0. */
int recorder__attrs(struct recorder *r, uint64_t span, const struct store_attr *attrs, uint32_t nr);
/*
 * Writes an event description, of which all is filled in but its id: events refer to it by that.
 */
int recorder__describe(struct recorder *r, struct store_record *description, uint32_t *id);
/* Writes a begin, an instant or an activity, and counts it as an event of the recording. */
int recorder__event(struct recorder *r, const struct store_record *record);
uint64_t recorder__nr_events(const struct recorder *r);
/* The number of the begin that was written last, by which attributes refer to its span. */
uint64_t recorder__last_begin(const struct recorder *r);

/* ---- the window ---- */

struct record_window {
	uint64_t start_ns; /* before the window opens: when preparing the recording began */
	uint64_t end_ns;   /* 0: still recording */
	/* the same as start_ns until there is a rotation, which does not change it */
	uint64_t first_ns;
	bool open;   /* the window has been opened: events count from start_ns on */
	bool closed; /* no more probes are placed; the last records are being read */
};
const struct record_window *recorder__window(const struct recorder *r);
void recorder__prepare(struct recorder *r, uint64_t now_ns);
void recorder__open_window(struct recorder *r, uint64_t start_ns);
/* The recording ends at that time, though it is not closed yet: what comes later is left out. */
void recorder__end_at(struct recorder *r, uint64_t end_ns);
/* Is its end known, and time_ns not before it? */
bool recorder__is_over(const struct recorder *r, uint64_t time_ns);
void recorder__close_window(struct recorder *r, uint64_t end_ns);
/*
 * Has the window been opened, and is time_ns not before its start? After a rotation: before the
 * first one's; what comes late of the window before is in this one's file.
 */
bool recorder__in_window(const struct recorder *r, uint64_t time_ns);

/* ---- sources of events ---- */

struct record_source {
	const char *name;
	uint32_t string;
	uint64_t captured;
	uint64_t range_ends; /* hits that end a range, and have no span of their own */
	uint64_t ignored;    /* hits that are no event */
	/* calls made as a part of another call; also counted in `ignored` */
	uint64_t folded;
	uint64_t failed;   /* calls whose result is an error */
	uint64_t answered; /* calls whose result was seen */
	/* user space counts for this source: its "fired" is captured + dropped */
	bool counted_here;
	uint64_t dropped; /* only with counted_here: else the kernel counts what was dropped */
};
/* The index of the source with this name, which is added when it is new. name is not copied. */
int recorder__source(struct recorder *r, const char *name, uint32_t *index);
struct record_source *recorder__source_at(struct recorder *r, uint32_t index);
uint32_t recorder__nr_sources(const struct recorder *r);

#endif
