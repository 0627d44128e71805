// SPDX-License-Identifier: BSD-2-Clause
#include "capture/span/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "util/util.h"

int spans__new(const struct spans_ops *ops, struct spans **out)
{
	struct spans *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->threads.prev = s->threads.next = &s->threads;
	s->window_ns = UINT64_MAX;
	*out = s;
	return 0;
}

static void thread_free(struct span_thread *t)
{
	t->prev->next = t->next;
	t->next->prev = t->prev;
	free(t->frames);
	free(t->told);
	free(t->counted);
	free(t);
}

void spans__with_counters(struct spans *s, uint32_t words)
{
	s->words = words;
}

void spans__counted(struct span_thread *t, const uint64_t *words)
{
	t->now_counted = words;
}

void spans__free(struct spans *s)
{
	struct span_thread *t, *next;

	if (!s)
		return;
	for (t = s->threads.next; t != &s->threads; t = next) {
		next = t->next;
		free(t->frames);
		free(t->told);
		free(t->counted);
		free(t);
	}
	free(s);
}

struct span_thread *spans__thread(struct spans *s, uint32_t index, uint32_t pid)
{
	struct span_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->index = index;
	t->pid = pid;
	t->next = &s->threads;
	t->prev = s->threads.prev;
	t->prev->next = t->next->prev = t;
	return t;
}

void spans__open_window(struct spans *s, uint64_t window_ns)
{
	s->window_ns = window_ns;
}

/*
 * Frames that began at the same stack pointer are still open when the innermost of them tail-called
 * the new function: that is another function with the same return address in the same slot. The
 * same function again is a new call, whether or not it had tail-called others before.
 */
static bool tail_called(const struct span_thread *t, uint64_t sp, const struct span_return *ret,
			uint32_t probe)
{
	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (f->range || f->over || f->stack != t->now.hi || f->sp < sp)
			continue;
		if (f->sp != sp)
			break;
		if (!ret || f->ret != ret || f->probe == probe)
			return false;
	}
	return true;
}

/* Before a new frame at sp: closes frames below it, and frames at sp unless they tail-called it. */
static int settle(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		  const struct span_return *ret, uint32_t probe)
{
	uint64_t over = tail_called(t, sp, ret, probe) ? sp : sp + 1;
	int n = spans_close_below(s, t, time_ns, over, NULL);

	return n < 0 ? n : 0;
}

static int range_begins(const struct spans *s, const struct span_thread *t, uint64_t time_ns,
			uint32_t description)
{
	return s->ops.range_begins
		       ? s->ops.range_begins(s->ops.ctx, t->pid, t->index, time_ns, description)
		       : 0;
}

int spans__begin(struct spans *s, struct span_thread *t, const struct span_begin *b)
{
	uint64_t time_ns = b->time_ns;
	struct frame f = {
		.description = b->description,
		.sp = b->sp,
		.ret_slot = b->ret_slot,
		.ret = b->ret,
		.source = b->source,
		.probe = b->probe,
		.group = b->group,
		.own_result = b->own_result,
		.announced = b->announced,
		.certain = b->ret && b->ret->site && !b->uncertain,
	};
	int err = spans_advance(s, t, &time_ns);

	if (err)
		return err;
	spans_enter_stack(s, t, b->sp);
	err = settle(s, t, time_ns, b->sp, b->ret, b->probe);
	if (!err && b->announced) {
		err = range_begins(s, t, time_ns, b->description);
		if (!err)
			err = spans_advance(s, t, &time_ns); /* the window may be open now */
	}
	if (err)
		return err;
	f.stack = t->now.hi;
	err = spans_reopen(s, t, time_ns);
	return err ? err : spans_push(s, t, time_ns, &f);
}

uint32_t spans__innermost(const struct span_thread *t)
{
	size_t i = t->nr;

	while (i && (t->frames[i - 1].over || !t->frames[i - 1].description))
		i--;
	return i ? t->frames[i - 1].description : 0;
}

uint64_t spans__number(const struct span_thread *t)
{
	return t->nr ? t->frames[t->nr - 1].number : 0;
}

bool spans__inside(struct spans *s, struct span_thread *t, const struct span_begin *b,
		   uint64_t ret_addr, uint64_t groups, bool certain)
{
	spans_enter_stack(s, t, b->sp);
	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (f->range || f->stack != t->now.hi)
			return false;
		/*
		 * A frame with the same stack pointer is over, unless it made this call by a jump
		 * (tail call).
		 */
		if (f->sp > b->sp ||
		    (f->sp == b->sp && f->probe != b->probe && f->ret && f->ret->addr == ret_addr))
			return f->group & groups && (f->certain || !certain);
	}
	return false;
}

int spans__site(struct spans *s, struct span_thread *t, const struct span_site *hit)
{
	uint64_t time_ns = hit->time_ns;
	int n = spans_arrive(s, t, &time_ns, hit->sp, hit);

	if (n == 0)
		s->idle_sites++;
	return n < 0 ? n : 0;
}

int spans__passed(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp)
{
	int n = spans_arrive(s, t, &time_ns, sp, NULL);

	return n < 0 ? n : 0;
}

