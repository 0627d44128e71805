// SPDX-License-Identifier: BSD-2-Clause
/*
 * Second pass: goes through the spans of each thread together with its API records, by time. For
 * each record it finds the operator around it, the span of the same call, and, if there is no such
 * span, whether the record would nest with the spans if it were drawn.
 */
#include "model/correlate/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/runtime.h"
#include "util/error.h"
#include "util/util.h"

/*
 * Nesting depth of open records on a thread, such as a driver's inside a runtime's. Deeper ones are
 * treated as crossing.
 */
#define MAX_OPEN 16
/* How many records that began inside a span are tried as its own. */
#define MAX_INSIDE 4096
/* How many records that began before the span are tried too: clock errors can make one early. */
#define MAX_BEFORE 4
/* How many of those are looked at for one that was around the span, and has ended. */
#define MAX_AROUND 64

/* The time that the work launched inside an annotation covers on one row. */
struct extent {
	uint64_t start_ns, end_ns;
	uint32_t row;
};

/* An open span of a thread. */
struct level {
	uint64_t start_ns;
	uint32_t op;         /* id of the innermost operator or annotation, this one included */
	uint32_t annotation; /* level of the innermost annotation + 1, this one included; 0: none */
	bool is_call, is_annotation;
	bool launched;          /* a record directly inside of its operator has launched work */
	struct extent *extents; /* of an annotation: one per row */
	size_t nr_extents, cap_extents;
};

struct open_record {
	uint64_t end_ns;
	uint32_t call, depth;
	bool crossing;
};

struct track {         /* one thread's progress */
	uint32_t next; /* its first record that has not begun yet */
	uint32_t depth;
	size_t cap;
	struct level *levels;
	struct open_record open[MAX_OPEN];
	uint32_t nr_open;
};

struct pass {
	struct correlate *c;
	struct track *tracks; /* by thread index */
};

static uint32_t number_of(const struct pass *p, uint32_t thread, uint32_t i)
{
	return corr_number_at(&p->c->by_thread, (size_t)p->c->threads[thread].first + i);
}

static struct corr_call *record_at(const struct pass *p, uint32_t thread, uint32_t i)
{
	return corr_call_at(p->c, number_of(p, thread, i));
}

/* ---- annotations ---- */

static int widen(struct level *l, const struct extent *by)
{
	for (size_t i = 0; i < l->nr_extents; i++) {
		struct extent *e = &l->extents[i];

		if (e->row != by->row)
			continue;
		if (by->start_ns < e->start_ns)
			e->start_ns = by->start_ns;
		if (by->end_ns > e->end_ns)
			e->end_ns = by->end_ns;
		return 0;
	}
	if (vec_grow((void **)&l->extents, &l->cap_extents, l->nr_extents, sizeof(*by)))
		return error_set(-ENOMEM, NULL, "out of memory for the annotations");
	l->extents[l->nr_extents++] = *by;
	return 0;
}

/*
 * Work that a call launched widens the innermost annotation around the call. Outer annotations are
 * widened when the inner one ends.
 */
static int widen_by_call(struct pass *p, struct track *tr, const struct corr_call *call)
{
	uint32_t annotation = tr->depth ? tr->levels[tr->depth - 1].annotation : 0;
	int err = 0;

	if (!annotation)
		return 0;
	for (uint32_t i = call->first; i != CORRELATE_NONE && !err;) {
		const struct corr_act *act = corr_act_at(p->c, i);
		const struct corr_row *row = correlate__row(p->c, act->row);

		if (row && corr_row_is_work(row))
			err = widen(&tr->levels[annotation - 1],
				    &(struct extent){act->start_ns, act->end_ns, act->row});
		i = act->next;
	}
	return err;
}

