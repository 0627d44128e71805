// SPDX-License-Identifier: BSD-2-Clause
/*
 * Spans that were split where a capture ended and the next one began. The next one begins with
 * those that were open, outermost first, as of its window's begin: these go on. What it does not
 * begin again has ended in between.
 */
#include "join/impl.h"

#include "kprof.h"
#include "store/store.h"

static struct store_record *source_of(struct join *j, const struct join_span *s)
{
	struct store_record *sums = j->sources.data;

	return s->source && s->source <= j->sources.nr ? &sums[s->source - 1] : NULL;
}

static int push(struct join *j, struct join_thread *t, const struct store_record *r,
		uint64_t description, uint64_t what)
{
	struct join_span *s;

	if (vec_grow((void **)&t->open, &t->cap, t->nr, sizeof(*t->open)))
		return join_no_memory();
	s = &t->open[t->nr++];
	*s = (struct join_span){
		.number = store_writer__begins(j->out) + 1,
		.what = what,
		.source = map64__get(&j->source_of, description),
		.from_start = r->begin.time_ns <= j->now->start_ns,
	};
	return 0;
}

/* Those that were not begun again have ended, at a time that is not known. */
static int close_rest(struct join *j, uint32_t thread)
{
	struct join_thread *t = join_thread(j, thread);
	struct store_record r = {
		.type = STORE_END,
		.end = {.time_ns = j->border_ns, .thread = thread, .flags = KPROF_EVENT_CLOSED}};
	int err = 0;

	while (t->nr > t->went_on && !err) {
		const struct join_span *s = &t->open[--t->nr];
		struct store_record *sum = source_of(j, s);

		if (sum)
			sum->source.ends_closed++;
		r.end.flags = KPROF_EVENT_CLOSED | (s->from_start ? KPROF_EVENT_OPEN_AT_START : 0);
		err = store_writer__put(j->out, &r);
	}
	t->at_border = t->went_on;
	return err;
}

static int begins(struct join *j, struct join_thread *t, uint32_t thread,
		  const struct store_record *r, uint64_t *span)
{
	uint64_t description =
		kprof_copy__number(j->now->copy, STORE_REF_DESCRIPTION, r->begin.description);
	uint64_t what = map64__get(&j->what, description);
	struct store_record *sum;
	int err;

	if (t->went_on < t->at_border) {
		const struct join_span *s = &t->open[t->went_on];

		if (r->begin.time_ns <= j->now->start_ns && s->what == what) {
			sum = source_of(j, s);
			if (sum)
				sum->source.begins--;
			*span = s->number;
			t->went_on++;
			return 2;
		}
		err = close_rest(j, thread);
		if (err)
			return err;
	}
	err = push(j, t, r, description, what);
	return err ? err : 1;
}

int join_event(void *ctx, struct store_record *r, uint64_t *span)
{
	struct join *j = ctx;
	bool begin = r->type == STORE_BEGIN;
	uint64_t index = kprof_copy__number(j->now->copy, STORE_REF_THREAD,
					    begin ? r->begin.thread : r->end.thread);
	struct join_thread *t = join_thread(j, index);
	uint64_t time_ns = begin ? r->begin.time_ns : r->end.time_ns;
	int err = 0;

	if (!t || time_ns >= j->now->until_ns) /* another recording has it */
		return 0;
	if (begin)
		return begins(j, t, (uint32_t)index, r, span);
	if (t->went_on < t->at_border)
		err = close_rest(j, (uint32_t)index);
	if (err || !t->nr)
		return err;
	if (!t->open[--t->nr].from_start)
		r->end.flags &= ~(uint32_t)KPROF_EVENT_OPEN_AT_START;
	if (t->at_border > t->nr) /* it was one that went on */
		t->at_border = t->went_on = t->nr;
	return 1;
}

void join_border(struct join *j)
{
	struct join_thread *threads = j->threads.data;

	for (size_t i = 0; i < j->threads.nr; i++) {
		threads[i].at_border = threads[i].nr;
		threads[i].went_on = 0;
	}
}

int join_end_border(struct join *j)
{
	int err = 0;

	for (size_t i = 0; i < j->threads.nr && !err; i++) {
		const struct join_thread *t = join_thread(j, i);

		if (t->went_on < t->at_border)
			err = close_rest(j, (uint32_t)i);
	}
	return err;
}
