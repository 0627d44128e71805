// SPDX-License-Identifier: BSD-2-Clause
/*
 * The machines' clocks. Of a collective in which each rank needs something of all others, no rank
 * is done before all have begun: on two machines, each end on one is after each begin on the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "model/report/collective_parts.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/order.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Of a capture that is longer than this, Unix time tells the clock's speed, too. */
#define LONG_ENOUGH_NS (60 * NSEC_PER_SEC)

struct text {
	char *text;
	uint32_t number; /* from 1 */
	UT_hash_handle hh;
};

/* What bounds the clock of one machine against that of another. */
struct edge {
	uint32_t hub, other;
	struct vec bounds; /* struct clock_bound: of what is to be added to the clock of `other` */
	uint64_t collectives;
	struct clock_fit fit; /* from the clock of `other` to that of `hub` */
	bool fits;
};

struct edges {
	struct edge *all;
	size_t nr, cap;
	struct map64 by_machines; /* index + 1 */
	/* by rank: the first part of the latest collective in which it was + 1 */
	struct map64 seen;
};

/* ---- what ranks did ---- */

/* The number of a text, the same in all captures. 0: no memory. */
static uint32_t text_number(struct merge *m, const char *text)
{
	struct text *t;

	HASH_FIND_STR(m->texts, text, t);
	if (t)
		return t->number;
	t = calloc(1, sizeof(*t));
	if (!t)
		return 0;
	t->text = strdup(text);
	t->number = ++m->nr_texts;
	if (t->text)
		HASH_ADD_KEYPTR(hh, m->texts, t->text, strlen(t->text), t);
	if (!t->text || !t->hh.tbl) {
		free(t->text);
		free(t);
		return 0;
	}
	return t->number;
}

void merge_free_texts(struct merge *m)
{
	struct text *t, *next;

	HASH_ITER (hh, m->texts, t, next) {
		HASH_DEL(m->texts, t);
		free(t->text);
		free(t);
	}
}

/*
 * Whether the part bounds clocks. All-to-all does not: a rank may have nothing for another. Neither
 * does what might have no elements, where nothing needs to be communicated.
 */
static bool bounds_clocks(struct kprof_capture *t, const struct collective_part *p)
{
	const char *name = timeline__string(t, p->name);

	return collective_part__of_all(t, p) && strcmp(name, "all_to_all") &&
	       (p->bytes != COLLECTIVE_BYTES_UNKNOWN || !strcmp(name, "barrier"));
}

static int add_meeting(struct merge *m, const struct merge_capture *c, struct kprof_capture *t,
		       const struct collective_part *p)
{
	struct meeting *to;

	if (!bounds_clocks(t, p))
		return 0;
	to = bulk__push(&m->parts);
	if (!to)
		return merge_no_memory();
	*to = (struct meeting){
		.number = p->number,
		.begin_ns = p->flags & COLLECTIVE_BEGIN_UNKNOWN ? 0 : p->begin_ns,
		/* where it is late, it bounds less */
		.end_ns = p->flags & COLLECTIVE_OPEN ? 0 : p->end_ns,
		.group = text_number(m, timeline__string(t, p->group)),
		.name = text_number(m, timeline__string(t, p->name)),
		.size = p->size,
		.rank = p->rank,
		.machine = (uint32_t)(c - m->captures), /* until machines are known */
	};
	return to->group && to->name ? 0 : merge_no_memory();
}

int merge_meet(struct merge *m, struct merge_capture *c, struct kprof_capture *t)
{
	struct bulk parts = {.size = sizeof(struct collective_part)};
	uint64_t unmatched = 0;
	int err = collective_parts__read(t, &parts, &unmatched);

	for (size_t i = 0; i < parts.nr && !err; i++)
		err = add_meeting(m, c, t, bulk__at(&parts, i));
	bulk__free(&parts);
	return err;
}

/* ---- bounds ---- */

static int compare_collectives(const struct meeting *a, const struct meeting *b)
{
	int order = order_u64(a->group, b->group);

	order = order ? order : order_u64(a->size, b->size);
	order = order ? order : order_u64(a->name, b->name);
	return order ? order : order_u64(a->number, b->number);
}

/* Of a collective, the machine whose clock stays comes first: the others are tied to it. */
static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct meeting *a = pa, *b = pb;
	const struct merge *m = ctx;
	int order = compare_collectives(a, b);

	order = order ? order : order_u64(a->machine != m->reference, b->machine != m->reference);
	order = order ? order : order_u64(a->machine, b->machine);
	return order ? order : order_u64(a->rank, b->rank);
}

