// SPDX-License-Identifier: BSD-2-Clause
/* A thread's open spans: opening one, and closing those that an event shows to be over. */
#include "capture/span/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "util/util.h"

/* Deeper than any real program. Bounds the memory when frames are never closed. */
#define MAX_DEPTH 262144
#define MAX_RANGES 4096 /* every event walks over open ranges, so their number is bounded */

/*
 * At a thread's first event in the window: reports its open spans as beginning at the window's
 * start.
 */
int spans_enter_window(struct spans *s, struct span_thread *t)
{
	t->in_window = true;
	t->reported_ns = t->sure_ns = s->window_ns;
	for (size_t i = 0; i < t->nr; i++) {
		struct frame *f = &t->frames[i];
		int err;

		if (!f->description) /* hidden */
			continue;
		err = s->ops.begin(s->ops.ctx, t->index, s->window_ns, f->description, &f->number);
		if (err)
			return err;
		f->silent = false;
		f->clipped = true;
		s->counts[f->source].begins++;
	}
	return 0;
}

/* Keeps the times of one thread from going back, since spans would cross otherwise. */
int spans_advance(struct spans *s, struct span_thread *t, uint64_t *time_ns)
{
	if (*time_ns < t->last_ns) {
		s->late++;
		*time_ns = t->last_ns;
	}
	t->last_ns = *time_ns;
	return !t->in_window && *time_ns >= s->window_ns ? spans_enter_window(s, t) : 0;
}

static bool within(const struct region *r, uint64_t sp)
{
	return sp >= r->lo && sp < r->hi;
}

/*
 * Makes t->now the stack that sp lies on. Memory of no known mapping counts as the last event's
 * stack.
 */
void spans_enter_stack(struct spans *s, struct span_thread *t, uint64_t sp)
{
	struct region r, *slot;

	if (within(&t->now, sp))
		return;
	for (uint32_t i = 0; i < NR_REGIONS; i++) {
		if (within(&t->known[i], sp)) {
			t->now = t->known[i];
			return;
		}
	}
	if (!s->ops.region || s->ops.region(s->ops.ctx, t->pid, sp, &r.lo, &r.hi))
		return;
	slot = &t->known[t->nr_known++ % NR_REGIONS];
	for (uint32_t i = 0; i < NR_REGIONS; i++)
		if (t->known[i].hi == r.hi) /* the main stack has grown */
			slot = &t->known[i];
	*slot = t->now = r;
}

static bool ends_at(const struct frame *f, const struct span_site *hit)
{
	return hit && f->ret && f->ret->site && f->ret->site == hit->site &&
	       f->ret_slot + 8 + (uint64_t)(int64_t)f->ret->sp_delta_bytes == hit->sp;
}

static int range_ended(struct spans *s, const struct span_thread *t, const struct frame *f,
		       uint64_t time_ns)
{
	if ((!f->range && !f->announced) || !s->ops.range_ended)
		return 0;
	return s->ops.range_ended(s->ops.ctx, t->pid, t->index, time_ns, f->description);
}

/*
 * Closes the innermost frame. hit: the return site at which its exact end was seen; NULL: another
 * event showed that it is over.
 */
int spans_close_top(struct spans *s, struct span_thread *t, uint64_t time_ns, bool exact,
		    const struct span_site *hit)
{
	struct frame *f = &t->frames[--t->nr];
	struct span_end end = {
		.thread = t->index,
		.flags = f->clipped ? KPROF_EVENT_OPEN_AT_START : 0,
		.begin_ns = f->begin_ns,
		.time_ns = time_ns,
		.number = f->number,
		.probe = f->range ? UINT32_MAX : f->probe,
		.site = hit ? hit->site : 0,
	};
	int err;

	t->nr_ranges -= f->range;
	t->nr_observed -= f->observed && !f->over;
	spans_leave_stretch(t, f);
	if (f->silent)
		return range_ended(s, t, f, time_ns);
	if (!exact)
		end.flags |= KPROF_EVENT_CLOSED;
	if (exact)
		s->counts[f->source].ends_exact++;
	else
		s->counts[f->source].ends_closed++;
	if (exact && f->counted && t->now_counted) {
		end.at_begin = t->counted + t->nr * s->words;
		end.at_end = t->now_counted;
	}
	if (hit && hit->has_result && f->ret->keeps_result && !f->own_result) {
		end.has_result = true;
		end.result = hit->result;
	}
	t->reported_ns = time_ns;
	if (exact)
		t->sure_ns = time_ns;
	err = s->ops.end(s->ops.ctx, &end);
	return err ? err : range_ended(s, t, f, time_ns);
}

