// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits and what their threads did. A thread that waits does nothing, so a wait in which a span of
 * its thread begins or ends is not as long as its record says: the kernel has not reported one of
 * its ends, and the time is an estimate (bpf/waits.h). The longest stretch of it without such a
 * moment is taken as the wait. Only captures that have estimates are looked through for it.
 */
#include <errno.h>

#include "model/timeline/impl.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/order.h"

struct wait {
	uint32_t thread;
	uint64_t start_ns, end_ns;
	uint64_t seen_ns;           /* the last moment in it of a span; 0: there is none */
	uint64_t from_ns, until_ns; /* the longest stretch so far */
};

struct fit {
	struct kprof_capture *t;
	struct bulk waits; /* struct wait, by thread and start */
};

static int by_thread_and_start(const void *pa, const void *pb, void *ctx)
{
	const struct wait *a = pa, *b = pb;

	return a->thread != b->thread ? order_u64(a->thread, b->thread)
				      : order_u64(a->start_ns, b->start_ns);
}

/* The index of the first wait of the thread that begins at this time or later, or of the next. */
static size_t find(const struct bulk *waits, uint32_t thread, uint64_t ns)
{
	const struct wait key = {.thread = thread, .start_ns = ns};
	size_t low = 0, high = waits->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (by_thread_and_start(bulk__at(waits, mid), &key, NULL) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void stretch(struct wait *w, uint64_t until_ns)
{
	uint64_t from_ns = w->seen_ns ? w->seen_ns : w->start_ns;

	if (until_ns - from_ns > w->until_ns - w->from_ns) {
		w->from_ns = from_ns;
		w->until_ns = until_ns;
	}
	w->seen_ns = until_ns;
}

/* The thread has begun or ended a span: what if it was said to wait? */
static void seen(struct fit *f, uint32_t thread, uint64_t ns)
{
	size_t at = find(&f->waits, thread, ns);
	struct wait *w = at ? bulk__at(&f->waits, at - 1) : NULL;

	if (w && w->thread == thread && ns < w->end_ns && ns > w->seen_ns)
		stretch(w, ns);
}

static int on_begin(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	if (!(s->flags & KPROF_EVENT_OPEN_AT_START))
		seen(ctx, s->thread, s->start_ns);
	return 0;
}

static int on_end(void *ctx, const struct tl_span *s, void *data)
{
	if (!(s->flags & KPROF_EVENT_OPEN_AT_END))
		seen(ctx, s->thread, s->end_ns);
	return 0;
}

static int list_waits(struct fit *f)
{
	struct store_record r;
	struct wait *w;
	int err = tl_pass__start(f->t, STORE_READ_DETAILS);

	if (err)
		return err;
	while ((err = store_reader__next(f->t->reader, &r)) > 0) {
		if (r.type != STORE_WAIT || r.wait.end_ns <= r.wait.start_ns)
			continue;
		w = bulk__push(&f->waits);
		if (!w) {
			err = -ENOMEM;
			break;
		}
		*w = (struct wait){.thread = r.wait.thread,
				   .start_ns = r.wait.start_ns,
				   .end_ns = r.wait.end_ns};
	}
	f->t->walking = false;
	return err;
}

/* Leaves those in the list that are not as they were said to be. */
static void keep_fitted(struct bulk *waits)
{
	size_t nr = 0;

	for (size_t i = 0; i < waits->nr; i++) {
		struct wait w = *(struct wait *)bulk__at(waits, i);

		if (!w.seen_ns)
			continue;
		stretch(&w, w.end_ns);
		*(struct wait *)bulk__at(waits, nr++) = w;
	}
	if (!nr)
		bulk__free(waits);
	else
		bulk__resize(waits, nr);
}

int tl_wait_fit__make(struct kprof_capture *t, struct bulk *fitted)
{
	const struct tl_walker walker = {.begin = on_begin, .end = on_end};
	struct fit f = {.t = t, .waits = {.size = sizeof(struct wait)}};
	struct tl_range range = t->range;
	int err;

	t->range = (struct tl_range){0}; /* of the whole capture */
	err = list_waits(&f);
	if (!err)
		err = bulk__sort(&f.waits, 0, f.waits.nr, by_thread_and_start, NULL);
	if (!err && f.waits.nr)
		err = timeline__walk(t, &walker, &f);
	t->range = range;
	if (err)
		bulk__free(&f.waits);
	else
		keep_fitted(&f.waits);
	*fitted = f.waits;
	return err == -ENOMEM ? error_set(err, NULL, "out of memory for waits") : err;
}

void tl_wait_fit__apply(const struct bulk *fitted, struct store_record *r)
{
	size_t at = find(fitted, r->wait.thread, r->wait.start_ns);
	const struct wait *w = at < fitted->nr ? bulk__at(fitted, at) : NULL;

	if (!w || w->thread != r->wait.thread || w->start_ns != r->wait.start_ns ||
	    w->end_ns != r->wait.end_ns)
		return;
	r->wait.start_ns = w->from_ns;
	r->wait.end_ns = w->until_ns;
}
