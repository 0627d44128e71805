/* SPDX-License-Identifier: BSD-2-Clause */
/* One thread, seen through the span engine, with a clock that ticks at each event. */
#ifndef KPROF_TESTS_SPANS_ONE_THREAD_H
#define KPROF_TESTS_SPANS_ONE_THREAD_H

#include "spans_fixture.h"
#include "unit.h"

#define STACK 0x10000000ull /* bytes of one stack's mapping */
#define TOP 0x7f0000000000ull
#define FIBRE (TOP - 64 * STACK)

/*
 * The tests count in microseconds: what one event ends is told a nanosecond apart, level by level.
 */
#define NS(us) ((us)*1000)

static struct fixture fx;
static struct span_thread *thread;
static uint64_t now_us;

static inline void start(void)
{
	fixture_start(&fx, STACK);
	fixture_open(&fx, 0);
	thread = spans__thread(fx.spans, 0, 1);
	now_us = 1000;
}

static inline void stop(void)
{
	fixture_check_counts(&fx);
	CHECK_STR(fx.broken ? fx.broken : "", "");
	fixture_stop(&fx);
}

static inline struct span_begin entry(uint32_t description, uint64_t sp,
				      const struct span_return *ret, uint32_t probe)
{
	return (struct span_begin){
		.time_ns = NS(++now_us),
		.sp = sp,
		.ret_slot = sp,
		.ret = ret,
		.description = description,
		.source = 3,
		.probe = probe,
	};
}

static inline void enter(uint32_t description, uint64_t sp, const struct span_return *ret,
			 uint32_t probe)
{
	struct span_begin b = entry(description, sp, ret, probe);

	CHECK_EQ(spans__begin(fx.spans, thread, &b), 0);
}

/* The site of `ret`, hit after a frame that was entered at sp. */
static inline void leave(uint64_t sp, const struct span_return *ret)
{
	struct span_site hit = {
		.time_ns = NS(++now_us),
		.sp = sp + 8 + (uint64_t)(int64_t)ret->sp_delta_bytes,
		.site = ret->site,
	};

	CHECK_EQ(spans__site(fx.spans, thread, &hit), 0);
}

static inline void range_begin(uint32_t description, uint64_t sp)
{
	CHECK_EQ(spans__range_begin(fx.spans, thread, NS(++now_us), sp, description, 4), 0);
}

static inline void range_end(uint64_t sp)
{
	CHECK_EQ(spans__range_end(fx.spans, thread, NS(++now_us), sp, 4), 0);
}

#endif
