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

#ifdef __cplusplus
}
#endif

#endif