/*
 * Closes the frames from index `keep` on, which one event has shown to be over. hit: the event, if
 * it is a return site. Viewers tell a child from a sibling by their times, so each level ends 1 ns
 * before the level around it, and before a span that begins now.
 */
int spans_close_down_to(struct spans *s, struct span_thread *t, uint64_t time_ns, size_t keep,
			const struct span_site *hit)
{
	int err = 0;

	while (t->nr > keep && !err) {
		uint64_t early = t->nr - 1 - keep + (hit ? 0 : 1);
		uint64_t end_ns =
			time_ns - t->reported_ns > early ? time_ns - early : t->reported_ns;
		const struct frame *f = &t->frames[t->nr - 1];
		bool exact = ends_at(f, hit);

		/* It ends with the last span inside of it, as far as that one's end was seen. */
		if (f->stretch && t->reported_ns < end_ns)
			end_ns = t->reported_ns + 1;
		if (f->stretch)
			exact = t->sure_ns == t->reported_ns && (hit || !spans_goes_on(t, f));
		err = spans_close_top(s, t, end_ns, exact, exact && !f->stretch ? hit : NULL);
	}
	return err;
}

/* Closes ranges whose end was seen while spans inside them were open, once these are closed. */
int spans_close_overdue(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = 0;

	while (!err && t->nr && t->frames[t->nr - 1].over)
		err = spans_close_top(s, t, time_ns, false, NULL);
	return err;
}

/*
 * Closes every frame of this stack that lies below sp, and whatever was opened inside it. hit NULL:
 * the event is an entry, and shows no frame's exact end. Returns how many were closed, or a
 * negative errno.
 */
int spans_close_below(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		      const struct span_site *hit)
{
	size_t keep = t->nr;
	int closed, err;

	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (f->range || f->over || f->stack != t->now.hi)
			continue;
		if (f->sp >= sp)
			break;
		keep = i;
	}
	closed = (int)(t->nr - keep);
	if (!closed)
		return 0;
	err = spans_close_down_to(s, t, time_ns, keep, hit);
	if (!err)
		err = spans_close_overdue(s, t, time_ns);
	return err ? err : closed;
}

int spans_arrive(struct spans *s, struct span_thread *t, uint64_t *time_ns, uint64_t sp,
		 const struct span_site *hit)
{
	int n = spans_advance(s, t, time_ns);

	if (n)
		return n;
	spans_enter_stack(s, t, sp);
	return spans_close_below(s, t, *time_ns, sp, hit);
}

/* Keeps what was counted at the begin of the innermost span. */
static int keep_counted(const struct spans *s, struct span_thread *t)
{
	struct frame *top = &t->frames[t->nr - 1];
	uint64_t *more;

	/* what ends a stretch is seen only later */
	top->counted = s->words && t->now_counted && !top->stretch;
	if (!top->counted)
		return 0;
	if (t->cap_counted < t->cap) {
		more = reallocarray(t->counted, t->cap, s->words * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->counted = more;
		t->cap_counted = t->cap;
	}
	memcpy(t->counted + (t->nr - 1) * s->words, t->now_counted, s->words * sizeof(*more));
	return 0;
}

int spans_push(struct spans *s, struct span_thread *t, uint64_t time_ns, const struct frame *f)
{
	struct frame *top;
	int err;

	if (t->nr >= MAX_DEPTH || t->nr_ranges >= MAX_RANGES) {
		err = spans_close_down_to(s, t, time_ns, 0, NULL);
		if (err)
			return err;
	}
	err = vec_grow((void **)&t->frames, &t->cap, t->nr, sizeof(*t->frames));
	if (err)
		return err;
	top = &t->frames[t->nr++];
	*top = *f;
	top->begin_ns = time_ns;
	t->nr_ranges += f->range;
	t->nr_observed += f->observed;
	t->nr_stretches += f->stretch != 0;
	top->silent = !t->in_window || !f->description;
	/* of one that began before the window, only the later part will be shown */
	if (top->silent)
		return 0;
	err = keep_counted(s, t);
	if (err)
		return err;
	s->counts[f->source].begins++;
	t->reported_ns = t->sure_ns = time_ns;
	return s->ops.begin(s->ops.ctx, t->index, time_ns, f->description, &top->number);
}
