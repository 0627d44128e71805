/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a session and their ids; also other texts that are reported once. There is no lock
 * here: batch.c has one.
 */
#ifndef KPROF_GPU_NAMES_H
#define KPROF_GPU_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names at most. All further ones are replaced by a common name. */
#define GPU_NAMES_MAX (1u << 17)
#define GPU_NAMES_MAX_BYTES (64u << 20)
#define GPU_NAMES_REST "(more names than kprof keeps)"

struct gpu_names_chunk;
struct gpu_names {
	struct gpu_name *table; /* open addressing, a power of two */
	uint32_t room, nr;
	struct gpu_names_chunk *chunks; /* hold the texts; newest first */
	size_t bytes;
	/* 0: GPU_NAMES_MAX_BYTES; else there is no common name for what is more */
	size_t max_bytes;
};

/*
 * Id of a name; ids count from 1 without gaps. *is_new: the name is new in this session. Returns 0
 * if there is no memory, or there are too many without a common name. *text becomes the name to
 * report: the given one, or the common one if there are too many.
 */
uint32_t gpu_names__id(struct gpu_names *n, const char **text, size_t *bytes, bool *is_new);
void gpu_names__clear(struct gpu_names *n);

#endif
