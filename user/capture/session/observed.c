// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operators that agents observe (capture/agent/observer.c). Their records come in batches, up to
 * some tenths of a second late, so the hits of probes on the same threads are held until all
 * records of the time before them have been read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/session/session.h"
#include "catalog/sequence.h"
#include "util/error.h"
#include "util/util.h"

/*
 * How far two batches' conversions from the time stamp counter may be apart, generously: no
 * disorder that would be worth counting.
 */
#define CLOCK_NS 1000
#define LOOK_NS (100 * NSEC_PER_MSEC)
/* A thread's hits that are held, in bytes: beyond, the oldest are not held any longer. */
#define MAX_HELD_BYTES (4u << 20)
#define MAX_ALL_HELD_BYTES (128u << 20) /* the same of all threads together */
#define KEPT_BYTES (64u << 10)          /* memory that a thread keeps while nothing is held */
#define MAX_NAMES 131072
#define HIDDEN 1 /* in names: rejected by the filter */

struct queue {         /* of a thread */
	uint8_t *held; /* records of the rings, in order */
	size_t at, used, cap;
	/* spans that were open, and are not known, where records were lost */
	uint32_t unknown;
	/* hits of before that time can be taken once the rings are read up to looked_ns */
	uint64_t safe_ns;
	uint64_t last_ns; /* of what was taken of the thread last */
};

struct observed {
	struct kprof_session *session;
	int (*take)(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h);
	uint32_t source;
	struct map64 queues; /* PID << 32 | TID → struct queue * */
	size_t held_bytes;   /* of all threads */
	struct map64 names;  /* string id << 4 | scope → event description + 2; HIDDEN */
	uint64_t looked_ns, next_look_ns;
	uint64_t lost, unordered;
};

int observed__new(struct kprof_session *s, int (*take)(struct kprof_session *s, struct thread *th,
						       const struct kprof_wire_hdr *h))
{
	struct observed *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->session = s;
	o->take = take;
	s->observed = o;
	return recorder__source(s->recorder, "observer", &o->source);
}

static void queue_free(struct queue *q)
{
	if (q)
		free(q->held);
	free(q);
}

void observed__free(struct kprof_session *s)
{
	struct observed *o = s->observed;

	if (!o)
		return;
	for (size_t i = 0; i < o->queues.cap; i++)
		queue_free((struct queue *)(uintptr_t)o->queues.slots[i].value);
	map64__free(&o->queues);
	map64__free(&o->names);
	free(o);
	s->observed = NULL;
}

static struct queue *queue_of(struct observed *o, const struct thread *th)
{
	uint64_t *at = map64__at(&o->queues, th->pid_tgid);

	if (at && !*at)
		*at = (uint64_t)(uintptr_t)calloc(1, sizeof(struct queue));
	return at ? (struct queue *)(uintptr_t)*at : NULL;
}

/* NULL: nothing was held or observed of the thread. */
static struct queue *known_queue(const struct observed *o, uint64_t pid_tgid)
{
	return (struct queue *)(uintptr_t)map64__get(&o->queues, pid_tgid);
}

/* ---- hits that are held ---- */

/* Takes the held hits of before that time. */
static int take_held(struct observed *o, struct thread *th, struct queue *q, uint64_t until_ns)
{
	int err = 0;

	while (!err && q->at < q->used) {
		const struct kprof_wire_hdr *h = (const void *)(q->held + q->at);

		if (h->time_ns >= until_ns)
			break;
		q->at += h->size;
		o->held_bytes -= h->size;
		q->last_ns = h->time_ns;
		err = o->take(o->session, th, h);
	}
	if (q->at < q->used)
		return err;
	q->at = q->used = 0;
	if (q->cap > KEPT_BYTES) {
		free(q->held);
		q->held = NULL;
		q->cap = 0;
	}
	return err;
}

int observed__hold(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	struct observed *o = s->observed;
	struct queue *q = queue_of(o, th);
	int err = 0;

	if (!q)
		return -ENOMEM;
	if (q->used - q->at + h->size > MAX_HELD_BYTES ||
	    o->held_bytes + h->size > MAX_ALL_HELD_BYTES) {
		o->unordered++;
		err = take_held(o, th, q, UINT64_MAX);
	}
	if (!err && q->at && q->used + h->size > q->cap) {
		memmove(q->held, q->held + q->at, q->used - q->at);
		q->used -= q->at;
		q->at = 0;
	}
	while (!err && (!q->held || q->used + h->size > q->cap))
		err = vec_grow((void **)&q->held, &q->cap, q->cap, 1);
	if (err)
		return err;
	memcpy(q->held + q->used, h, h->size);
	q->used += h->size;
	o->held_bytes += h->size;
	return 0;
}

