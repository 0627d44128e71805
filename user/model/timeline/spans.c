// SPDX-License-Identifier: BSD-2-Clause
/*
 * Turns begins and ends into spans, with one stack of open spans per thread; nothing is kept of
 * spans that have ended.
 *
 * Whatever the file says, the spans of one thread nest and none ends before it starts: a time that
 * goes backwards on a thread is replaced by the thread's latest time, and one outside the window by
 * the window's edge. So a child lies within its parent, children of one parent do not overlap, and
 * a duration minus those of the direct children is never negative.
 */
#include "model/timeline/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "model/timeline/attrs.h"
#include "model/timeline/python.h"
#include "util/error.h"

/* Open spans at one time, on all threads together. Real programs have some hundred per thread. */
#define MAX_OPEN_SPANS (1u << 20)
/* A stack of open spans with room for at most this many is kept when it gets empty. */
#define KEEP_FRAMES 256

struct frame {
	uint64_t start_ns;
	uint64_t whole_start_ns; /* before it was cut to the selected range */
	uint64_t child_ns;       /* total duration of the direct children that have ended */
	uint64_t id;
	void *data;           /* stored by the walker's begin() */
	uint32_t description; /* index */
	uint32_t flags;
	/* Indexes + 1 in the stack, 0: none. */
	uint32_t around; /* of the innermost frame around it that is handed out */
	uint32_t module; /* of the innermost call of a module, which may be itself */
	uint32_t depth;  /* frames around it that are handed out */
};

struct stack {
	struct frame *frames;
	uint32_t nr;
	/*
	 * How many of them, the outer ones, have been handed out. A span that began before the
	 * selected range is handed out when something of its thread shows that it reaches into it.
	 */
	uint32_t nr_out;
	/*
	 * How many of them are placed among the Python functions. The others wait for the thread's
	 * next event: by then the stack of the innermost one is known.
	 */
	uint32_t nr_placed;
	size_t cap;
	uint64_t floor_ns; /* where its recording begins */
	uint64_t last_ns;  /* latest time seen on this thread */
};

/* How many spans of one source began, and how they ended, in this walk. */
struct tally {
	uint64_t begins, exact, closed, window;
};

struct walk {
	struct kprof_capture *t;
	const struct tl_walker *walker; /* NULL: count only */
	void *ctx;
	struct stack *stacks;       /* by thread index */
	struct tally *tallies;      /* by source index */
	uint64_t floor_ns, ceil_ns; /* the window */
	uint64_t first_ns,
		last_ns; /* times of events as they are in the file; UINT64_MAX, 0: no events */
	uint64_t nr_begun, orphan_ends;
	uint32_t nr_open;
	struct attrs attrs;           /* attributes of spans that have not ended */
	const struct tl_nn **modules; /* room for TL_MAX_MODULES, of the span that is handed out */
	struct functions *functions;  /* NULL: the walker does not want them */
};

static const struct tl_description *what_at(const struct walk *w, uint32_t i)
{
	return (const struct tl_description *)w->t->descriptions.data + i;
}

/* Frees a large empty stack, so that memory depends on the spans that are open now. */
static void stack_shrink(struct stack *s)
{
	struct frame *less;

	if (s->cap <= KEEP_FRAMES || s->nr >= s->cap / 4)
		return;
	less = reallocarray(s->frames, s->cap / 2, sizeof(*less));
	if (!less)
		return;
	s->frames = less;
	s->cap /= 2;
}

/* Returns the time, moved into the window and to no earlier than the thread's latest time. */
static uint64_t settle_time(struct walk *w, struct stack *s, uint64_t ns)
{
	if (ns < w->first_ns)
		w->first_ns = ns;
	if (ns > w->last_ns)
		w->last_ns = ns;
	if (ns > w->ceil_ns)
		ns = w->ceil_ns;
	if (ns < s->last_ns)
		ns = s->last_ns;
	s->last_ns = ns;
	return ns;
}

static const struct tl_nn *nn_of(const struct walk *w, const struct frame *f)
{
	return what_at(w, f->description)->nn;
}

static bool is_visible(const struct walk *w, const struct frame *f)
{
	return (w->walker && w->walker->modules) || !nn_of(w, f);
}

