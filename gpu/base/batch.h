/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where modules put their records: a slot of the memory file per writing thread, handed over to
 * kprof when full or old.
 *
 * Any thread may append at any time; records without a session are counted and not kept. No
 * function here calls foreign code, changes errno, or waits for longer than a hand-over takes
 * (microseconds).
 */
#ifndef KPROF_GPU_BATCH_H
#define KPROF_GPU_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/agent.h"

/*
 * Id of a name in this session, for kprof_agent_head.name. The name is handed over at its first
 * use. bytes: its length without a NUL; a length of 0, or NULL, give 0, "no name". All bytes
 * distinguish names; what is handed over is cut to fit a batch.
 */
uint32_t batch__name(const char *text, size_t bytes);
/* The same for a C string; NULL: 0. */
uint32_t batch__name_of(const char *text);

/*
 * Id of an operator's inputs, in the same manner; 0: none, or too many different ones. words: at
 * most KPROF_AGENT_INPUTS_WORDS.
 */
uint32_t batch__inputs(const uint64_t *words, size_t nr);

/*
 * Appends a copy of a record, which starts with a struct kprof_agent_head whose .size is set, a
 * multiple of 8. Times are CLOCK_MONOTONIC, ns. Returns false if the record is not kept; then it is
 * counted in shm.agent_dropped.
 */
bool batch__append(const void *record);

/* What a thread needs to append entries: to be zeroed, but for the ids. */
struct batch_stream {
	uint32_t tid;
	uint32_t session; /* of which the entries are; they are kept in no other */
	bool ticks;       /* times are ticks of the time stamp counter */
	struct kprof_agent_slot *slot;
};
/*
 * Appends an entry to the SPANS record at the end of the calling thread's slot, or begins a new
 * such record. Entries of a thread must come in order of time. depth: how many spans are
 * open before this entry. more: entries that belong to it, as they are. Returns false if it is not
 * kept.
 */
#define BATCH_SPAN_MORE 3
bool batch__span(struct batch_stream *s, uint32_t depth, uint64_t time, uint32_t what,
		 const struct kprof_agent_span *more, uint32_t nr);
/* The number of the session that is recorded; 0: none. */
uint32_t batch__session(void);

/* Initializes the head of a record: its kind, the size of its struct, and its name. */
#define BATCH_HEAD(type, kind, name) ((struct kprof_agent_head){(kind), sizeof(type), (name)})
#define BATCH_RECORD(type, kind, name) ((type){.h = BATCH_HEAD(type, kind, name)})
#define BATCH_ACTIVITY(type, kind, name) ((type){.a.h = BATCH_HEAD(type, kind, name)})

/* ---- for the agent itself (control.c) ---- */

/* To be called once; the memory file must stay mapped for good. Returns 0 or a negative errno. */
int batch__init(struct kprof_agent_shm *shm);
/* In a forked child: no records are kept any more. The memory file is not accessed. */
void batch__forget(void);
/*
 * A session begins: names are forgotten, records are kept from now on, and the totals in the memory
 * file start from 0.
 */
void batch__open(uint32_t session);
/* Hands over every slot that was opened before that time (0: every slot with records). */
void batch__hand_over(uint64_t opened_before_ns);
/* Hands everything over; later records are not kept. The memory of names is freed. */
void batch__close(void);

#endif