bool observed__holds(const struct kprof_session *s, const struct thread *th)
{
	const struct queue *q = known_queue(s->observed, th->pid_tgid);

	return q && q->at < q->used;
}

struct unread {
	struct observed *observed;
	uint32_t pid;
};

static void safe_until(struct queue *q, uint64_t time_ns)
{
	if (q && time_ns < q->safe_ns)
		q->safe_ns = time_ns;
}

static void early(void *ctx, uint32_t tid, uint64_t since_ns)
{
	const struct unread *of = ctx;
	const struct map64 *queues = &of->observed->queues;

	if (tid) {
		safe_until(known_queue(of->observed, (uint64_t)of->pid << 32 | tid), since_ns);
		return;
	}
	for (size_t i = 0; i < queues->cap; i++)
		if (queues->slots[i].tag && (queues->slots[i].tag - 1) >> 32 == of->pid)
			safe_until((struct queue *)(uintptr_t)queues->slots[i].value, since_ns);
}

/* Notes up to what time each thread has handed over everything. */
static void look(struct observed *o, uint64_t now_ns)
{
	struct kprof_session *s = o->session;
	struct target *t;

	for (size_t i = 0; i < o->queues.cap; i++) {
		struct queue *q = (struct queue *)(uintptr_t)o->queues.slots[i].value;

		if (q)
			q->safe_ns = now_ns;
	}
	for (t = targets__first(s->targets); t; t = t->hh.next) {
		struct unread of = {o, t->pid};

		if (agents__observes(s->agents, t))
			agents__unread(s->agents, t, early, &of);
	}
	/* What was handed over while this looked is in the rings, and no longer in a slot. */
	o->looked_ns = clock_mono_ns();
}

int observed__tend(struct kprof_session *s, uint64_t now_ns, uint64_t read_ns)
{
	struct observed *o = s->observed;
	struct thread *th, *next;
	int err = 0;

	if (!o->held_bytes || now_ns < o->next_look_ns)
		return 0;
	/* What was handed over before the last look has been read. */
	if (o->looked_ns && read_ns > o->looked_ns) {
		THREADS_EACH (s->threads, th, next) {
			struct queue *q = known_queue(o, th->pid_tgid);

			if (q && !err)
				err = take_held(o, th, q, q->safe_ns);
		}
		o->looked_ns = 0;
	}
	if (!o->looked_ns)
		look(o, now_ns);
	o->next_look_ns = now_ns + LOOK_NS;
	return err;
}

int observed__finish(struct kprof_session *s)
{
	struct observed *o = s->observed;
	struct thread *th, *next;
	int err = 0;

	THREADS_EACH (s->threads, th, next) {
		struct queue *q = known_queue(o, th->pid_tgid);

		if (q && !err)
			err = take_held(o, th, q, UINT64_MAX);
	}
	if (o->lost)
		log_warn(NULL, "%llu times, ends of operators were lost with the records before",
			 (unsigned long long)o->lost);
	if (o->unordered)
		log_warn(
			NULL,
			"%llu times, more hits of probes waited for operators than kprof keeps: calls "
			"may be shown outside of theirs",
			(unsigned long long)o->unordered);
	return err;
}

/* ---- what agents observed ---- */

/* The event description of a name; 0: the filter rejects it. */
static int describe(struct observed *o, const struct agent_span *e, uint32_t *out)
{
	struct kprof_session *s = o->session;
	const char *category = e->scope == KPROF_SCOPE_USER_SCOPE ? "user_annotation" : "cpu_op";
	struct store_record r = {.type = STORE_DESCRIPTION,
				 .description = {.name = e->name, .source = o->source}};
	uint64_t *known;
	int err;

	/* the program invents new names without end: forgotten names get a second description */
	if (o->names.used > MAX_NAMES)
		map64__free(&o->names);
	known = map64__at(&o->names, (uint64_t)e->name << 4 | (e->scope & 15));
	if (!known)
		return -ENOMEM;
	*out = *known > HIDDEN ? (uint32_t)(*known - 2) : 0;
	if (*known)
		return 0;
	*known = HIDDEN;
	if (!(s->opts.observe >> e->scope & 1) ||
	    !plan_filter_accepts(&s->filter, category, e->text))
		return 0;
	r.description.category = recorder__string(s->recorder, category);
	err = recorder__describe(s->recorder, &r, out);
	if (!err)
		*known = (uint64_t)*out + 2;
	return err;
}

