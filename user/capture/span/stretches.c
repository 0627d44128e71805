// SPDX-License-Identifier: BSD-2-Clause
#include "capture/span/impl.h"

#include <errno.h>

#include "util/util.h"

#define MAX_STRETCHES 1024 /* of one thread */

/*
 * Ends the stretch with this index. Calls inside of it are over, too, even if their ends were not
 * seen. If a range goes on that began inside, the stretch ends with that.
 */
static int end_stretch(struct spans *s, struct span_thread *t, uint64_t time_ns, size_t at)
{
	size_t open = t->nr;

	for (size_t i = at + 1; i < t->nr; i++)
		if (t->frames[i].range && !t->frames[i].stretch && !t->frames[i].over)
			open = i;
	if (open == t->nr)
		return spans_close_down_to(s, t, time_ns, at, NULL);
	for (size_t i = at; i < open; i++) {
		spans_leave_stretch(t, &t->frames[i]);
		t->frames[i].over |= t->frames[i].stretch != 0;
	}
	return spans_close_down_to(s, t, time_ns, open + 1, NULL);
}

/* The index of the first open stretch that does not go on; t->nr: there is none. */
static size_t first_stale(const struct span_thread *t)
{
	size_t same = 0;

	for (size_t i = 0; i < t->nr; i++) {
		if (!t->frames[i].stretch || t->frames[i].over)
			continue;
		if (same == t->nr_told || t->frames[i].stretch != t->told[same].key)
			return i;
		same++;
	}
	return t->nr;
}

/* Makes the list what the thread is in. */
static int tell(struct span_thread *t, const struct span_stretch *list, size_t nr, bool on)
{
	size_t kept = t->nr_told;

	while (on && kept > 0 && (!nr || t->told[kept - 1].key != list[0].key))
		kept--;
	if (on && !kept)
		return -ENOENT;
	kept = on ? kept - 1 : 0;
	if (kept + nr > MAX_STRETCHES)
		return -ENOENT;
	t->nr_told = kept;
	for (size_t i = 0; i < nr; i++) {
		if (vec_grow((void **)&t->told, &t->told_cap, t->nr_told, sizeof(*t->told)))
			return -ENOMEM;
		t->told[t->nr_told++] = list[i];
	}
	return 0;
}

/* Opens those that are not open. Each level begins step_ns after the level around it. */
static int open_all(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t step_ns)
{
	int err = 0;

	for (; t->nr_stretches < t->nr_told && !err; time_ns += step_ns) {
		const struct span_stretch *next = &t->told[t->nr_stretches];
		const struct frame f = {.range = true,
					.stretch = next->key,
					.description = next->description,
					.source = next->source};

		t->last_ns = time_ns;
		err = spans_push(s, t, time_ns, &f);
	}
	return err;
}

int spans_reopen(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	return open_all(s, t, time_ns, 0);
}

int spans__stretches(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     const struct span_stretch *list, size_t nr, bool on)
{
	size_t stale;
	int err = tell(t, list, nr, on), n;

	if (err)
		return err;
	/*
	 * First, so that what has ended before the window is not reported as open at its begin, and
	 * calls inside whose ends were not seen make the stretch's end inexact.
	 */
	stale = first_stale(t);
	if (stale < t->nr)
		err = end_stretch(s, t, time_ns > t->last_ns ? time_ns : t->last_ns, stale);
	n = err ? err : spans_arrive(s, t, &time_ns, sp, NULL);
	if (n < 0)
		return n;
	return open_all(s, t, time_ns, 1);
}

/* The latest time that was an event's, or was reported. */
static uint64_t last_ns(const struct span_thread *t)
{
	return t->last_ns > t->reported_ns ? t->last_ns : t->reported_ns;
}

int spans__finish(struct spans *s)
{
	int err = 0;

	for (struct span_thread *t = s->threads.next; t != &s->threads && !err; t = t->next) {
		if (!t->in_window && s->window_ns != UINT64_MAX)
			err = spans_enter_window(s, t);
		/* those inside of which nothing goes on have ended, as far as is known */
		t->nr_told = 0;
		while (!err && t->nr && t->frames[t->nr - 1].stretch)
			err = spans_close_down_to(s, t, last_ns(t) + 2, t->nr - 1, NULL);
	}
	return err;
}

/* ---- a window ends, and the next one begins ---- */

int spans__end_window(struct spans *s)
{
	int err = 0;

	for (struct span_thread *t = s->threads.next; t != &s->threads && !err; t = t->next)
		if (!t->in_window && s->window_ns != UINT64_MAX)
			err = spans_enter_window(s, t);
	return err;
}

static int rotate_thread(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = 0;

	/* what comes late of before counts as of the border */
	if (t->last_ns < time_ns)
		t->last_ns = time_ns;
	for (size_t i = 0; i < t->nr && !err; i++) {
		struct frame *f = &t->frames[i];

		if (f->silent || !f->description)
			continue;
		err = s->ops.again(s->ops.ctx, t->index, time_ns, f->description, f->number,
				   f->begin_ns);
		f->clipped = true;
		s->counts[f->source].begins++;
		t->reported_ns = t->sure_ns = time_ns;
	}
	return err;
}

int spans__rotate(struct spans *s, uint64_t time_ns)
{
	int err = 0;

	for (struct span_thread *t = s->threads.next; t != &s->threads && !err; t = t->next)
		err = rotate_thread(s, t, time_ns);
	s->window_ns = time_ns;
	return err;
}
