/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures written by hand, of records in memory: what the tests of timelines, trees and tables
 * begin with.
 */
#ifndef KPROF_TESTS_MODEL_FIXTURE_H
#define KPROF_TESTS_MODEL_FIXTURE_H

#include "fake_store.h"

/*
 * A capture that begins at 100 ns, of one process with threads of these names; each thread's number
 * is one higher.
 */
#define start_capture(pid, ...) start_capture_of(pid, (const char *const[]){__VA_ARGS__, NULL})

static inline void start_capture_of(pid_t pid, const char *const *threads)
{
	fake_reset();
	fake_clock(100, 100);
	for (uint32_t i = 0; threads[i]; i++)
		fake_thread(i, pid, pid + (pid_t)i, threads[i]);
}

#endif
