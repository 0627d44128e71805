// SPDX-License-Identifier: BSD-2-Clause
#include "capture/span/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "util/util.h"

/* Deeper than any real program. Bounds the memory when frames are never closed. */
#define MAX_DEPTH 262144
#define MAX_RANGES 4096 /* every event walks over open ranges, so their number is bounded */
#define NR_REGIONS 4

struct frame {
	uint64_t sp, ret_slot;
	uint64_t stack; /* identifies the stack: the end address of its mapping */
	const struct span_return *ret;
	uint64_t number; /* the number from ops.begin(); 0 as long as the frame is silent */
	uint64_t group;
	uint32_t source, probe, description;
	uint64_t begin_ns;
	bool range;
	bool own_result;
	bool silent; /* its begin is not reported: it began before the window, or it is hidden */
	/* began before the window, and was reported as beginning at the window's start */
	bool clipped;
	bool over; /* its end was seen (of a range), or won't be; spans inside it are still open */
	bool certain; /* its end will be seen: its return site was known when it began */
	bool counted; /* the thread has its words of counters */
};

struct region {
	uint64_t lo, hi;
};

struct span_thread {
	struct span_thread *prev, *next;
	struct frame *frames;
	size_t nr, cap;
	size_t nr_ranges;     /* how many of the frames are ranges */
	uint64_t last_ns;     /* time of the last event */
	uint64_t reported_ns; /* time of the last begin or end that was reported */
	uint32_t index, pid;
	/* spans that were open at the window's start have been reported */
	bool in_window;
	struct region now;               /* the stack of the last event */
	struct region known[NR_REGIONS]; /* stacks seen before, replaced round robin */
	uint32_t nr_known;
	const uint64_t *now_counted; /* of the event that is being handled; NULL: none */
	uint64_t *counted;           /* by frame: what was counted at its begin */
	size_t cap_counted;          /* frames that it has room for */
};

struct spans {
	struct spans_ops ops;
	struct span_thread threads; /* list head */
	struct spans_count counts[SPANS_MAX_SOURCES];
	uint64_t late, idle_sites;
	uint64_t window_ns;
	uint32_t words; /* of counters at an event; 0: there are none */
};

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

/*
 * At a thread's first event in the window: reports its open spans as beginning at the window's
 * start.
 */
static int enter_window(struct spans *s, struct span_thread *t)
{
	t->in_window = true;
	t->reported_ns = s->window_ns;
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
static int advance(struct spans *s, struct span_thread *t, uint64_t *time_ns)
{
	if (*time_ns < t->last_ns) {
		s->late++;
		*time_ns = t->last_ns;
	}
	t->last_ns = *time_ns;
	return !t->in_window && *time_ns >= s->window_ns ? enter_window(s, t) : 0;
}

void spans__open_window(struct spans *s, uint64_t window_ns)
{
	s->window_ns = window_ns;
}

int spans__finish(struct spans *s)
{
	int err = 0;

	for (struct span_thread *t = s->threads.next; t != &s->threads && !err; t = t->next)
		if (!t->in_window && s->window_ns != UINT64_MAX)
			err = enter_window(s, t);
	return err;
}

static bool within(const struct region *r, uint64_t sp)
{
	return sp >= r->lo && sp < r->hi;
}

/*
 * Makes t->now the stack that sp lies on. Memory of no known mapping counts as the last event's
 * stack.
 */
static void enter_stack(struct spans *s, struct span_thread *t, uint64_t sp)
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

/*
 * Closes the innermost frame. hit: the return site at which its exact end was seen; NULL: another
 * event showed that it is over.
 */
static int close_top(struct spans *s, struct span_thread *t, uint64_t time_ns, bool exact,
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

	t->nr_ranges -= f->range;
	if (f->silent)
		return 0;
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
	return s->ops.end(s->ops.ctx, &end);
}

/*
 * Closes the frames from index `keep` on, which one event has shown to be over. hit: the event, if
 * it is a return site. Viewers tell a child from a sibling by their times, so each level ends 1 ns
 * before the level around it, and before a span that begins now.
 */
static int close_down_to(struct spans *s, struct span_thread *t, uint64_t time_ns, size_t keep,
			 const struct span_site *hit)
{
	int err = 0;

	while (t->nr > keep && !err) {
		uint64_t early = t->nr - 1 - keep + (hit ? 0 : 1);
		uint64_t end_ns =
			time_ns - t->reported_ns > early ? time_ns - early : t->reported_ns;
		bool exact = ends_at(&t->frames[t->nr - 1], hit);

		err = close_top(s, t, end_ns, exact, exact ? hit : NULL);
	}
	return err;
}

/* Closes ranges whose end was seen while spans inside them were open, once these are closed. */
static int close_overdue(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = 0;

	while (!err && t->nr && t->frames[t->nr - 1].over)
		err = close_top(s, t, time_ns, false, NULL);
	return err;
}

/*
 * Closes every frame of this stack that lies below sp, and whatever was opened inside it. hit NULL:
 * the event is an entry, and shows no frame's exact end. Returns how many were closed, or a
 * negative errno.
 */
static int close_below(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		       const struct span_site *hit)
{
	size_t keep = t->nr;
	int closed, err;

	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (f->range || f->stack != t->now.hi)
			continue;
		if (f->sp >= sp)
			break;
		keep = i;
	}
	closed = (int)(t->nr - keep);
	if (!closed)
		return 0;
	err = close_down_to(s, t, time_ns, keep, hit);
	if (!err)
		err = close_overdue(s, t, time_ns);
	return err ? err : closed;
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

		if (f->range || f->stack != t->now.hi || f->sp < sp)
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
	int n = close_below(s, t, time_ns, over, NULL);

	return n < 0 ? n : 0;
}