/* Places a new frame, the innermost of the stack, among those around it. */
static void place(const struct walk *w, const struct stack *s, struct frame *f)
{
	const struct frame *outer = s->nr > 1 ? f - 1 : NULL;

	f->around = !outer ? 0 : is_visible(w, outer) ? s->nr - 1 : outer->around;
	f->depth = f->around ? s->frames[f->around - 1].depth + 1 : 0;
	f->module = nn_of(w, f) ? s->nr : outer ? outer->module : 0;
}

/* Fills in the calls of modules around the frame with this index. */
static void add_modules(const struct walk *w, const struct stack *s, uint32_t at,
			struct tl_span *out)
{
	const struct tl_nn **to = w->modules + TL_MAX_MODULES;
	const struct frame *f = at ? &s->frames[at - 1] : NULL;

	while (f && f->module && to > w->modules) {
		uint32_t i = f->module - 1;

		if (!out->module_id)
			out->module_id = s->frames[i].id;
		*--to = nn_of(w, &s->frames[i]);
		f = i ? &s->frames[i - 1] : NULL;
	}
	out->modules = to;
	out->nr_modules = (uint32_t)(w->modules + TL_MAX_MODULES - to);
}

static void span_of(const struct walk *w, uint32_t thread, uint32_t at, struct tl_span *out)
{
	const struct stack *s = &w->stacks[thread];
	const struct frame *f = &s->frames[at];
	const struct frame *parent = f->around ? &s->frames[f->around - 1] : NULL;

	*out = (struct tl_span){
		.description = what_at(w, f->description),
		.parent_what = parent ? what_at(w, parent->description) : NULL,
		.thread = thread,
		.start_ns = f->start_ns,
		.whole_start_ns = f->whole_start_ns,
		.id = f->id,
		.parent_id = parent ? parent->id : 0,
		.depth = f->depth,
		.flags = f->flags,
	};
	add_modules(w, s, at, out);
}

static bool handed_out(const struct walk *w, uint32_t thread)
{
	return w->walker && (!w->walker->pid || tl_pid(w->t, thread) == w->walker->pid);
}

/* The time as the walker is told it: within the selected range, if spans are to be cut. */
static uint64_t cut_time(const struct walk *w, uint64_t ns)
{
	const struct kprof_capture *t = w->t;

	if (!w->walker || !t->range.set || !t->range.cut)
		return ns;
	if (ns < t->info.start_mono_ns)
		return t->info.start_mono_ns;
	return ns > t->info.end_mono_ns ? t->info.end_mono_ns : ns;
}

/* Hands out the begins of a thread's open spans that are not yet, if they began by upto_ns. */
static int hand_out(struct walk *w, uint32_t thread, uint64_t upto_ns)
{
	struct stack *s = &w->stacks[thread];
	struct tl_span span;
	int err = 0;

	while (!err && s->nr_out < s->nr && s->frames[s->nr_out].whole_start_ns <= upto_ns) {
		struct frame *f = &s->frames[s->nr_out++];

		if (w->functions)
			err = functions__enter(w->functions, thread, s->nr_out - 1);
		if (err || !handed_out(w, thread) || !w->walker->begin || !is_visible(w, f))
			continue;
		span_of(w, thread, s->nr_out - 1, &span);
		err = w->walker->begin(w->ctx, &span,
				       f->around ? s->frames[f->around - 1].data : NULL, &f->data);
	}
	return err;
}

/* Hands out the begins that came in order of time, as far as they are in the selected range. */
static int hand_out_new(struct walk *w, uint32_t thread, const struct frame *f)
{
	const struct tl_range *range = &w->t->range;

	if (!range->set)
		return hand_out(w, thread, UINT64_MAX);
	return f->whole_start_ns < range->from_ns ? 0 : hand_out(w, thread, range->upto_ns);
}

/* An annotation may go on when the function has returned in which it began. */
static bool is_range(const struct walk *w, const struct frame *f)
{
	return !strcmp(what_at(w, f->description)->category, "user_annotation");
}

