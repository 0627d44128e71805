/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_RECORD_SUMMARY_H
#define KPROF_CMD_RECORD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof.h"

/*
 * Prints to stderr what a recording has and lacks: figures unless quiet, losses always.
 * samples_only: nothing but samples was requested. Returns the number of events lost (dropped and
 * missed).
 */
uint64_t summary_print(const struct kprof_capture *c, const struct kprof_session_stats *stats,
		       bool samples_only, bool quiet);

#endif
