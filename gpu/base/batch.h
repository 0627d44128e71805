/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where modules put their records: a slot of the memory file per writing thread, handed over to
 * kprof when full or old.
 *
 * Any thread may append, any time: what comes while nothing records is not kept, and counted. No
 * function here calls foreign code, waits for more than a hand-over (microseconds) or changes
 * errno.
 */
#ifndef KPROF_GPU_BATCH_H
#define KPROF_GPU_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/agent.h"

/*
 * Id of a name in this session, for kprof_agent_head.name; handed to kprof at its first use. bytes:
 * without a NUL; 0 and NULL give 0, "no name". Names are distinguished by all their bytes and cut
 * to fit a batch.
 */
uint32_t batch__name(const char *text, size_t bytes);
/* The same for a C string; NULL: 0. */
uint32_t batch__name_of(const char *text);

/*
 * Appends a copy of a record: starts with struct kprof_agent_head, .size a multiple of 8 and set.
 * Times are CLOCK_MONOTONIC. false: not kept (and counted in shm.agent_dropped).
 */
bool batch__append(const void *record);

/* For one that fills in a record: kind, size and name of its struct, all else 0. */
#define BATCH_HEAD(type, kind, name) ((struct kprof_agent_head){(kind), sizeof(type), (name)})
#define BATCH_RECORD(type, kind, name) ((type){.h = BATCH_HEAD(type, kind, name)})
#define BATCH_ACTIVITY(type, kind, name) ((type){.a.h = BATCH_HEAD(type, kind, name)})

/* ---- for the agent itself (control.c) ---- */

/* Once; the memory file stays mapped for good. 0 or a negative errno. */
int batch__init(struct kprof_agent_shm *shm);
/* In a forked child: nothing is kept any more. The memory is not touched. */
void batch__forget(void);
/*
 * A session begins: names are forgotten, records are kept from now on, totals of the memory file
 * count from 0.
 */
void batch__open(uint32_t session);
/* Hands over every slot that was opened before that time (0: every slot with records). */
void batch__hand_over(uint64_t opened_before_ns);
/*
 * Everything is handed over; records that come later are not kept. Memory of names is given back.
 */
void batch__close(void);

#endif