static int end_annotation(struct pass *p, struct track *tr, const struct tl_span *s)
{
	struct level *l = &tr->levels[tr->depth - 1];
	uint32_t outer = tr->depth > 1 ? l[-1].annotation : 0;
	int err = 0;

	for (size_t i = 0; i < l->nr_extents && !err; i++) {
		struct corr_annotation *a = correlate__push(&p->c->annotations);

		if (!a)
			return -ENOMEM;
		*a = (struct corr_annotation){.start_ns = l->extents[i].start_ns,
					      .end_ns = l->extents[i].end_ns,
					      .span = s->id,
					      .description = s->description->id,
					      .row = l->extents[i].row};
		if (outer)
			err = widen(&tr->levels[outer - 1], &l->extents[i]);
	}
	return err;
}

/* ---- records going by ---- */

/* Ends a record. It nests if the spans open when it began are the ones open now. */
static void close_record(struct pass *p, struct track *tr, const struct open_record *o)
{
	if (o->crossing || o->depth != tr->depth)
		corr_call_at(p->c, o->call)->flags |= CORR_CALL_CROSSING;
}

/*
 * Closes the records that end before now_ns. A record that ends exactly at now_ns is closed before
 * a span begins. Before a span ends (at_end), it is closed only if it began inside that span.
 */
static void close_records(struct pass *p, struct track *tr, uint64_t now_ns, bool at_end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < tr->nr_open; i++) {
		struct open_record *o = &tr->open[i];

		if (o->end_ns < now_ns ||
		    (o->end_ns == now_ns && (!at_end || o->depth == tr->depth)))
			close_record(p, tr, o);
		else
			tr->open[kept++] = *o;
	}
	tr->nr_open = kept;
}

static int begin_record(struct pass *p, struct track *tr, uint32_t thread, uint32_t i)
{
	uint32_t index = number_of(p, thread, i);
	struct corr_call *call = corr_call_at(p->c, index);

	close_records(p, tr, call->start_ns, false);
	call->op = tr->depth ? tr->levels[tr->depth - 1].op : 0;
	if (tr->depth && call->first != CORRELATE_NONE)
		tr->levels[tr->depth - 1].launched = true;
	if (tr->nr_open == MAX_OPEN) {
		call->flags |= CORR_CALL_CROSSING;
	} else {
		tr->open[tr->nr_open] = (struct open_record){
			.end_ns = corr_call_end_ns(call), .call = index, .depth = tr->depth};
		if (tr->nr_open && tr->open[tr->nr_open - 1].end_ns < corr_call_end_ns(call))
			tr->open[tr->nr_open].crossing = true;
		tr->nr_open++;
	}
	return widen_by_call(p, tr, call);
}

/* Begins every record of the thread that starts before now_ns. */
static int advance(struct pass *p, struct track *tr, uint32_t thread, uint64_t now_ns)
{
	uint32_t nr = p->c->threads[thread].nr;
	int err = 0;

	while (!err && tr->next < nr && record_at(p, thread, tr->next)->start_ns < now_ns)
		err = begin_record(p, tr, thread, tr->next++);
	return err;
}

/* ---- calls ---- */

/* Whether a call of this name can have launched work of this type. */
static bool can_launch(const char *name, uint32_t type)
{
	switch (type) {
	case KPROF_ACTIVITY_GPU_MEMCPY:
		return strcasestr(name, "copy") || strcasestr(name, "cpy") ||
		       strstr(name, "GraphLaunch") || strstr(name, "Read") || strstr(name, "Write");
	case KPROF_ACTIVITY_GPU_MEMSET:
		return strcasestr(name, "set") || strstr(name, "Fill") ||
		       strstr(name, "GraphLaunch");
	case KPROF_ACTIVITY_CUDA_SYNC:
		return correlate_is_sync(name) || strstr(name, "WaitEvent");
	case KPROF_ACTIVITY_CUDA_EVENT:
		return strstr(name, "EventRecord");
	default:
		return strstr(name, "Launch") || strstr(name, "Enqueue");
	}
}

