/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the ring buffers, one per CPU, as one stream in order of time, in place: a record is handed
 * out where it lies in the ring and its room given back afterwards.
 *
 * Order: programs take the time after they have reserved their record. So once a ring has been seen
 * empty, or at a finished record, whatever comes later in it has a later time; a ring whose next
 * record is not finished holds the others back to the time it was last seen so (for at most
 * RINGS_MAX_HOLD_NS: a descheduled producer must not stop the stream). One thread's records are in
 * order even when it moves between CPUs.
 */
#ifndef KPROF_CAPTURE_RING_H
#define KPROF_CAPTURE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/wire.h"

#define RINGS_MAX_HOLD_NS 200000000ull

struct rings;
/* How many rings of which size (a power of two of pages) for so many CPUs and bytes in all. */
void rings_layout(int nr_cpus, uint64_t total_bytes, uint32_t *nr, uint64_t *bytes_each);

/* Creates the rings and puts them into the outer map, index = position. */
int rings__new(int outer_map_fd, uint32_t nr, uint64_t bytes_each, struct rings **out);
void rings__free(struct rings *r);

typedef int (*rings_fn)(void *ctx, const struct kprof_wire_hdr *h);
/*
 * Hands out what is there, oldest first, at most max records. Returns how many, or what fn returned
 * when that is negative (the record counts as read). final: no producer is left, hold nothing back.
 */
int rings__drain(struct rings *r, size_t max, int final, rings_fn fn, void *ctx);
/* Waits until a producer asks for attention or the time is over. 1: asked; 0: time over. */
int rings__wait(struct rings *r, int timeout_ms);
/* Nothing has been written that was not read. */
bool rings__empty(const struct rings *r);
/* What has been read of all of them so far. */
uint64_t rings__read_bytes(const struct rings *r);

#endif
