/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the ring buffers, one per CPU, as one stream in order of time. Records are not copied: the
 * callback gets each where it lies in the ring, whose space is given back afterwards.
 *
 * Order: BPF programs take a record's time after they have reserved its space in the ring. So when
 * a ring was seen empty, or its next record was finished, all that comes later in it has a later
 * time. While a ring's next record is not finished, records of other rings wait if they are newer
 * than the moment at which the ring was last seen complete. They wait for at most
 * RINGS_MAX_HOLD_NS: a producer that lost its CPU must not stop the stream. Records of one thread
 * are in order even when the thread moves between CPUs.
 */
#ifndef KPROF_CAPTURE_RING_H
#define KPROF_CAPTURE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/wire.h"

#define RINGS_MAX_HOLD_NS 200000000ull

struct rings;
/*
 * The number of rings and the size of each (a power of two of pages), for this many CPUs and this
 * many bytes in all. total_bytes 0: the default.
 */
void rings_layout(int nr_cpus, uint64_t total_bytes, uint32_t *nr, uint64_t *bytes_each);

/* Creates the rings and puts ring i at index i of the outer map (an array of maps). */
int rings__new(int outer_map_fd, uint32_t nr, uint64_t bytes_each, struct rings **out);
void rings__free(struct rings *r);
/* Records of hits are followed by so many bytes of counters (struct kprof_wire_counters). */
void rings__with_counters(struct rings *r, size_t bytes);
/* Those of this record; NULL: its kind has none. Only of a record from such rings. */
const struct kprof_wire_counters *ring_counters(const struct kprof_wire_hdr *h);

typedef int (*rings_fn)(void *ctx, const struct kprof_wire_hdr *h);
/*
 * Calls fn for each record in the rings, oldest first, for at most max records. Each is whole: it
 * has the size that its kind and its counts ask for, and its texts end with NUL. Others are passed
 * over and counted: the kernel's programs write none. Returns the number
 * of records, or what fn returned when that is negative (the record then counts as read). final: no
 * producer is left, so no record is held back.
 */
int rings__drain(struct rings *r, size_t max, int final, rings_fn fn, void *ctx);
/*
 * A time after that of all records that have been read, and not after that of any other, as of the
 * last rings__drain(), but for those of a producer that was not waited for.
 */
uint64_t rings__reached(const struct rings *r);
/* Waits until a producer wakes the reader, or a watched descriptor, at most timeout_ms. */
void rings__wait(struct rings *r, int timeout_ms);
/* From now on, rings__wait() also ends when something comes to this descriptor. 0 or -errno. */
int rings__watch(struct rings *r, int fd);
/* True when everything that was written has been read. */
bool rings__empty(const struct rings *r);
/* The number of records that were not whole. */
uint64_t rings__damaged(const struct rings *r);
/* Bytes read from all rings so far. */
uint64_t rings__read_bytes(const struct rings *r);

#endif