static bool can_have(const struct pass *p, const struct corr_call *call,
		     const struct tl_description *description)
{
	if (corr_same_function(timeline__string(p->c->t, call->name), description->name))
		return true;
	return call->first != CORRELATE_NONE &&
	       can_launch(description->name, corr_act_at(p->c, call->first)->type);
}

static unsigned int rank(const struct pass *p, const struct corr_call *call,
			 const struct tl_description *description)
{
	bool same = corr_same_function(timeline__string(p->c->t, call->name), description->name);

	return (call->first != CORRELATE_NONE) * 4u + same * 2u +
	       (call->type == correlate__type(p->c, description)) * 1u;
}

static int claim(struct pass *p, uint32_t index, const struct tl_span *s)
{
	struct corr_call *call = corr_call_at(p->c, index);
	uint32_t *slot = correlate__push(&p->c->matches);

	if (!slot)
		return -ENOMEM;
	*slot = index;
	call->span = (uint32_t)s->id;
	call->flags |= CORR_CALL_SPAN;
	p->c->counts.calls_matched++;
	return 0;
}

static bool is_free(const struct corr_call *call)
{
	return !(call->flags & (CORR_CALL_SPAN | CORR_CALL_NESTED));
}

/*
 * Assigns to a span the records that began inside it, or just before it when most of the record
 * lies in it; of the thread's records those before `until`. *best: the record from which the span
 * takes its correlation.
 */
static int claim_inside(struct pass *p, const struct tl_span *s, uint32_t until,
			struct corr_call **best)
{
	uint32_t before = 0, looked = 0;
	unsigned int best_rank = 0, r;

	for (uint32_t i = until; i-- && looked++ < MAX_INSIDE && before < MAX_BEFORE;) {
		uint32_t index = number_of(p, s->thread, i);
		struct corr_call *call = corr_call_at(p->c, index);

		if (call->start_ns < s->whole_start_ns) {
			before++;
			/*
			 * At least half of the record is in the span, and both name the same
			 * function.
			 */
			if (corr_call_end_ns(call) > s->whole_end_ns ||
			    corr_call_end_ns(call) < s->whole_start_ns ||
			    s->whole_start_ns - call->start_ns >
				    corr_call_end_ns(call) - s->whole_start_ns ||
			    !corr_same_function(timeline__string(p->c->t, call->name),
						s->description->name))
				continue;
		}
		if (!is_free(call))
			continue;
		if (claim(p, index, s))
			return -ENOMEM;
		r = rank(p, call, s->description);
		/* Among equals the earliest record wins: it is tried last. */
		if (!*best || r >= best_rank) {
			*best = call;
			best_rank = r;
		}
	}
	return 0;
}

static bool is_of(const struct pass *p, const struct corr_call *call, const struct tl_span *s)
{
	return is_free(call) && can_have(p, call, s->description);
}

/* When the outermost call began that the span of a call, the innermost level, is a part of. */
static uint64_t since_outermost_call(const struct track *tr, const struct tl_span *s)
{
	uint64_t since_ns = s->whole_start_ns;

	for (uint32_t i = tr->depth - 1; i-- && tr->levels[i].is_call;)
		since_ns = tr->levels[i].start_ns;
	return since_ns;
}

static int claim_outer(struct pass *p, const struct track *tr, uint32_t index,
		       const struct tl_span *s, struct corr_call **best)
{
	*best = corr_call_at(p->c, index);
	/* what seemed to be open when that began, and is not open any more, was over by then */
	(*best)->op = tr->levels[tr->depth - 1].op;
	if ((*best)->first != CORRELATE_NONE)
		tr->levels[tr->depth - 1].launched = true;
	return claim(p, index, s);
}

/*
 * Assigns to a span the record around it: the driver's, of a call by a library's own copy of the
 * runtime. A record that began inside an enclosing call span belongs to that span instead.
 */
static int claim_around(struct pass *p, struct track *tr, const struct tl_span *s,
			struct corr_call **best)
{
	uint64_t since_ns = since_outermost_call(tr, s);

