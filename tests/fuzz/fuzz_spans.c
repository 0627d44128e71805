// SPDX-License-Identifier: BSD-2-Clause
/*
 * The span engine with events in any order: whatever the rings hand out, what is told nests, times
 * of a thread never go back, and the counts add up. Input: eight bytes an event; a byte left over
 * opens the window before the first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "spans_fixture.h"

#define NR_RETURNS 8
#define STACK 0x10000ull

enum op {
	BEGIN,
	SITE,
	RANGE_BEGIN,
	RANGE_END,
	LEARN,
	WINDOW,
	CLOSE,
	THREAD_END,
	RETURNED,
	OBSERVED_BEGIN,
	OBSERVED_END,
	NR_OPS
};

struct event {
	uint8_t op, thread, time, ret;
	uint8_t sp, region, probe, description;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void learn(struct span_return *ret, const struct event *e)
{
	ret->site = e->description % (NR_RETURNS + 1);
	ret->sp_delta_bytes = (int8_t)e->probe * 8;
}

static bool has_returned(void *ctx, uint64_t ret_slot)
{
	return (ret_slot ^ *(const uint16_t *)ctx) & 8;
}

static void apply(struct fixture *fx, struct span_thread **threads, struct span_return *returns,
		  const struct event *e, uint64_t time_ns)
{
	uint32_t i = e->thread % FIXTURE_THREADS;
	struct span_return *ret = &returns[e->ret % NR_RETURNS];
	uint64_t sp = (uint64_t)(e->region % 20) * 0x20000ull + e->sp * 8ull;
	struct span_begin b = {
		.time_ns = time_ns,
		.sp = sp,
		.ret_slot = sp + (e->description & 0x18),
		.ret = e->ret & 0x80 ? NULL : ret,
		.description = e->description,
		.source = e->description % SPANS_MAX_SOURCES,
		.probe = e->probe % 5,
		.group = e->description % 3,
		.own_result = e->description & 0x20,
	};
	struct span_site hit = {
		.time_ns = time_ns,
		.sp = sp,
		.site = e->description % (NR_RETURNS + 1),
		.has_result = e->probe & 1,
		.result = e->description,
	};
	uint16_t description = e->description;
	int err = 0;

	switch (e->op % NR_OPS) {
	case BEGIN:
		spans__inside(fx->spans, threads[i], &b, ret->addr, 1, ret->site & 1);
		err = spans__begin(fx->spans, threads[i], &b);
		break;
	case SITE:
		err = spans__site(fx->spans, threads[i], &hit);
		break;
	case RANGE_BEGIN:
		err = spans__range_begin(fx->spans, threads[i], time_ns, sp, e->description,
					 b.source);
		break;
	case RANGE_END:
		err = spans__range_end(fx->spans, threads[i], time_ns, sp, b.source);
		break;
	case OBSERVED_BEGIN:
		err = spans__observed_begin(fx->spans, threads[i], time_ns, e->description,
					    b.source, e->probe & 1);
		break;
	case OBSERVED_END:
		err = spans__observed_end(fx->spans, threads[i], time_ns, e->probe & 1, e->ret % 4,
					  b.source);
		break;
	case LEARN:
		learn(ret, e);
		break;
	case WINDOW:
		if (fx->window_ns == UINT64_MAX) /* once */
			fixture_open(fx, time_ns + 1);
		break;
	case CLOSE:
		err = spans__close_all(fx->spans, threads[i], time_ns);
		break;
	case RETURNED:
		err = spans__returned(fx->spans, threads[i], time_ns, sp, has_returned,
				      &description);
		break;
	case THREAD_END:
		err = spans__thread_end(fx->spans, threads[i], time_ns);
		/* Threads that are gone leave nothing open; a new one may have its number. */
		if (fx->depth[i])
			abort();
		fx->last_ns[i] = 0;
		threads[i] = spans__thread(fx->spans, i, i);
		break;
	}
	if (err)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span_return returns[NR_RETURNS] = {0};
	struct span_thread *threads[FIXTURE_THREADS];
	struct fixture fx;
	uint64_t time_ns = 1000;

	fixture_start(&fx, STACK);
	fx.window_ns = UINT64_MAX;
	if (size & 1)
		fixture_open(&fx, 0);
	for (uint32_t i = 0; i < FIXTURE_THREADS; i++)
		threads[i] = spans__thread(fx.spans, i, i);
	for (; size >= sizeof(struct event); size -= sizeof(struct event)) {
		struct event e;

		memcpy(&e, data, sizeof(e));
		data += sizeof(e);
		time_ns += e.time & 0x7f;
		apply(&fx, threads, returns, &e, time_ns - (e.time & 0x80 ? 100 : 0));
	}
	if (spans__finish(fx.spans))
		abort();
	fixture_check_counts(&fx);
	if (fx.broken) {
		fprintf(stderr, "broken: %s\n", fx.broken);
		abort();
	}
	fixture_stop(&fx);
	return 0;
}
