/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is allocated and not freed, for a recording that goes on for hours: a table of blocks, each
 * with its operator and stack, and of the latest that were freed. Its memory is bounded; what does
 * not fit is counted. Into a capture, blocks are written as instants, when it is asked for.
 */
#ifndef KPROF_CAPTURE_ALIVE_H
#define KPROF_CAPTURE_ALIVE_H

#include "capture/record/record.h"

/* The names and stacks of a recording, compressed, take at most so much. */
#define ALIVE_TABLE_BYTES (32ull << 20)
/* Blocks that are kept at most: 112 bytes of memory each, with their places in tables. */
#define ALIVE_MOST_BLOCKS (1u << 20)
/* How many of those that were freed are kept: the latest. */
#define ALIVE_FREED_BLOCKS (1u << 14)

struct alive;

/* An allocation or (bytes negative) a free. */
struct alive_said {
	uint64_t time_ns;
	uint64_t addr;
	int64_t bytes;
	/* in use of the device after it, and what its allocator holds */
	uint64_t allocated, reserved;
	uint32_t op;          /* string id */
	uint32_t description; /* that of instants */
	int8_t device_type, device_id;
};

int alive__new(struct recorder *recorder, struct alive **out);
void alive__free(struct alive *a);
/* 0 or -ENOMEM. */
int alive__take(struct alive *a, const struct alive_said *said);
/*
 * The number of the block that was allocated by the latest alive__take(), until the next call. 0:
 * it was a free, or the block was not kept.
 */
uint64_t alive__latest(struct alive *a);
/* The stack of the allocation with that number. */
void alive__stack(struct alive *a, uint64_t number, uint32_t stack);
/* The process executes another program: nothing of before is allocated any more. */
void alive__forget(struct alive *a);
/* Names that alive__put() writes: to be called when numbers of strings may still be new. */
int alive__prepare(struct alive *a);
/*
 * Writes all blocks, as instants of the thread with index 0, and the metadata "memory_alive". seen:
 * there was an allocator that tells of them.
 */
int alive__put(struct alive *a, bool seen);

struct alive_sums {
	uint64_t blocks, bytes; /* of all devices */
	uint64_t not_kept;
};
void alive__sums(const struct alive *a, struct alive_sums *out);

#endif
