// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "store/store.h"
#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

struct frame { /* an open span */
	struct memory_sum self, all;
	uint32_t description; /* id */
};

struct memory_thread {
	size_t at, end; /* in the list: of the next one, after the last one */
	struct frame *frames;
	size_t nr, cap;
};

struct reading {
	struct kprof_capture *t;
	struct memory_walk *w;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for allocations");
}

static int add_one(void *ctx, const struct store_record *r)
{
	struct reading *reading = ctx;
	struct tl_memory what;
	struct allocation *a;

	if (r->type != STORE_INSTANT || !timeline__memory(reading->t, r, &what))
		return 0;
	a = bulk__push(&reading->w->list);
	if (!a)
		return no_memory();
	*a = (struct allocation){
		.time_ns = r->instant.time_ns,
		.addr = what.addr,
		.bytes = what.bytes,
		.allocated = what.allocated,
		.reserved = what.reserved,
		.thread = r->instant.thread,
		.device = what.device,
	};
	reading->w->has_devices |= what.device != TL_MEMORY_CPU;
	if (!reading->w->description)
		reading->w->description = r->instant.description;
	return 0;
}

static int by_thread_and_time(const void *pa, const void *pb, void *ctx)
{
	const struct allocation *a = pa, *b = pb;

	return a->thread != b->thread ? order_u64(a->thread, b->thread)
				      : order_u64(a->time_ns, b->time_ns);
}

static void find_threads(struct memory_walk *w)
{
	for (size_t i = 0; i < w->list.nr; i++) {
		const struct allocation *a = bulk__at(&w->list, i);
		struct memory_thread *th = &w->threads[a->thread];

		if (!th->end)
			th->at = i;
		th->end = i + 1;
	}
}

int memory_walk__read(struct kprof_capture *t, struct memory_walk *w)
{
	struct reading reading = {t, w};
	int err;

	*w = (struct memory_walk){.list = {.size = sizeof(struct allocation)}};
	while (timeline__thread(t, w->nr_threads))
		w->nr_threads++;
	w->threads = calloc(w->nr_threads + 1, sizeof(*w->threads));
	if (!w->threads)
		return no_memory();
	if (!timeline__has_memory(t))
		return 0;
	err = timeline__details(t, 0, add_one, &reading);
	if (!err && bulk__sort(&w->list, 0, w->list.nr, by_thread_and_time, NULL))
		err = no_memory();
	if (!err)
		find_threads(w);
	return err;
}

void memory_walk__free(struct memory_walk *w)
{
	for (size_t i = 0; w->threads && i < w->nr_threads; i++)
		free(w->threads[i].frames);
	free(w->threads);
	bulk__free(&w->list);
	*w = (struct memory_walk){0};
}

static void count(struct memory_sum *sum, const struct allocation *a)
{
	memory_add(a->device == TL_MEMORY_CPU ? &sum->cpu : &sum->devices, a->bytes);
}

/* Counts what the thread did before that time for its innermost open span. */
static void take_until(struct memory_walk *w, uint32_t thread, uint64_t ns)
{
	struct memory_thread *th = &w->threads[thread];
	struct frame *top = th->nr ? &th->frames[th->nr - 1] : NULL;

	for (; th->at < th->end; th->at++) {
		struct allocation *a = bulk__at(&w->list, th->at);

		if (a->time_ns >= ns)
			return;
		if (top) {
			a->inside = top->description;
			count(&top->self, a);
			count(&top->all, a);
		} else {
			count(&w->outside, a);
			w->nr_outside++;
		}
	}
}

int memory_walk__begin(struct memory_walk *w, const struct tl_span *s)
{
	struct memory_thread *th;

	if (!w->list.nr)
		return 0;
	th = &w->threads[s->thread];
	take_until(w, s->thread, s->whole_start_ns);
	if (vec_grow((void **)&th->frames, &th->cap, th->nr, sizeof(*th->frames)))
		return error_set(-ENOMEM, NULL, "out of memory for the spans that are open");
	th->frames[th->nr++] = (struct frame){.description = s->description->id};
	return 0;
}

void memory_walk__end(struct memory_walk *w, const struct tl_span *s, struct memory_sum *self,
		      struct memory_sum *all)
{
	struct memory_thread *th;
	struct frame *outer;

	*self = *all = (struct memory_sum){0};
	if (!w->list.nr)
		return;
	th = &w->threads[s->thread]; /* has the frame of the begin */
	take_until(w, s->thread, s->whole_end_ns);
	*self = th->frames[th->nr - 1].self;
	*all = th->frames[--th->nr].all;
	if (!th->nr)
		return;
	outer = &th->frames[th->nr - 1];
	memory_add(&outer->all.cpu, all->cpu);
	memory_add(&outer->all.devices, all->devices);
}

void memory_walk__rest(struct memory_walk *w)
{
	for (size_t i = 0; i < w->nr_threads && w->list.nr; i++) {
		w->threads[i].nr = 0;
		take_until(w, (uint32_t)i, UINT64_MAX);
	}
}
