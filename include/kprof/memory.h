/* SPDX-License-Identifier: BSD-2-Clause */
/* What captures say of memory that programs allocated, beside the rows of tables (kprof.h). */
#ifndef KPROF_MEMORY_H
#define KPROF_MEMORY_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether allocations and frees were recorded (kprof_session_opts.memory). */
bool kprof_capture_has_memory(const struct kprof_capture *c);

/*
 * When a process had most of a device's memory in use. Of the CPU's: of what was allocated in the
 * recording, or in the selected range of it. Of another device's: of all that its allocator had
 * given out, as it says itself.
 */
struct kprof_memory_peak {
	pid_t pid;
	uint64_t bytes;
	uint64_t at_ns;          /* since the begin of the recording */
	uint64_t end_bytes;      /* in use at the end */
	const char *device;      /* "cpu", "cuda:0": as long as the result */
	uint64_t earlier_bytes;  /* at the peak: allocated before the recording or the range */
	uint64_t reserved_bytes; /* the most that the allocator of a device had; 0 on the CPU */
};
/* Of the i-th process and device of a table by memory. -ENOENT: past the end. */
int kprof_result_memory(const struct kprof_result *r, size_t i, struct kprof_memory_peak *out);

/* ---- what was allocated at a moment: a capture of a recording with .alive ---- */

/* Whether it is such a capture. */
bool kprof_capture_has_alive(const struct kprof_capture *c);

enum kprof_alive_by { KPROF_ALIVE_BY_OP, KPROF_ALIVE_BY_STACK };

struct kprof_alive;
/* Sums up what is alive. Texts live as long as the capture. */
int kprof_alive_new(struct kprof_capture *c, struct kprof_alive **out);
void kprof_alive_free(struct kprof_alive *a); /* NULL is fine */

/* Whose it is: the PID, and the process's name. */
pid_t kprof_alive_process(const struct kprof_alive *a, const char **name);

/* Whether the process had an allocator that tells: else it is not known what it allocated. */
bool kprof_alive_seen(const struct kprof_alive *a);

struct kprof_alive_device {
	const char *name; /* "cpu", "cuda:0" */
	uint64_t blocks, bytes;
	/*
	 * What its allocator has given out and holds in all, as it says itself, and the most of it;
	 * of the CPU's: what was allocated in the recording, and 0.
	 */
	uint64_t allocated_bytes, reserved_bytes, peak_bytes, peak_reserved_bytes;
	uint64_t peak_at_ns; /* since the begin of the recording */
	uint64_t allocations, frees;
	uint64_t earlier; /* frees of what was allocated before the recording */
	uint64_t unseen;  /* frees that were not seen */
	uint64_t not_kept;
};
/* The i-th device. -ENOENT: past the end. */
int kprof_alive_device(const struct kprof_alive *a, size_t i, struct kprof_alive_device *out);

struct kprof_alive_row {
	const char *device;
	const char *op; /* "": in none; of rows by stack: of its largest block */
	uint64_t bytes, blocks;
	uint64_t oldest_ns; /* how long the oldest of them has been there */
	bool has_stack;     /* of rows by stack: false for all whose stack was not taken */
};
/* The rows, those with the most bytes first. NULL: past the end. */
const struct kprof_alive_row *kprof_alive_row(const struct kprof_alive *a, enum kprof_alive_by by,
					      size_t i);
/*
 * The frames of a row by stack, innermost first; returns how many, at most room. No stack has more
 * than KPROF_SAMPLE_MAX_FRAMES.
 */
size_t kprof_alive_frames(const struct kprof_alive *a, size_t i, struct kprof_frame *to,
			  size_t room);

#ifdef __cplusplus
}
#endif

#endif