/* Places a thread's latest spans among the Python functions, and hands their begins out. */
static int place_new(struct walk *w, uint32_t thread)
{
	struct stack *s = &w->stacks[thread];
	struct functions_new n = {
		.thread = thread, .base = s->nr_placed, .nr = s->nr - s->nr_placed};
	const struct store_attr *stack;
	const struct frame *f = NULL;
	int err = 0;

	if (!w->functions || !n.nr)
		return 0;
	s->nr_placed = s->nr;
	for (uint32_t i = 0; i < n.nr; i++) {
		f = &s->frames[n.base + i];
		if (i < FUNCTIONS_MOST_NEW)
			n.spans[i] = (struct functions_span){f->whole_start_ns, f->id,
							     nn_of(w, f) != NULL};
	}
	stack = attrs__find(&w->attrs, f->id, STORE_ATTR_STACK);
	n.stack = stack ? (uint32_t)stack->value : 0;
	n.range = is_range(w, f);
	n.module = n.base ? s->frames[n.base - 1].module : 0;
	n.module_id = n.module ? s->frames[n.module - 1].id : 0;
	if (handed_out(w, thread))
		err = functions__begun(w->functions, &n);
	return err ? err : hand_out_new(w, thread, f);
}

/* Before another span begins: modules wait for the operator inside, which has the stack. */
static int place_before(struct walk *w, uint32_t thread)
{
	const struct stack *s = &w->stacks[thread];

	return s->nr > s->nr_placed && nn_of(w, &s->frames[s->nr - 1]) ? 0 : place_new(w, thread);
}

static int begin_span(struct walk *w, const struct store_record *r)
{
	struct stack *s = &w->stacks[r->begin.thread];
	struct frame *f;
	int err = place_before(w, r->begin.thread);

	if (err)
		return err;
	if (w->nr_open == MAX_OPEN_SPANS)
		return error_set(-E2BIG, "it is damaged, or was not written by kprof",
				 "%s: more than %u spans are open at once", w->t->path,
				 MAX_OPEN_SPANS);
	if (vec_grow((void **)&s->frames, &s->cap, s->nr, sizeof(*f)))
		return error_set(-ENOMEM, NULL, "out of memory for the open spans of a thread");
	f = &s->frames[s->nr++];
	*f = (struct frame){
		.whole_start_ns = settle_time(w, s, r->begin.time_ns),
		.id = ++w->nr_begun,
		.description = r->begin.description - 1,
	};
	place(w, s, f);
	f->start_ns = cut_time(w, f->whole_start_ns);
	f->flags = what_at(w, f->description)->flags;
	/* Its begin was recorded at the window's very start: see spans__open_window(). */
	if (r->begin.time_ns <= s->floor_ns)
		f->flags |= KPROF_EVENT_OPEN_AT_START;
	w->nr_open++;
	w->tallies[what_at(w, f->description)->source].begins++;
	return w->functions ? 0 : hand_out_new(w, r->begin.thread, f);
}

/* Ends the innermost open span of a thread; there must be one. */
static int end_span(struct walk *w, uint32_t thread, uint64_t whole_end_ns, uint32_t flags)
{
	struct stack *s = &w->stacks[thread];
	struct frame *f = &s->frames[s->nr - 1];
	uint64_t end_ns = cut_time(w, whole_end_ns), duration_ns = end_ns - f->start_ns;
	struct tally *tally = &w->tallies[what_at(w, f->description)->source];
	bool selected = tl_overlaps(w->t, f->whole_start_ns, whole_end_ns);
	int err = selected ? hand_out(w, thread, UINT64_MAX) : 0;
	bool visible = is_visible(w, f);
	void *data = f->data;
	struct tl_span span;

	span_of(w, thread, s->nr - 1, &span);
	span.end_ns = end_ns;
	span.whole_end_ns = whole_end_ns;
	span.beyond = tl_beyond(w->t, span.whole_start_ns, whole_end_ns);
	span.self_ns = duration_ns - f->child_ns;
	span.flags |= flags;
	if (flags & KPROF_EVENT_OPEN_AT_END)
		tally->window++;
	else if (flags & KPROF_EVENT_CLOSED)
		tally->closed++;
	else
		tally->exact++;
	span.nr_attrs = attrs__take(&w->attrs, span.id);
	span.attrs = w->attrs.taken;
	s->nr--;
	if (s->nr_placed > s->nr)
		s->nr_placed = s->nr;
	/* Begun in the range, a span has a part in it, and one that was handed out does. */
	selected = s->nr_out > s->nr;
	s->nr_out -= selected;
	w->nr_open--;
	if (f->around && visible)
		s->frames[f->around - 1].child_ns += duration_ns;
	stack_shrink(s);
	if (!err && w->functions && handed_out(w, thread))
		err = functions__ended(w->functions, thread, s->nr, whole_end_ns, flags);
	if (err || !selected || !visible || !handed_out(w, thread))
		return err;
	return w->walker->end(w->ctx, &span, data);
}