/* Keeps what was counted at the begin of the innermost span. */
static int keep_counted(const struct spans *s, struct span_thread *t)
{
	struct frame *top = &t->frames[t->nr - 1];
	uint64_t *more;

	top->counted = s->words && t->now_counted;
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

static int push(struct spans *s, struct span_thread *t, uint64_t time_ns, const struct frame *f)
{
	struct frame *top;
	int err;

	if (t->nr >= MAX_DEPTH || t->nr_ranges >= MAX_RANGES) {
		err = spans__close_all(s, t, time_ns);
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
	top->silent = !t->in_window || !f->description;
	/* of one that began before the window, only the later part will be shown */
	if (top->silent)
		return 0;
	err = keep_counted(s, t);
	if (err)
		return err;
	s->counts[f->source].begins++;
	t->reported_ns = time_ns;
	return s->ops.begin(s->ops.ctx, t->index, time_ns, f->description, &top->number);
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
		.certain = b->ret && b->ret->site && !b->uncertain,
	};
	int err = advance(s, t, &time_ns);

	if (err)
		return err;
	enter_stack(s, t, b->sp);
	err = settle(s, t, time_ns, b->sp, b->ret, b->probe);
	if (err)
		return err;
	f.stack = t->now.hi;
	return push(s, t, time_ns, &f);
}

uint64_t spans__number(const struct span_thread *t)
{
	return t->nr ? t->frames[t->nr - 1].number : 0;
}

bool spans__inside(struct spans *s, struct span_thread *t, const struct span_begin *b,
		   uint64_t ret_addr, uint64_t groups, bool certain)
{
	enter_stack(s, t, b->sp);
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
	int n = advance(s, t, &time_ns);

	if (n)
		return n;
	enter_stack(s, t, hit->sp);
	n = close_below(s, t, time_ns, hit->sp, hit);
	if (n == 0)
		s->idle_sites++;
	return n < 0 ? n : 0;
}

int spans__passed(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp)
{
	int n = advance(s, t, &time_ns);

	if (n)
		return n;
	enter_stack(s, t, sp);
	n = close_below(s, t, time_ns, sp, NULL);
	return n < 0 ? n : 0;
}

int spans__returned(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		    bool (*returned)(void *ctx, uint64_t ret_slot), void *ctx)
{
	size_t keep;
	int err = advance(s, t, &time_ns);

	if (err)
		return err;
	enter_stack(s, t, sp);
	keep = t->nr;
	for (size_t i = t->nr; i-- > 0;) {
		const struct frame *f = &t->frames[i];

		if (!f->range && !f->certain && f->stack == t->now.hi && returned(ctx, f->ret_slot))
			keep = i;
	}
	if (keep == t->nr)
		return 0;
	err = close_down_to(s, t, time_ns, keep, NULL);
	return err ? err : close_overdue(s, t, time_ns);
}

int spans__range_begin(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		       uint32_t description, uint32_t source)
{
	struct frame f = {.range = true, .description = description, .source = source};
	int n = advance(s, t, &time_ns);

	if (n)
		return n;
	enter_stack(s, t, sp);
	n = close_below(s, t, time_ns, sp, NULL);
	if (n < 0)
		return n;
	return push(s, t, time_ns, &f);
}

int spans__range_end(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     uint32_t source)
{
	int n = advance(s, t, &time_ns);

	if (n)
		return n;
	enter_stack(s, t, sp);
	n = close_below(s, t, time_ns, sp, NULL);
	if (n < 0)
		return n;
	for (size_t i = t->nr; i-- > 0;) {
		struct frame *f = &t->frames[i];

		if (!f->range || f->over)
			continue;
		if (i == t->nr - 1) {
			n = close_top(s, t, time_ns, true, NULL);
			return n ? n : close_overdue(s, t, time_ns);
		}
		f->over = true;
		return 0;
	}
	if (t->in_window)
		s->counts[source].orphan_ends++;
	return 0;
}

bool spans__on_stack(struct spans *s, struct span_thread *t, uint64_t sp, uint64_t addr)
{
	enter_stack(s, t, sp);
	return addr >= sp && addr < t->now.hi;
}

int spans__give_up(struct spans *s, struct span_thread *t, uint64_t time_ns,
		   bool (*given_up)(void *ctx, uint32_t probe), void *ctx)
{
	size_t keep = t->nr;
	int err;

	/* not late: nothing has happened on the thread, and it may have gone on */
	if (time_ns < t->last_ns)
		time_ns = t->last_ns;
	err = advance(s, t, &time_ns);
	for (size_t i = 0; i < t->nr && !err; i++)
		t->frames[i].over |= !t->frames[i].range && given_up(ctx, t->frames[i].probe);
	while (keep && t->frames[keep - 1].over)
		keep--;
	return err ? err : close_down_to(s, t, time_ns, keep, NULL);
}

int spans__close_all(struct spans *s, struct span_thread *t, uint64_t time_ns)
{
	int err = advance(s, t, &time_ns);

	return err ? err : close_down_to(s, t, time_ns, 0, NULL);
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