	for (uint32_t i = tr->nr_open; i--;) {
		struct corr_call *call = corr_call_at(p->c, tr->open[i].call);

		if (call->start_ns > since_ns || !is_of(p, call, s))
			continue;
		if (since_ns != s->whole_start_ns && call->start_ns >= since_ns)
			continue;
		return claim_outer(p, tr, tr->open[i].call, s, best);
	}
	return 0;
}

/* The first of a thread's records before `until` that begins at time_ns or later; else `until`. */
static uint32_t first_since(const struct pass *p, uint32_t thread, uint32_t until, uint64_t time_ns)
{
	uint32_t low = 0;

	while (low < until) {
		uint32_t mid = low + (until - low) / 2;

		if (record_at(p, thread, mid)->start_ns < time_ns)
			low = mid + 1;
		else
			until = mid;
	}
	return low;
}

/* The same, also where the record has ended: one of the thread's first `before` records. */
static int claim_around_closed(struct pass *p, struct track *tr, const struct tl_span *s,
			       uint32_t before, struct corr_call **best)
{
	uint64_t since_ns = since_outermost_call(tr, s);
	uint32_t tried = 0;

	for (uint32_t i = before, looked = 0; i-- && looked++ < MAX_AROUND && tried < MAX_OPEN;) {
		uint32_t index = number_of(p, s->thread, i);
		struct corr_call *call = corr_call_at(p->c, index);

		if (call->start_ns > since_ns || corr_call_end_ns(call) <= s->whole_start_ns)
			continue;
		tried++;
		if (!is_of(p, call, s))
			continue;
		return claim_outer(p, tr, index, s, best);
	}
	return 0;
}

/*
 * Assigns its records to a span whose end was not seen. It was drawn until the thread's next event
 * or later, so that records of other calls can begin inside it, and the record around it can end
 * inside it. Its own is the earliest inside, with those that began meanwhile.
 */
static int claim_of_closed(struct pass *p, struct track *tr, const struct tl_span *s,
			   struct corr_call **best)
{
	uint32_t first = first_since(p, s->thread, tr->next, s->whole_start_ns), own = first;
	uint64_t end_ns;
	int err = claim_around_closed(p, tr, s, first, best);

	if (err || *best)
		return err;
	while (own < tr->next && own - first < MAX_OPEN &&
	       !is_of(p, record_at(p, s->thread, own), s))
		own++;
	if (own == tr->next || own - first == MAX_OPEN)
		return claim_inside(p, s, first, best); /* one that began a little early */
	end_ns = corr_call_end_ns(record_at(p, s->thread, own));
	return claim_inside(p, s, first_since(p, s->thread, tr->next, end_ns + 1), best);
}

/*
 * Finds the records of a call span that ends. The operator and annotations that a record got at its
 * begin hold for the span too, since both began in the same place.
 */
static int end_call(struct pass *p, struct track *tr, const struct tl_span *s)
{
	struct corr_call *best = NULL;
	int err;

	if (s->id > UINT32_MAX || !p->c->threads[s->thread].nr)
		return 0;
	if (s->flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END)) {
		err = claim_of_closed(p, tr, s, &best);
	} else {
		err = claim_inside(p, s, tr->next, &best);
		if (!err && !best)
			err = claim_around(p, tr, s, &best);
	}
	if (best)
		best->flags |= CORR_CALL_PRIMARY;
	return err;
}

/* ---- spans ---- */

/* A further level, which keeps the list of extents of the one that was there before. */
static struct level *push_level(struct track *tr)
{
	size_t cap = tr->cap;

