/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of a session and their ids. Not locked: batch.c does that. */
#ifndef KPROF_GPU_NAMES_H
#define KPROF_GPU_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What does not fit any more is called by one name for all, KPROF_NAMES_REST. */
#define GPU_NAMES_MAX (1u << 17)
#define GPU_NAMES_MAX_BYTES (64u << 20)
#define GPU_NAMES_REST "(more names than kprof keeps)"

struct gpu_names_chunk;
struct gpu_names {
	struct gpu_name *table; /* open addressing, a power of two */
	uint32_t room, nr;
	struct gpu_names_chunk *chunks; /* newest first; the texts lie there */
	size_t bytes;
};

/*
 * Id of a name, dense from 1; *is_new: it has not been asked for before. 0: no memory. *text is
 * what it is called: the given one, or the one for the rest.
 */
uint32_t gpu_names__id(struct gpu_names *n, const char **text, size_t *bytes, bool *is_new);
void gpu_names__clear(struct gpu_names *n);

#endif
