// SPDX-License-Identifier: BSD-2-Clause
/* All waits of a capture in an array, to be looked up by thread and time. */
#include <errno.h>

#include "model/timeline/impl.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/order.h"

struct reading {
	struct kprof_capture *t;
	struct bulk *list;
	uint32_t (*note)(void *ctx, const struct store_record *r);
	void *ctx;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for waits");
}

static int add_wait(void *ctx, const struct store_record *r)
{
	struct reading *reading = ctx;
	bool woken = r->wait.waker_tid && !timeline__woken_by_interrupt(reading->t, r);
	const struct tl_thread *waker =
		woken ? timeline__thread_at(reading->t, (pid_t)r->wait.waker_pid,
					    (pid_t)r->wait.waker_tid, r->wait.wake_ns)
		      : NULL;
	struct tl_wait *wait = bulk__push(reading->list);

	if (!wait)
		return no_memory();
	*wait = (struct tl_wait){
		.start_ns = r->wait.start_ns,
		.wake_ns = r->wait.wake_ns,
		.end_ns = r->wait.end_ns,
		.reason = timeline__wait_reason(reading->t, r),
		.thread = r->wait.thread,
		.waker = waker ? waker->index + 1 : 0,
		.waker_comm = woken ? r->wait.waker_comm : 0,
		.stack = r->wait.stack,
		.waker_stack = woken ? r->wait.waker_stack : 0,
		.note = reading->note ? reading->note(reading->ctx, r) : 0,
	};
	return 0;
}

static int by_thread_and_time(const void *pa, const void *pb, void *ctx)
{
	const struct tl_wait *a = pa, *b = pb;

	return a->thread != b->thread ? order_u64(a->thread, b->thread)
				      : order_u64(a->start_ns, b->start_ns);
}

static uint64_t at_least(uint64_t ns, uint64_t least_ns)
{
	return ns > least_ns ? ns : least_ns;
}

/* A file may say that a thread waits for two things at once: then the later one begins later. */
static void part(struct bulk *list)
{
	const struct tl_wait *before = NULL;

	for (size_t i = 0; i < list->nr; i++) {
		struct tl_wait *w = bulk__at(list, i);

		if (before && before->thread == w->thread) {
			w->start_ns = at_least(w->start_ns, before->end_ns);
			w->wake_ns = at_least(w->wake_ns, w->start_ns);
			w->end_ns = at_least(w->end_ns, w->wake_ns);
		}
		before = w;
	}
}

int timeline__list_waits(struct kprof_capture *t,
			 uint32_t (*note)(void *ctx, const struct store_record *r), void *ctx,
			 struct bulk *list)
{
	struct reading reading = {t, list, note, ctx};
	int err;

	*list = (struct bulk){.size = sizeof(struct tl_wait)};
	err = timeline__waits(t, 0, add_wait, &reading);
	if (!err && bulk__sort(list, 0, list->nr, by_thread_and_time, NULL))
		err = no_memory();
	if (!err)
		part(list);
	return err;
}

size_t timeline__find_wait(const struct bulk *list, uint32_t thread, uint64_t ns)
{
	size_t low = 0, high = list->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct tl_wait *w = bulk__at(list, mid);

		if (w->thread < thread || (w->thread == thread && w->end_ns <= ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