/* Takes in attributes. They precede the end of their span, and often its begin. */
static int on_args(struct walk *w, const struct store_record *r)
{
	if (!w->walker)
		return 0;
	if (attrs__add(&w->attrs, r->args.span, r->attrs, r->nr_attrs))
		return error_set(-ENOMEM, NULL, "out of memory for the arguments of spans");
	return 0;
}

static int on_event(struct walk *w, const struct store_record *r)
{
	struct stack *s;
	uint64_t ns;
	int err;

	if (r->type == STORE_BEGIN) {
		if (r->begin.thread >= w->t->threads.nr ||
		    r->begin.description - 1 >= w->t->descriptions.nr)
			return tl_changed(w->t);
		return begin_span(w, r);
	}
	if (r->end.thread >= w->t->threads.nr)
		return tl_changed(w->t);
	s = &w->stacks[r->end.thread];
	ns = settle_time(w, s, r->end.time_ns);
	if (!s->nr) {
		w->orphan_ends++;
		return 0;
	}
	err = place_new(w, r->end.thread);
	return err ? err
		   : end_span(w, r->end.thread, ns,
			      r->end.flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_RESULT));
}

struct left_open {
	uint64_t end_ns;
	uint32_t thread;
};

static int by_end(const void *a, const void *b)
{
	const struct left_open *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/*
 * The latest time at which this thread's open spans can have ended: the end of the thread or of the
 * window.
 */
static uint64_t last_end(const struct walk *w, const struct tl_thread *th)
{
	uint64_t end_ns = w->ceil_ns;

	if (th->exit_ns && th->exit_ns < end_ns)
		end_ns = th->exit_ns;
	if (th->recorded_to_ns && th->recorded_to_ns < end_ns)
		end_ns = th->recorded_to_ns;
	return end_ns > w->stacks[th->index].last_ns ? end_ns : w->stacks[th->index].last_ns;
}

/*
 * The end of an open span: each level ends one nanosecond before the level around it. Readers that
 * add ts and dur as doubles would otherwise think that a child ends after its parent.
 */
static uint64_t open_end(const struct walk *w, const struct left_open *left)
{
	const struct stack *s = &w->stacks[left->thread];
	uint64_t early = s->nr - 1;

	/* Not before the thread's latest time; left->end_ns is not before that either. */
	return left->end_ns - s->last_ns > early ? left->end_ns - early : s->last_ns;
}

/* Ends the spans that are open when the recording ends, thread by thread, innermost first. */
static int end_window(struct walk *w)
{
	const struct tl_thread *threads = w->t->threads.data;
	struct left_open *left;
	size_t nr = 0;
	int err = 0;

	if (!w->nr_open)
		return 0;
	left = reallocarray(NULL, w->nr_open, sizeof(*left));
	if (!left)
		return error_set(-ENOMEM, NULL, "out of memory for the spans left open");
	for (size_t i = 0; i < w->t->threads.nr; i++) {
		if (w->stacks[i].nr)
			left[nr++] = (struct left_open){last_end(w, &threads[i]), (uint32_t)i};
	}
	qsort(left, nr, sizeof(*left), by_end);
	for (size_t i = 0; i < nr && !err; i++) {
		err = place_new(w, left[i].thread);
		while (w->stacks[left[i].thread].nr && !err)
			err = end_span(w, left[i].thread, open_end(w, &left[i]),
				       KPROF_EVENT_OPEN_AT_END);
	}
	free(left);
	return err;
}

/*
 * Takes the sources' counts from the events where the file's own accounting is missing or cut
 * short.
 */
static void take_counts(struct walk *w)
{
	struct kprof_source *sources = w->t->sources.data;

	for (size_t i = 0; i < w->t->sources.nr; i++) {
		sources[i].begins = w->tallies[i].begins;
		sources[i].ends_exact = w->tallies[i].exact;
		sources[i].ends_closed = w->tallies[i].closed;
		sources[i].ends_window = w->tallies[i].window;
	}
}

/* Finishes a walk through the whole file. */
static void walked(struct walk *w)
{
	struct kprof_capture *t = w->t;
	bool counting = !w->walker;
	struct store_reader_info info;

	store_reader__info(t->reader, &info);
	if (w->orphan_ends && !t->orphan_ends)
		log_warn(NULL, "%s: %llu ends of spans have no begin and were left out", t->path,
			 (unsigned long long)w->orphan_ends);
	t->orphan_ends = w->orphan_ends;
	t->lost_attrs = w->attrs.lost + w->attrs.waiting;
	if (counting) {
		if (w->first_ns != UINT64_MAX && (!t->first_ns || w->first_ns < t->first_ns))
			t->first_ns = w->first_ns;
		if (w->last_ns > t->last_ns)
			t->last_ns = w->last_ns;
	}
	/*
	 * A damaged chunk of events that was skipped when the tables were read may be found only
	 * now.
	 */
	if (t->info.complete != info.complete || t->info.events != w->nr_begun) {
		t->info.complete = info.complete;
		t->info.lost_bytes = info.lost_bytes;
		counting = true;
	}
	if (counting) {
		t->info.events = w->nr_begun;
		take_counts(w);
	}
}

/* Widens the window to device work and samples that lie outside of the events' times. */
static void mention_detail(struct walk *w, const struct store_record *r)
{
	uint64_t ns = r->type == STORE_ACTIVITY  ? r->activity.end_ns
		      : r->type == STORE_API     ? r->api.end_ns
		      : r->type == STORE_INSTANT ? r->instant.time_ns
		      : r->type == STORE_SAMPLE  ? r->sample.time_ns
		      : r->type == STORE_WAIT    ? r->wait.end_ns
						 : 0;

	if (ns > w->last_ns)
		w->last_ns = ns;
}

int timeline__walk(struct kprof_capture *t, const struct tl_walker *walker, void *ctx)
{
	const struct tl_nn *modules[TL_MAX_MODULES];
	struct walk w = {
		.t = t,
		.modules = modules,
		.walker = walker,
		.ctx = ctx,
		.floor_ns = walker ? t->start_ns : 0,
		.ceil_ns = walker ? t->end_ns : UINT64_MAX,
		.first_ns = UINT64_MAX,
	};
	struct store_record r;
	int err = tl_pass__start(t, STORE_READ_ALL);

	if (err)
		return err;
	w.stacks = calloc(t->threads.nr + 1, sizeof(*w.stacks));
	w.tallies = calloc(t->sources.nr + 1, sizeof(*w.tallies));
	if (!w.stacks || !w.tallies) {
		err = error_set(-ENOMEM, NULL, "out of memory for %zu threads", t->threads.nr);
		goto out;
	}
	if (walker && walker->enter && timeline__has_functions(t)) {
		err = functions__new(t, walker, ctx, &w.functions);
		if (err)
			goto out;
	}
	for (size_t i = 0; i < t->threads.nr; i++) {
		uint64_t from_ns = ((struct tl_thread *)t->threads.data)[i].recorded_from_ns;

		w.stacks[i].last_ns = w.floor_ns;
		w.stacks[i].floor_ns = from_ns > w.floor_ns ? from_ns : w.floor_ns;
	}
	while ((err = store_reader__next(t->reader, &r)) > 0) {
		err = 0;
		if (r.type == STORE_ARGS)
			err = on_args(&w, &r);
		else if (r.type == STORE_BEGIN || r.type == STORE_END)
			err = on_event(&w, &r);
		else if (!walker)
			mention_detail(&w, &r);
		if (err)
			goto out;
	}
	if (!err)
		err = end_window(&w);
	if (!err && w.functions)
		err = functions__finish(w.functions);
	if (!err)
		walked(&w);
out:
	t->walking = false;
	for (size_t i = 0; w.stacks && i < t->threads.nr; i++)
		free(w.stacks[i].frames);
	free(w.stacks);
	free(w.tallies);
	functions__free(w.functions);
	attrs__free(&w.attrs);
	return err;
}

struct plain {
	int (*fn)(void *ctx, const struct tl_span *s);
	void *ctx;
};

static int plain_end(void *ctx, const struct tl_span *s, void *data)
{
	const struct plain *p = ctx;

	return p->fn(p->ctx, s);
}

int timeline__spans(struct kprof_capture *t, int (*fn)(void *ctx, const struct tl_span *s),
		    void *ctx)
{
	const struct tl_walker walker = {.end = plain_end};
	struct plain plain = {.fn = fn, .ctx = ctx};

	return timeline__walk(t, &walker, &plain);
}

bool timeline__has_modules(const struct kprof_capture *t)
{
	return kprof_capture_meta(t, "with_modules") != NULL;
}
