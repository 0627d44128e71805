// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

struct frame {                            /* an open span */
	uint64_t inside[TL_MAX_COUNTERS]; /* what its direct children had */
	uint32_t unknown;                 /* counters of which one of these has no value */
};

struct counts_thread {
	struct frame *frames;
	size_t nr, cap;
};

int counts__new(const struct kprof_capture *t, struct counts *c)
{
	while (c->nr < TL_MAX_COUNTERS && kprof_capture_counter(t, c->nr))
		c->nr++;
	while (c->nr && timeline__thread(t, c->nr_threads))
		c->nr_threads++;
	c->threads = calloc(c->nr_threads + 1, sizeof(*c->threads));
	return c->threads ? 0 : error_set(-ENOMEM, NULL, "out of memory for counters");
}

void counts__free(struct counts *c)
{
	for (size_t i = 0; c->threads && i < c->nr_threads; i++)
		free(c->threads[i].frames);
	free(c->threads);
	for (uint32_t i = 0; i < c->nr; i++)
		nested__free(&c->rows[i]);
	*c = (struct counts){0};
}

int counts__begin(struct counts *c, uint32_t row, const struct tl_span *s)
{
	struct counts_thread *th;
	int err = 0;

	if (!c->nr)
		return 0;
	th = &c->threads[s->thread];
	if (vec_grow((void **)&th->frames, &th->cap, th->nr, sizeof(*th->frames)))
		return error_set(-ENOMEM, NULL, "out of memory for the spans that are open");
	th->frames[th->nr++] = (struct frame){0};
	for (uint32_t i = 0; i < c->nr && !err; i++)
		err = nested__begin(&c->rows[i], row, s);
	return err;
}

/* A sum that stays at the largest number instead of wrapping around. */
static void add(uint64_t *sum, uint64_t by)
{
	if (__builtin_add_overflow(*sum, by, sum))
		*sum = UINT64_MAX;
}

void counts__end(struct counts *c, const struct kprof_capture *t, uint32_t row,
		 const struct tl_span *s, struct kprof_count *to)
{
	uint64_t values[TL_MAX_COUNTERS] = {0};
	struct frame *own, *around;
	struct counts_thread *th;
	uint32_t known;

	if (!c->nr)
		return;
	th = &c->threads[s->thread]; /* has the frame of the begin */
	if (!th->frames || !th->nr)
		return;
	own = &th->frames[--th->nr];
	around = th->nr ? own - 1 : NULL;
	known = timeline__counts(t, s, values);
	for (uint32_t i = 0; i < c->nr; i++) {
		bool is_known = known >> i & 1;

		add(&to[i].total, nested__end_value(&c->rows[i], row, s, is_known, values[i]));
		to[i].calls += is_known;
		if (is_known && !(own->unknown >> i & 1) && own->inside[i] <= values[i]) {
			add(&to[i].self, values[i] - own->inside[i]);
			to[i].self_calls++;
		}
		if (around && is_known)
			add(&around->inside[i], values[i]);
	}
	if (around)
		around->unknown |= ~known;
}
