/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing array that may become larger than the memory that a program should take. Up to
 * BULK_MEMORY_BYTES it is ordinary memory. Beyond that it lies in an unlinked temporary file (in
 * $TMPDIR, or else /var/tmp) that is mapped, of which only so much stays mapped in: whatever the
 * order of accesses, the process does not grow. Neighbours should be used together, or else most of
 * the time goes into mapping. If there can be no such file, all of it stays in memory.
 *
 * Pointers to elements stay valid until the array grows, also to those that are not mapped in.
 */
#ifndef KPROF_UTIL_BULK_H
#define KPROF_UTIL_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BULK_MEMORY_BYTES (4u << 20)
/* What the kernel maps at one fault at most: its fault_around_bytes. */
#define BULK_BLOCK_SHIFT 16

struct bulk_window;

struct bulk {        /* all zero but .size: empty */
	size_t size; /* of an element */
	size_t nr, cap;
	char *data;
	struct bulk_window *window; /* NULL: all of it is in memory */
	/* By block of addresses: whether it may be mapped in. */
	uint8_t *mapped;
	uintptr_t origin; /* address of the first block */
	bool no_file;     /* there can be none */
};

/* Gives the array nr elements; new ones have any value. -ENOMEM. */
int bulk__resize(struct bulk *b, size_t nr);
void bulk__free(struct bulk *b);
/* Notes that a block is mapped in, and unmaps the one that has been so for longest. */
void bulk__map(const struct bulk *b, size_t block);

/* The i-th element, which must be there. */
static inline void *bulk__at(const struct bulk *b, size_t i)
{
	char *at = b->data + i * b->size;

	if (b->window) {
		size_t block = ((uintptr_t)at - b->origin) >> BULK_BLOCK_SHIFT;

		if (!b->mapped[block])
			bulk__map(b, block);
	}
	return at;
}

/* A further element, which may have any value. NULL: no memory. */
static inline void *bulk__push(struct bulk *b)
{
	return bulk__resize(b, b->nr + 1) ? NULL : bulk__at(b, b->nr - 1);
}

/*
 * Sorts the elements `from` … `to` - 1, with a comparison like qsort_r()'s. Equal ones keep their
 * order. What is nearly sorted takes little longer than reading it. -ENOMEM.
 */
int bulk__sort(struct bulk *b, size_t from, size_t to,
	       int (*compare)(const void *a, const void *b, void *ctx), void *ctx);

#endif