int spans__returned(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		    bool (*returned)(void *ctx, uint64_t ret_slot), void *ctx)
{
	size_t keep;
	int err = spans_advance(s, t, &time_ns);

	if (err)
		return err;
	spans_enter_stack(s, t, sp);
	keep = t->nr;
	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (!f->range && !f->certain && f->stack == t->now.hi && returned(ctx, f->ret_slot))
			keep = i;
	}
	if (keep == t->nr)
		return 0;
	err = spans_close_down_to(s, t, time_ns, keep, NULL);
	return err ? err : spans_close_overdue(s, t, time_ns);
}

int spans__range_begin(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		       uint32_t description, uint32_t source)
{
	struct frame f = {.range = true, .description = description, .source = source};
	int n = range_begins(s, t, time_ns, description);

	if (!n)
		n = spans_arrive(s, t, &time_ns, sp, NULL);
	if (n < 0)
		return n;
	n = spans_reopen(s, t, time_ns);
	return n ? n : spans_push(s, t, time_ns, &f);
}

int spans__range_end(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     uint32_t source)
{
	int n = spans_arrive(s, t, &time_ns, sp, NULL);

	if (n < 0)
		return n;
	for (size_t i = t->nr; i-- > 0;) {
		struct frame *f = &t->frames[i];

		if (!f->range || f->over || f->observed || f->stretch)
			continue;
		if (i == t->nr - 1) {
			n = spans_close_top(s, t, time_ns, true, NULL);
			return n ? n : spans_close_overdue(s, t, time_ns);
		}
		f->over = true;
		return 0;
	}
	if (t->in_window)
		s->counts[source].orphan_ends++;
	return 0;
}

int spans__observed_begin(struct spans *s, struct span_thread *t, uint64_t time_ns,
			  uint32_t description, uint32_t source, bool crosses)
{
	struct frame f = {.range = true,
			  .observed = true,
			  .crosses = crosses,
			  .description = description,
			  .source = source};
	int err = spans_advance(s, t, &time_ns);
	size_t keep = t->nr;

	/* No call that a probe sees makes operators: such calls have returned, if unseen. */
	for (size_t i = t->nr; i-- > 0 && !t->frames[i].observed;)
		t->frames[i].over |= !t->frames[i].range;
	while (keep && t->frames[keep - 1].over)
		keep--;
	if (!err)
		err = spans_close_down_to(s, t, time_ns, keep, NULL);
	return err ? err : spans_push(s, t, time_ns, &f);
}

size_t spans__observed(const struct span_thread *t)
{
	return t->nr_observed;
}

int spans__observed_end(struct spans *s, struct span_thread *t, uint64_t time_ns, bool exact,
			uint32_t inside, uint32_t source)
{
	bool crossed = false;
	size_t at;
	int err = spans_advance(s, t, &time_ns);

	if (err)
		return err;
	if (inside >= t->nr_observed) { /* without a look at what else may be open */
		s->counts[source].orphan_ends += t->in_window;
		return 0;
	}
	for (at = t->nr;; at--) {
		const struct frame *f = &t->frames[at - 1];

		if (f->observed && !f->over && !inside--)
			break;
		crossed |= f->range && !f->over && !f->stretch;
	}
	if (crossed && t->frames[at - 1].crosses) {
		t->frames[at - 1].over = true;
		t->nr_observed--;
		return 0;
	}
	err = spans_close_down_to(s, t, time_ns, at, NULL);
	if (!err)
		err = spans_close_top(s, t, time_ns, exact, NULL);
	return err ? err : spans_close_overdue(s, t, time_ns);
}

bool spans__on_stack(struct spans *s, struct span_thread *t, uint64_t sp, uint64_t addr)
{
	spans_enter_stack(s, t, sp);
	return addr >= sp && addr < t->now.hi;
}

/* At a time at which nothing has happened on the thread. Not late: it may have gone on. */
static int advance_unseen(struct spans *s, struct span_thread *t, uint64_t *time_ns)
{
	if (*time_ns < t->last_ns)
		*time_ns = t->last_ns;
	return spans_advance(s, t, time_ns);
}

int spans__give_up(struct spans *s, struct span_thread *t, uint64_t time_ns,
		   bool (*given_up)(void *ctx, uint32_t probe), void *ctx)
{
	size_t keep = t->nr;
	int err = advance_unseen(s, t, &time_ns);

	for (size_t i = 0; i < t->nr && !err; i++)
		if (!t->frames[i].observed && !t->frames[i].stretch)
			t->frames[i].over |=
				given_up(ctx, t->frames[i].range ? UINT32_MAX : t->frames[i].probe);
	while (keep && t->frames[keep - 1].over)
		keep--;
	return err ? err : spans_close_down_to(s, t, time_ns, keep, NULL);
}

int spans__leave(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = advance_unseen(s, t, &time_ns);

	return err ? err : spans_close_down_to(s, t, time_ns, 0, NULL);
}

int spans__close_all(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = spans_advance(s, t, &time_ns);

	t->nr_told = 0;
	return err ? err : spans_close_down_to(s, t, time_ns, 0, NULL);
}

int spans__thread_end(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = spans__close_all(s, t, time_ns);

	thread_free(t);
	return err;
}

const struct spans_count *spans__count(const struct spans *s, uint32_t source)
{
	return &s->counts[source % SPANS_MAX_SOURCES];
}

uint64_t spans__late(const struct spans *s)
{
	return s->late;
}

uint64_t spans__idle_sites(const struct spans *s)
{
	return s->idle_sites;
}