	if (vec_grow((void **)&tr->levels, &tr->cap, tr->depth, sizeof(*tr->levels))) {
		error_set(-ENOMEM, NULL, "out of memory for the open spans of a thread");
		return NULL;
	}
	memset(tr->levels + cap, 0, (tr->cap - cap) * sizeof(*tr->levels));
	return &tr->levels[tr->depth++];
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct pass *p = ctx;
	struct track *tr = &p->tracks[s->thread];
	const struct level *outer;
	struct level *l;
	int err = advance(p, tr, s->thread, s->whole_start_ns);

	if (err)
		return err;
	close_records(p, tr, s->whole_start_ns, false);
	l = push_level(tr);
	if (!l)
		return -ENOMEM;
	outer = tr->depth > 1 ? l - 1 : NULL;
	*l = (struct level){.start_ns = s->whole_start_ns,
			    .op = outer ? outer->op : 0,
			    .annotation = outer ? outer->annotation : 0,
			    .extents = l->extents,
			    .cap_extents = l->cap_extents};
	l->is_call = correlate__is_call(p->c, s->description);
	l->is_annotation = correlate__type(p->c, s->description) == KPROF_ACTIVITY_USER_ANNOTATION;
	if (l->is_annotation)
		l->annotation = tr->depth;
	if (correlate__is_op(p->c, s->description) && s->id <= UINT32_MAX)
		l->op = (uint32_t)s->id;
	return 0;
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct pass *p = ctx;
	struct track *tr = &p->tracks[s->thread];
	struct level *l;
	int err = advance(p, tr, s->thread, s->whole_end_ns);

	if (err)
		return err;
	l = &tr->levels[tr->depth - 1];
	if (l->is_call)
		err = end_call(p, tr, s);
	close_records(p, tr, s->whole_end_ns, true);
	/* A record that is still open but began inside this span crosses the span's end. */
	for (uint32_t i = 0; i < tr->nr_open; i++)
		if (tr->open[i].depth == tr->depth)
			tr->open[i].crossing = true;
	if (!err && l->is_annotation)
		err = end_annotation(p, tr, s);
	if (!err && l->launched && l->op == s->id)
		err = correlate__keep_collective(p->c, s);
	else if (l->launched && tr->depth > 1)
		l[-1].launched = true;
	tr->depth--;
	return err;
}

/* Handles the records after the last span of each thread, then counts how all of them ended up. */
static int finish(struct pass *p)
{
	struct correlate *c = p->c;
	int err = 0;

	for (uint32_t i = 0; i < kprof_capture_info(c->t)->nr_threads && !err; i++) {
		err = advance(p, &p->tracks[i], i, UINT64_MAX);
		close_records(p, &p->tracks[i], UINT64_MAX, false);
	}
	if (!err)
		err = correlate__leave_out(c);
	for (uint32_t i = 0; i < c->calls.nr && !err; i++) {
		const struct corr_call *call = corr_call_at(c, i);

		if (corr_call_own_slice(call))
			c->counts.calls_drawn++;
		else if (call->first != CORRELATE_NONE && !corr_call_drawn(call))
			c->counts.calls_crossing++;
	}
	for (uint32_t i = 0; i < c->acts.nr && !err; i++) {
		const struct corr_call *call = correlate__call(c, corr_act_at(c, i)->call);

		if (call && !call->op)
			c->counts.without_op++;
	}
	return err;
}

int correlate__walk_spans(struct correlate *c)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	struct pass p = {
		.c = c,
		.tracks = calloc(kprof_capture_info(c->t)->nr_threads + 1, sizeof(*p.tracks))};
	int err;

	if (!p.tracks)
		return error_set(-ENOMEM, NULL, "out of memory for the threads");
	err = timeline__walk(c->t, &walker, &p);
	if (!err)
		err = finish(&p);
	if (!err)
		err = correlate__sort_collectives(p.c);
	for (size_t i = 0; i < kprof_capture_info(c->t)->nr_threads; i++) {
		for (size_t l = 0; l < p.tracks[i].cap; l++)
			free(p.tracks[i].levels[l].extents);
		free(p.tracks[i].levels);
	}
	free(p.tracks);
	return err;
}