static struct edge *edge_between(struct edges *edges, uint32_t hub, uint32_t other)
{
	uint64_t *at = map64__at(&edges->by_machines, (uint64_t)hub << 32 | other);

	if (!at)
		return NULL;
	if (!*at) {
		if (vec_grow((void **)&edges->all, &edges->cap, edges->nr, sizeof(*edges->all)))
			return NULL;
		edges->all[edges->nr++] = (struct edge){.hub = hub, .other = other};
		*at = edges->nr;
	}
	return &edges->all[*at - 1];
}

/* One side: `begin` of the one clock was not after `end` of the other. */
static bool add_bound(struct edge *e, uint64_t at_ns, uint64_t other_ns, bool upper)
{
	struct clock_bound *b;

	if (!at_ns || !other_ns)
		return true;
	b = vec_push(&e->bounds, sizeof(*b));
	if (b)
		*b = (struct clock_bound){at_ns, (int64_t)(other_ns - at_ns), upper};
	return b != NULL;
}

/* A machine's part of a collective: its last begin and first end. 0: not known. */
struct side {
	uint32_t machine;
	uint64_t begin_ns, end_ns;
};

static struct side side_of(const struct merge *m, size_t from, size_t to)
{
	struct side s = {.machine = ((struct meeting *)bulk__at(&m->parts, from))->machine};

	for (size_t i = from; i < to; i++) {
		const struct meeting *p = bulk__at(&m->parts, i);

		if (p->begin_ns > s.begin_ns)
			s.begin_ns = p->begin_ns;
		if (p->end_ns && (!s.end_ns || p->end_ns < s.end_ns))
			s.end_ns = p->end_ns;
	}
	return s;
}

static size_t end_of_side(const struct merge *m, size_t from, size_t to)
{
	const struct meeting *first = bulk__at(&m->parts, from);
	size_t i = from + 1;

	while (i < to && ((struct meeting *)bulk__at(&m->parts, i))->machine == first->machine)
		i++;
	return i;
}

/*
 * A rank that is there twice is of two trainings: which part belongs to which is not known. 1: one
 * is; -ENOMEM.
 */
static int has_twins(const struct merge *m, struct edges *edges, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct meeting *p = bulk__at(&m->parts, i);
		uint64_t *seen = map64__at(&edges->seen, p->rank);

		if (!seen)
			return merge_no_memory();
		if (*seen == from + 1)
			return 1;
		*seen = from + 1;
	}
	return 0;
}

/* The parts from .. to are those of one collective, machine by machine. */
static int add_bounds(const struct merge *m, struct edges *edges, size_t from, size_t to)
{
	const struct meeting *one = bulk__at(&m->parts, from);
	size_t next = end_of_side(m, from, to);
	struct side hub, other;
	struct edge *e;
	int twins;

	if (next == to || to - from > one->size)
		return 0;
	twins = has_twins(m, edges, from, to);
	if (twins)
		return twins < 0 ? twins : 0;
	hub = side_of(m, from, next);
	for (size_t i = next; i < to; i = next) {
		next = end_of_side(m, i, to);
		other = side_of(m, i, next);
		e = edge_between(edges, hub.machine, other.machine);
		if (!e || !add_bound(e, other.begin_ns, hub.end_ns, true) ||
		    !add_bound(e, other.end_ns, hub.begin_ns, false))
			return merge_no_memory();
		e->collectives++;
	}
	return 0;
}

static int find_bounds(struct merge *m, struct edges *edges)
{
	int err = 0;

	for (size_t i = 0; i < m->parts.nr; i++) {
		struct meeting *p = bulk__at(&m->parts, i);

		p->machine = (uint32_t)m->captures[p->machine].machine;
	}
	if (bulk__sort(&m->parts, 0, m->parts.nr, compare, m))
		return merge_no_memory();
	for (size_t i = 0, next; i < m->parts.nr && !err; i = next) {
		for (next = i + 1; next < m->parts.nr; next++)
			if (compare_collectives(bulk__at(&m->parts, i), bulk__at(&m->parts, next)))
				break;
		err = add_bounds(m, edges, i, next);
	}
	return err;
}

/* ---- lines ---- */

static void fit_edges(struct edges *edges)
{
	for (size_t i = 0; i < edges->nr; i++) {
		struct edge *e = &edges->all[i];

		e->fits = !clock_fit(e->bounds.data, &e->bounds.nr, &e->fit);
	}
}

static uint64_t error_of(const struct edge *e, uint64_t from_ns, uint64_t to_ns)
{
	return clock_fit__error(&e->fit, e->bounds.data, e->bounds.nr, from_ns, to_ns);
}

