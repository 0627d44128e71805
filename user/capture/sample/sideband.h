/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells through perf events of all processes while they come and go: forks, execs,
 * exits, and the files that they map code of. By it, samples of processes that have ended before
 * anything of them could be read can be walked and named.
 *
 * Memory is bounded: of the processes, those whose news is oldest are forgotten.
 */
#ifndef KPROF_CAPTURE_SIDEBAND_H
#define KPROF_CAPTURE_SIDEBAND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process.h"

struct sideband;

/* Begins to listen. Fails with -errno where perf events of all processes are not allowed. */
int sideband__new(struct sideband **out);
void sideband__free(struct sideband *sb); /* NULL is fine */
/* Reads all that the kernel has told so far. now_ns: CLOCK_MONOTONIC. */
void sideband__read(struct sideband *sb, uint64_t now_ns);

#define SIDEBAND_MAPS 64 /* mappings that are remembered of a process's program */

/*
 * The mappings of files' code that the process has made by this time since it executed its program,
 * oldest first; their paths are as the process sees them, and valid until the next
 * sideband__read(). Returns how many. *parent: the process whose mappings it had at first, since it
 * has not executed a program between its fork, at *fork_ns, and time_ns; 0: it has, or its fork was
 * not seen.
 */
size_t sideband__maps(const struct sideband *sb, pid_t pid, uint64_t time_ns,
		      struct proc_map maps[SIDEBAND_MAPS], pid_t *parent, uint64_t *fork_ns);
/* Records that the kernel had no room for. */
uint64_t sideband__lost(const struct sideband *sb);

#endif
