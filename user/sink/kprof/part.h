/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a capture's records that belongs to the selected range of time. Whether a span does
 * is known only at its end, and its begin is copied before: so the spans are read once in advance,
 * and a bit is kept for each (in a file, if they are many).
 */
#ifndef KPROF_SINK_KPROF_PART_H
#define KPROF_SINK_KPROF_PART_H

#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/util.h"

struct kprof_part {
	struct kprof_capture *t;   /* NULL: all of the recording is selected */
	uint64_t start_ns, end_ns; /* the range, with what sticks out of it: the copy's window */
	struct bulk bits;          /* uint64_t: bit n: span n + 1 belongs to it */
	struct vec open; /* struct vec of bool, by thread: the open spans, innermost last */
};

/* Reads which spans belong to the selected range, if one is selected. */
int kprof_part__read(struct kprof_part *p, struct kprof_capture *t);
void kprof_part__free(struct kprof_part *p);
/* Puts the clocks' readings at the window's begin. */
int kprof_part__start(const struct kprof_part *p, struct store_writer *out);
/* Whether the span with this number, which begins, is copied. -ENOMEM with the error set. */
int kprof_part__begin(struct kprof_part *p, uint32_t thread, uint64_t span);
/* Whether the thread's innermost open span, which ends, is copied. */
bool kprof_part__end(struct kprof_part *p, uint32_t thread);
/* Whether any other record is copied. */
bool kprof_part__has(const struct kprof_part *p, const struct store_record *r);
/* What the copy's metadata says of it. */
#define KPROF_PART_JSON_BYTES 320
void kprof_part__json(const struct kprof_part *p, char out[KPROF_PART_JSON_BYTES]);

#endif