/* The edge that leads from a placed machine to another one with the least error; NULL: none. */
static const struct edge *best_edge(const struct merge *m, const struct edges *edges)
{
	const struct edge *best = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < edges->nr; i++) {
		const struct edge *e = &edges->all[i];
		const struct merge_machine *hub = &m->machines[e->hub];
		const struct merge_machine *other = &m->machines[e->other];
		uint64_t error;

		if (!e->fits || hub->placed == other->placed)
			continue;
		error = error_of(e, other->start_ns, other->end_ns);
		add_capped(&error, (hub->placed ? hub : other)->told.error_ns);
		if (error >= least)
			continue;
		least = error;
		best = e;
	}
	return best;
}

/*
 * The error of a machine's times: those of all edges on the way to the one whose clock stays, each
 * for the time in which this machine was recorded.
 */
static void sum_up(const struct merge *m, struct merge_machine *machine)
{
	uint64_t from_ns = clock_line__apply(&machine->line, machine->start_ns);
	uint64_t to_ns = clock_line__apply(&machine->line, machine->end_ns);
	const struct merge_machine *at = machine;

	while (at->edge) {
		const struct merge_machine *other = &m->machines[at->edge->other];
		struct clock_line back = clock_line__inverse(&other->line);

		add_capped(&machine->told.error_ns,
			   error_of(at->edge, clock_line__apply(&back, from_ns),
				    clock_line__apply(&back, to_ns)));
		add_capped(&machine->told.slack_ns, at->edge->fit.slack_ns);
		at = at == other ? &m->machines[at->edge->hub] : other;
	}
}

static void place_along(struct merge *m, const struct edge *e)
{
	struct merge_machine *hub = &m->machines[e->hub], *other = &m->machines[e->other];
	struct merge_machine *from = hub->placed ? hub : other, *to = hub->placed ? other : hub;
	struct clock_line line = e->fit.line;

	if (to == hub)
		line = clock_line__inverse(&line);
	to->line = clock_line__then(&line, &from->line);
	to->placed = true;
	to->edge = e;
	to->told.collectives = e->collectives;
	to->told.clock = from->told.clock == KPROF_MERGE_CLOCK_UNIX ? KPROF_MERGE_CLOCK_UNIX
								    : KPROF_MERGE_CLOCK_COLLECTIVES;
	if (to->told.clock == KPROF_MERGE_CLOCK_COLLECTIVES)
		sum_up(m, to);
}

/* From the machine's clock to Unix time; its speed where the capture is long enough to tell. */
static struct clock_line unix_line(const struct merge_capture *c)
{
	struct clock_line line = {c->start_ns, c->start_real_ns, 0};
	uint64_t ns = c->end_ns - c->start_ns;

	if (ns >= LONG_ENOUGH_NS) {
		line.rate = (double)(int64_t)(c->end_real_ns - c->start_real_ns - ns) / (double)ns;
		/* It was set, and not slewed. */
		if (line.rate > CLOCKS_MOST_DRIFT || line.rate < -CLOCKS_MOST_DRIFT)
			line.rate = 0;
	}
	return line;
}

static void place_by_unix_time(struct merge *m, struct merge_machine *machine)
{
	struct clock_line own = unix_line(&m->captures[machine->first]),
			  reference = unix_line(&m->captures[m->machines[m->reference].first]);

	reference = clock_line__inverse(&reference);
	machine->line = clock_line__then(&own, &reference);
	machine->placed = true;
	machine->told.clock = KPROF_MERGE_CLOCK_UNIX;
}

static void place_all(struct merge *m, const struct edges *edges)
{
	const struct edge *e;

	m->machines[m->reference].placed = true;
	m->machines[m->reference].told.clock = KPROF_MERGE_CLOCK_ITS_OWN;
	for (size_t i = 0; i < m->nr_machines;) {
		while ((e = best_edge(m, edges)))
			place_along(m, e);
		/* Nothing ties those that are left to the others; but they may be tied to it. */
		while (i < m->nr_machines && m->machines[i].placed)
			i++;
		if (i < m->nr_machines)
			place_by_unix_time(m, &m->machines[i]);
	}
}

int merge_fit(struct merge *m)
{
	struct edges edges = {0};
	int err = find_bounds(m, &edges);

	if (!err) {
		fit_edges(&edges);
		place_all(m, &edges);
	}
	for (size_t i = 0; i < edges.nr; i++)
		free(edges.all[i].bounds.data);
	free(edges.all);
	map64__free(&edges.by_machines);
	map64__free(&edges.seen);
	return err;
}
