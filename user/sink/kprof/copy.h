/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies a capture's records to a writer, in which they get other numbers. So the copy has been
 * checked, and is compressed as the current writer does it. Several captures may be copied to one
 * writer: then they share `numbers`, and whoever copies chooses whose event comes next.
 */
#ifndef KPROF_SINK_KPROF_COPY_H
#define KPROF_SINK_KPROF_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* The next number of each kind in the copy. */
struct kprof_copy_numbers {
	uint64_t next[STORE_REFS];
};
#define KPROF_COPY_NUMBERS                            \
	{                                             \
		.next = {[STORE_REF_DESCRIPTION] = 1, \
			 [STORE_REF_MODULE] = 1,      \
			 [STORE_REF_FRAME] = 1,       \
			 [STORE_REF_STACK] = 1},      \
	}

/* What is copied, and how it is changed. NULL: all of it; it stays as it is. */
struct kprof_copy_ops {
	/*
	 * Whether to copy a record of a table or a detail, other than STRING, ARGS and FINISH. It
	 * has the source's numbers. 1: yes; 0: no; < 0: an error.
	 */
	int (*record)(void *ctx, const struct store_record *r);
	/* The same of a span that begins: its thread and number in the source. */
	int (*begin)(void *ctx, uint32_t thread, uint64_t span);
	/* The same of the thread's innermost span, which ends. */
	bool (*end)(void *ctx, uint32_t thread);
	/*
	 * Instead of begin and end, with the source's numbers: 1: to be copied; 0: left out; < 0:
	 * an error. 2: a begin goes on with a span that the copy has: its number there becomes
	 * *span, which is that in the source before. An end's flags may be changed.
	 */
	int (*event)(void *ctx, struct store_record *r, uint64_t *span);
	/* Takes a record of a table or a detail instead of the writer, with the copy's numbers. */
	int (*put)(void *ctx, struct store_record *r);
	bool (*process)(void *ctx, uint32_t pid);
	/* What a PID or TID is in the copy. */
	uint32_t (*task)(void *ctx, uint32_t id);
	/* What a time is in the copy: below 2^63. */
	uint64_t (*time)(void *ctx, uint64_t ns);
};

struct kprof_copy;

/* The strings given must live as long as the copy. -errno with the error set. */
int kprof_copy__new(const char *path, struct store_writer *out, struct kprof_copy_numbers *numbers,
		    const struct kprof_copy_ops *ops, void *ctx, struct kprof_copy **to);
void kprof_copy__free(struct kprof_copy *c);
/* The source's reader. */
struct store_reader *kprof_copy__in(const struct kprof_copy *c);
/*
 * One capture is copied in its own order. Of several, the details are copied first, samples and
 * waits in the order of time, then the events: in a file, details precede the events of their time.
 */
enum kprof_copy_part {
	KPROF_COPY_ALL,
	KPROF_COPY_DETAILS, /* all but the events and what is known of spans */
	KPROF_COPY_EVENTS,  /* these; after the details */
};
/* To be called for each part; without it, all is copied. */
void kprof_copy__start(struct kprof_copy *c, enum kprof_copy_part part);
/*
 * Copies what precedes the next begin or end of a span, or sample or wait of KPROF_COPY_DETAILS,
 * that is to be copied. 1: that one, whose time in the copy is *ns, waits for kprof_copy__event();
 * 0: the source is at its end; < 0: an error.
 */
int kprof_copy__next(struct kprof_copy *c, uint64_t *ns);
int kprof_copy__event(struct kprof_copy *c);
/* What the copy's number is of one that has been copied; STORE_LEFT_OUT: it has not been. */
uint64_t kprof_copy__number(const struct kprof_copy *c, enum store_ref ref, uint64_t number);
/* From now on, what the source numbers `from` is `to` in the copy. */
int kprof_copy__map(struct kprof_copy *c, enum store_ref ref, uint64_t from, uint64_t to);
/* Time of the source's FINISH record; 0: it had none so far. */
uint64_t kprof_copy__end_ns(const struct kprof_copy *c);

#endif
