// SPDX-License-Identifier: BSD-2-Clause
#include "sink/kprof/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory to copy a part of the capture");
}

static int mark(void *ctx, const struct tl_span *s)
{
	struct kprof_part *p = ctx;
	size_t word = (size_t)((s->id - 1) / 64);

	while (p->bits.nr <= word) {
		uint64_t *bits = bulk__push(&p->bits);

		if (!bits)
			return no_memory();
		*bits = 0;
	}
	*(uint64_t *)bulk__at(&p->bits, word) |= 1ull << (s->id - 1) % 64;
	return 0;
}

int kprof_part__read(struct kprof_part *p, struct kprof_capture *t)
{
	p->bits.size = sizeof(uint64_t);
	if (!kprof_capture_selection(t))
		return 0;
	p->t = t;
	timeline__extent(t, &p->start_ns, &p->end_ns);
	return timeline__spans(t, mark, p);
}

void kprof_part__free(struct kprof_part *p)
{
	struct vec *threads = p->open.data;

	for (size_t i = 0; i < p->open.nr; i++)
		free(threads[i].data);
	free(p->open.data);
	bulk__free(&p->bits);
}

int kprof_part__start(const struct kprof_part *p, struct store_writer *out)
{
	const struct store_record r = {
		.type = STORE_CLOCK, .clock = {p->start_ns, timeline__real_ns(p->t, p->start_ns)}};

	return store_writer__put(out, &r);
}

static bool is_marked(const struct kprof_part *p, uint64_t span)
{
	size_t word = (size_t)((span - 1) / 64);

	return word < p->bits.nr &&
	       *(const uint64_t *)bulk__at(&p->bits, word) >> (span - 1) % 64 & 1;
}

int kprof_part__begin(struct kprof_part *p, uint32_t thread, uint64_t span)
{
	struct vec *threads;
	bool *copied;

	if (!p->t)
		return 1;
	while (p->open.nr <= thread)
		if (!vec_push(&p->open, sizeof(struct vec)))
			return no_memory();
	threads = p->open.data;
	copied = vec_push(&threads[thread], sizeof(*copied));
	if (!copied)
		return no_memory();
	*copied = is_marked(p, span);
	return *copied;
}

bool kprof_part__end(struct kprof_part *p, uint32_t thread)
{
	struct vec *open = thread < p->open.nr ? (struct vec *)p->open.data + thread : NULL;

	if (!p->t)
		return true;
	return open && open->nr && ((bool *)open->data)[--open->nr];
}

bool kprof_part__has(const struct kprof_part *p, const struct store_record *r)
{
	uint64_t start_ns, end_ns;
	uint32_t beyond;

	if (!p->t)
		return true;
	switch (r->type) {
	case STORE_CLOCK:
		return r->clock.mono_ns > p->start_ns && r->clock.mono_ns <= p->end_ns;
	case STORE_ACTIVITY:
		start_ns = r->activity.start_ns;
		end_ns = r->activity.end_ns;
		break;
	case STORE_API:
		start_ns = r->api.start_ns;
		end_ns = r->api.end_ns;
		break;
	case STORE_GAP:
		start_ns = r->gap.start_ns;
		end_ns = r->gap.end_ns;
		break;
	case STORE_INSTANT:
		start_ns = end_ns = r->instant.time_ns;
		break;
	case STORE_COUNTER:
		start_ns = end_ns = r->counter.time_ns;
		break;
	case STORE_SAMPLE:
		start_ns = end_ns = r->sample.time_ns;
		break;
	default:
		return true;
	}
	return timeline__part(p->t, &start_ns, end_ns < start_ns ? &start_ns : &end_ns, &beyond);
}

void kprof_part__json(const struct kprof_part *p, char out[KPROF_PART_JSON_BYTES])
{
	const struct kprof_selection *s = kprof_capture_selection(p->t);

	snprintf(out, KPROF_PART_JSON_BYTES,
		 "{\"from_mono_ns\":%" PRIu64 ",\"to_mono_ns\":%" PRIu64
		 ",\"events_outside\":%" PRIu64 ",\"samples_outside\":%" PRIu64
		 ",\"activities_outside\":%" PRIu64 "}",
		 s->from_mono_ns, s->to_mono_ns, s->events_outside, s->samples_outside,
		 s->activities_outside);
}
