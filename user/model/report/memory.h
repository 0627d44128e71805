/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations and frees by the span in which they happened. In a capture they stand apart from the
 * spans, so they are read first, and looked up by thread and time while the spans are streamed.
 */
#ifndef KPROF_REPORT_MEMORY_H
#define KPROF_REPORT_MEMORY_H

#include "model/timeline/timeline.h"
#include "util/bulk.h"

struct allocation { /* or a free */
	uint64_t time_ns, addr;
	int64_t bytes;     /* of a free: negative */
	int64_t allocated; /* see struct tl_memory */
	int64_t reserved;
	uint64_t ended; /* the caller's */
	uint32_t thread;
	uint32_t device; /* see struct tl_memory */
	uint32_t inside; /* id of the innermost span's description; 0: it was in none */
};

/* Signed bytes. */
struct memory_sum {
	int64_t cpu;
	int64_t devices; /* all other devices together */
};

struct memory_thread;
struct memory_walk {
	struct bulk list; /* struct allocation: by thread and time */
	struct memory_thread *threads;
	size_t nr_threads;
	uint32_t description;      /* id of that of an allocation; 0: there are none */
	bool has_devices;          /* there are allocations on other devices than the CPU */
	struct memory_sum outside; /* in no span at all */
	uint64_t nr_outside;
};

/* Reads the allocations of the selected range. The caller frees it, also after an error. */
int memory_walk__read(struct kprof_capture *t, struct memory_walk *w);
void memory_walk__free(struct memory_walk *w);
/* For each span, in the order of a walk. -ENOMEM with the error set. */
int memory_walk__begin(struct memory_walk *w, const struct tl_span *s);
/* The sum in the span that ends: *all, and *self without its direct children's. */
void memory_walk__end(struct memory_walk *w, const struct tl_span *s, struct memory_sum *self,
		      struct memory_sum *all);
/* After the walk: what happened later than the last span of its thread. */
void memory_walk__rest(struct memory_walk *w);

/* A sum that stays at the largest or least number instead of wrapping around. */
static inline void memory_add(int64_t *sum, int64_t by)
{
	if (__builtin_add_overflow(*sum, by, sum))
		*sum = by < 0 ? INT64_MIN : INT64_MAX;
}

#endif
