/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of two threads that uses a device, in a capture made of records in memory: what the
 * tests of user/model/correlate*.c and of the tables of devices begin with.
 */
#ifndef KPROF_TESTS_DEVICE_FIXTURE_H
#define KPROF_TESTS_DEVICE_FIXTURE_H

#include "fake_store.h"

#define PID 42

struct description {
	const char *name, *category;
};

/*
 * The capture begins at 1000 ns. Its event descriptions have the numbers 1, 2, … in this order;
 * NULL ends them.
 */
static inline void start_with(const char *second_thread, const struct description *descriptions)
{
	fake_reset();
	fake_thread(0, PID, PID, "main");
	fake_thread(1, PID, PID + 1, second_thread);
	fake_source(0, "operators");
	fake_clock(1000, 1000000);
	for (; descriptions->name; descriptions++)
		fake_what_of(descriptions->name, "", descriptions->category, 0);
}

/* On the first thread. */
static inline void span(uint64_t start_ns, uint64_t end_ns, uint32_t description)
{
	fake_begin(start_ns, 0, description);
	fake_end(end_ns, 0);
}

#endif