static int end(struct observed *o, struct thread *th, struct queue *q, const struct agent_span *e)
{
	recorder__source_at(o->session->recorder, o->source)->range_ends++;
	if (e->inside >= spans__observed(th->spans) && q->unknown) {
		q->unknown--;
		return 0;
	}
	return spans__observed_end(o->session->spans, th->spans, e->time_ns,
				   e->kind == AGENT_SPAN_END, e->inside, o->source);
}

static int give_sequence(struct kprof_session *s, struct thread *th, const struct agent_span *e,
			 uint64_t span)
{
	bool around =
		e->sequence < 0 && !strncmp(e->text, SEQUENCE_AROUND, strlen(SEQUENCE_AROUND));
	struct kprof_wire_begin b = {.sequence = (uint64_t)e->sequence, .thread = e->thread};

	if (around) {
		b.flags = KPROF_WIRE_F_NODE | KPROF_WIRE_F_AROUND;
		b.sequence = 0;
	} else if (e->sequence >= 0) {
		b.flags = e->node ? KPROF_WIRE_F_NODE : KPROF_WIRE_F_SEQUENCE;
	}
	return sequences__begun(&s->sequences, s->recorder, &b, &th->around, span);
}

static int begin(struct observed *o, struct thread *th, const struct agent_span *e)
{
	struct kprof_session *s = o->session;
	uint32_t description = 0;
	uint64_t number;
	int err = e->scope < KPROF_SCOPES && e->name ? describe(o, e, &description) : 0;

	if (!err && !description)
		recorder__source_at(s->recorder, o->source)->ignored++;
	if (!err)
		err = spans__observed_begin(s->spans, th->spans, e->time_ns, description, o->source,
					    e->scope == KPROF_SCOPE_USER_SCOPE);
	number = err || !description ? 0 : spans__number(th->spans);
	if (number && e->inputs && s->inputs)
		err = inputs__observed(s->inputs, th->target, e->inputs, e->nr_inputs, number);
	else if (number && e->inputs_untold && s->inputs)
		inputs__untold(s->inputs);
	if (!err && s->opts.flow)
		err = give_sequence(s, th, e, number);
	return err;
}

/* Records were lost: which spans ended with them is not known. */
static int resume(struct observed *o, struct thread *th, struct queue *q, uint32_t depth,
		  uint64_t time_ns)
{
	int err = 0;

	o->lost++;
	while (!err && spans__observed(th->spans))
		err = spans__observed_end(o->session->spans, th->spans, time_ns, false, 0,
					  o->source);
	q->unknown = depth;
	return err;
}

int observed__spans(void *ctx, struct thread *th, uint32_t depth, const struct agent_span *spans,
		    size_t nr)
{
	struct kprof_session *s = ctx;
	struct observed *o = s->observed;
	const struct record_window *window = recorder__window(s->recorder);
	struct queue *q = queue_of(o, th);
	/* The agent is not trusted: a time to come would hold everything that follows there. */
	uint64_t now_ns = clock_mono_ns();
	int err = q ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++) {
		struct agent_span e = spans[i];

		if (e.time_ns > now_ns)
			e.time_ns = now_ns;
		if (window->end_ns && e.time_ns > window->end_ns)
			break;
		if (e.time_ns < q->last_ns && q->last_ns - e.time_ns < CLOCK_NS)
			e.time_ns = q->last_ns;
		q->last_ns = e.time_ns;
		if (!i && spans__observed(th->spans) + q->unknown != depth)
			err = resume(o, th, q, depth, e.time_ns);
		if (!err)
			err = take_held(o, th, q, e.time_ns);
		if (!err)
			err = e.kind == AGENT_SPAN_BEGIN ? begin(o, th, &e) : end(o, th, q, &e);
	}
	return err;
}

int observed__thread_ends(struct kprof_session *s, struct thread *th)
{
	struct observed *o = s->observed;
	/* Threads that end by themselves have handed over all they had: others were killed. */
	int err = agents__salvage_thread(s->agents, th);
	struct queue *q = known_queue(o, th->pid_tgid);
	uint64_t *at;

	if (!q)
		return err;
	if (!err)
		err = take_held(o, th, q, UINT64_MAX);
	at = map64__at(&o->queues, th->pid_tgid);
	o->held_bytes -= q->used - q->at;
	queue_free(q);
	if (at)
		*at = 0;
	return err;
}
