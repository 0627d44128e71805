// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes records from the rings, in order of time, and passes each to the parts of the recording
 * that it concerns.
 */
#include <errno.h>
#include <string.h>

#include "capture/session/session.h"

/* ---- callbacks of the span engine ---- */

static int on_begin(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		    uint64_t *number)
{
	struct kprof_session *s = ctx;
	struct store_record r = {
		.type = STORE_BEGIN,
		.begin = {.time_ns = time_ns, .thread = thread, .description = description}};
	int err = recorder__event(s->recorder, &r);

	*number = recorder__last_begin(s->recorder);
	return err;
}

/* The part of a span before the window, in ns: of one that has gone on from another file. */
#define BEGUN_BEFORE "begun_before_ns"

static int on_again(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		    uint64_t number, uint64_t begin_ns)
{
	struct kprof_session *s = ctx;
	struct store_record r = {
		.type = STORE_BEGIN,
		.begin = {.time_ns = time_ns, .thread = thread, .description = description}};
	struct store_attr before = {.key = recorder__string(s->recorder, BEGUN_BEFORE),
				    .type = STORE_ATTR_U64,
				    .value = time_ns > begin_ns ? time_ns - begin_ns : 0};
	int err = recorder__put(s->recorder, &r);

	if (!err)
		err = recorder__continues(s->recorder, number);
	return err ? err : recorder__attrs(s->recorder, number, &before, before.key ? 1 : 0);
}

static int on_end(void *ctx, const struct span_end *end)
{
	struct kprof_session *s = ctx;
	struct store_record r = {
		.type = STORE_END,
		.end = {.time_ns = end->time_ns, .thread = end->thread, .flags = end->flags},
	};
	int err, known = end->has_result ? calls__result(s->calls, end) : 0;

	if (known < 0)
		return known;
	if (known)
		r.end.flags |= KPROF_EVENT_RESULT;
	if (!(end->flags & KPROF_EVENT_CLOSED))
		overhead__ended(s->overhead, end->probe, end->site, end->time_ns - end->begin_ns);
	err = agents__call_ended(s->agents, end->number, end->time_ns);
	if (!err && s->counters)
		err = counters__put(s->counters, s->recorder, end);
	return err ? err : recorder__put(s->recorder, &r);
}

static int on_region(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi)
{
	struct kprof_session *s = ctx;
	struct target *t = targets__find(s->targets, pid);
	const struct proc_map *map = t ? targets__map(s->targets, t, sp) : NULL;

	if (!map)
		return -ENOENT;
	*lo = map->start;
	*hi = map->end;
	return 0;
}

int dispatch__spans_new(struct kprof_session *s)
{
	struct spans_ops ops = {
		.ctx = s, .begin = on_begin, .end = on_end, .again = on_again, .region = on_region};

	ops.range_begins = s->schedule.steps ? schedule__range_begins : NULL;
	ops.range_ended = s->schedule.steps ? schedule__range_ended : NULL;
	return spans__new(&ops, &s->spans);
}

uint64_t dispatch__read_until(const struct kprof_session *s)
{
	return rings__empty(s->rings) ? UINT64_MAX : s->read_ns;
}

int dispatch__given_up(void *ctx, uint64_t time_ns,
		       bool (*is_given_up)(void *given_up, uint32_t probe), void *given_up)
{
	struct kprof_session *s = ctx;
	struct thread *th, *next;
	int err = 0;

	if (dispatch__read_until(s) < time_ns)
		return -EAGAIN;
	THREADS_EACH (s->threads, th, next)
		if (!err && th->spans)
			err = spans__give_up(s->spans, th->spans, time_ns, is_given_up, given_up);
	return err;
}

/* ---- probes ---- */

/*
 * Does the library make this call itself, inside another call to it? When the end of a span was not
 * seen (its return site is not learnt yet, or there was an exception), the stack pointer alone may
 * say that the span is still open, and a call that the program then makes from deeper in the stack
 * would be folded into it. When the library is linked into the program, the return address does not
 * say which of the two calls: then only spans whose end will surely be seen count.
 */
static bool is_folded(struct kprof_session *s, struct thread *th, const struct probe *p,
		      const struct kprof_wire_begin *b, const struct span_begin *begin)
{
	enum probe_caller caller =
		probe_set__caller(s->probes, th->target, b->ret_addr, p->framework);

	return caller != PROBE_CALLER_OTHER &&
	       spans__inside(s->spans, th->spans, begin, b->ret_addr, p->folded_into,
			     caller == PROBE_CALLER_EMBEDDED);
}

/* Records a call as an instant, at the time of its entry. */
static int moment(struct kprof_session *s, const struct thread *th, uint64_t time_ns,
		  const struct probe *p, const struct name_hit *hit, uint32_t description)
{
	struct store_attr attrs[KPROF_WIRE_TEXT_ARGS];
	struct store_record r = {
		.type = STORE_INSTANT,
		.instant = {.time_ns = time_ns, .thread = th->index, .description = description},
		.attrs = attrs,
		.nr_attrs = text_args(s->recorder, p, hit, attrs)};

	return recorder__in_window(s->recorder, time_ns) ? recorder__event(s->recorder, &r) : 0;
}

/* Begins a range. description 0: one that the filter rejects. */
static int range_begin(struct kprof_session *s, struct thread *th, const struct probe *p,
		       const struct kprof_wire_begin *b, const struct name_hit *hit,
		       uint32_t description)
{
	struct store_attr attrs[KPROF_WIRE_TEXT_ARGS];
	int err = spans__range_begin(s->spans, th->spans, b->h.time_ns, b->h.sp, description,
				     p->source);
	uint32_t nr = err || !description ? 0 : text_args(s->recorder, p, hit, attrs);
	uint64_t number = nr ? spans__number(th->spans) : 0;

	return number ? recorder__attrs(s->recorder, number, attrs, nr) : err;
}

static struct record_source *source_of(struct kprof_session *s, const struct probe *p)
{
	return recorder__source_at(s->recorder, p->source);
}

/* Ends the thread's innermost range, unless the hit is no event at all. */
static int range_end_event(struct kprof_session *s, struct thread *th, const struct probe *p,
			   const struct kprof_wire_begin *b, const struct name_hit *hit)
{
	/* A C++ scope's object lies on the stack: only heap objects are annotations. */
	if (p->row->heap_object && spans__on_stack(s->spans, th->spans, b->h.sp, hit->value)) {
		source_of(s, p)->ignored++;
		return 0;
	}
	source_of(s, p)->range_ends++;
	return spans__range_end(s->spans, th->spans, b->h.time_ns, b->h.sp, p->source);
}

/* For what is recorded in bursts only, no more return sites are placed. */
static struct span_return *return_of(struct kprof_session *s, struct thread *th,
				     const struct probe *p, const struct kprof_wire_begin *b)
{
	if (overhead__gave_up(s->overhead, b->h.id))
		return probe_set__known_return(s->probes, th->target, b->ret_addr);
	return probe_set__return(s->probes, th->target, b->ret_addr, p->row->result != NULL);
}

/* *folded: it is a part of another call. */
static int begin_or_ignore(struct kprof_session *s, struct thread *th,
			   const struct kprof_wire_begin *b, const struct name_hit *hit,
			   bool *folded)
{
	struct probe *p = probe_set__probe(s->probes, b->h.id);
	struct name_result name;
	struct span_begin begin = {
		.time_ns = b->h.time_ns,
		.sp = b->h.sp,
		.ret_slot = b->h.sp + b->ret_offset_bytes,
		.source = p->source,
		.probe = b->h.id,
		.group = p->group,
		.own_result = b->flags & KPROF_WIRE_F_NO_RESULT,
		.uncertain = b->flags & KPROF_WIRE_F_NO_SITE,
		.announced = p->row == &catalog_function,
	};
	int err;

	/* This comes before probe_set__return(), which would spend a return site on it. */
	if (p->folded_into && is_folded(s, th, p, b, &begin)) {
		source_of(s, p)->ignored++;
		source_of(s, p)->folded++;
		*folded = true;
		return 0;
	}

	if (!catalog_value_matches(p->row, hit->value)) {
		source_of(s, p)->ignored++;
		return 0;
	}
	if (p->row->shape == CATALOG_RANGE_END)
		return range_end_event(s, th, p, b, hit);
	err = namer__resolve(s->namer, th->target, p, hit, &name);
	if (err)
		return err;
	if (name.verdict == NAME_IGNORE) {
		source_of(s, p)->ignored++;
		return 0;
	}
	if (name.verdict == NAME_RANGE_END)
		return range_end_event(s, th, p, b, hit);
	if (name.verdict == NAME_FILTERED)
		source_of(s, p)->ignored++;
	/*
	 * The end of a range does not say which range it ends. So a range that the filter rejects
	 * is begun too, without an event description, to be there for its end.
	 */
	if (p->row->shape == CATALOG_RANGE_BEGIN)
		return range_begin(s, th, p, b, hit,
				   name.verdict == NAME_FILTERED ? 0 : name.description);
	if (name.verdict == NAME_FILTERED)
		return 0;
	if (p->row->shape == CATALOG_INSTANT)
		return moment(s, th, b->h.time_ns, p, hit, name.description);
	begin.description = name.description;
	if (!(b->flags & KPROF_WIRE_F_NO_RET))
		begin.ret = return_of(s, th, p, b);
	err = spans__begin(s->spans, th->spans, &begin);
	if (!err)
		err = stacks__begun(s->stacks, th, &b->h, spans__number(th->spans));
	if (!err)
		err = sequences__begun(&s->sequences, s->recorder, b, &th->around,
				       spans__number(th->spans));
	return err ? err : 1;
}

/*
 * Returns 1 when a span was begun, 0 when the hit was something else or was ignored, or a negative
 * errno.
 */
static int begin_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_begin *b,
		       const struct name_hit *hit)
{
	bool folded = false;
	int begun = begin_or_ignore(s, th, b, hit, &folded);

	/*
	 * One whose events are named by what is read there stays: it may be where ranges end, and
	 * operators of a program's own are called.
	 */
	overhead__hit(s->overhead, b->h.id,
		      (begun == 1 || folded) && probe_set__probe(s->probes, b->h.id)->name,
		      !folded);
	/* Nobody asks for the end of what is no span. */
	if (!begun && b->flags & KPROF_WIRE_F_NO_SITE)
		probe_set__ignore_return(s->probes, th->target, b->ret_addr);
	return begun;
}

static int args_event(struct kprof_session *s, struct thread *th,
		      const struct kprof_wire_begin_args *e)
{
	struct probe *p = probe_set__probe(s->probes, e->b.h.id);
	const struct catalog_collective *collective = p->row->collective;
	struct name_hit hit = {0};
	uint64_t number;
	int begun, err;

	if (event_parts__is_aside(p))
		return event_parts__aside(s, th, p, e);
	if (collective && collective->role == CATALOG_COLLECTIVE_WORK)
		hit.value = e->args[1];
	begun = begin_event(s, th, &e->b, &hit);
	if (begun != 1)
		return begun;
	number = spans__number(th->spans);
	if (collective)
		return collectives__begun(s->collectives, th, p, e, number);
	if (p->row->message)
		return messages__begun(s->recorder, p, e, number);
	err = agents__call_begun(s->agents, th, e->b.h.id, e, e->b.h.time_ns);
	if (err || !number) /* begun before the window: the span has no record yet */
		return err;
	return calls__args(s->calls, th->target, p, e, number);
}

static int site_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	struct span_site hit = {.time_ns = h->time_ns, .sp = h->sp, .site = h->id};

	if (h->kind == KPROF_WIRE_SITE_RESULT) {
		hit.has_result = true;
		hit.result = ((const struct kprof_wire_site_result *)h)->result;
	}
	return spans__site(s->spans, th->spans, &hit);
}

static int plain_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_begin *b)
{
	struct name_hit none = {0};
	int begun = begin_event(s, th, b, &none);

	if (begun == 1 && probe_set__probe(s->probes, b->h.id)->group)
		return agents__call_begun(s->agents, th, b->h.id, NULL, b->h.time_ns);
	return begun;
}

static int text_event(struct kprof_session *s, struct thread *th,
		      const struct kprof_wire_begin_text *e)
{
	struct name_hit hit = {.value = e->value, .text_addr = e->text_addr};

	if (e->text_bytes)
		hit.text = e->text;
	hit.nr_args = e->nr_args;
	memcpy(hit.args, (const char *)e + e->b.h.size - e->nr_args * sizeof(hit.args[0]),
	       e->nr_args * sizeof(hit.args[0]));
	return begin_event(s, th, &e->b, &hit);
}

static int inputs_event(struct kprof_session *s, struct thread *th, const struct probe *p,
			const struct kprof_wire_begin_inputs *e)
{
	struct name_hit hit = {.value = e->value, .text_addr = e->text_addr};
	struct kprof_wire_begin b = e->b;
	struct boxed_call call;
	uint64_t number;
	int begun, err = inputs__boxed(s->inputs, th->target, p, e, &call);

	if (err)
		return err;
	hit.text = call.name;
	b.flags = boxed_flags(b.flags, &call);
	begun = begin_event(s, th, &b, &hit);
	if (begun != 1)
		return begun;
	number = spans__number(th->spans);
	return number ? inputs__record(s->inputs, th->target, p, e, &call, number) : 0;
}

/* A process that maps a framework, or runs, where all processes are recorded. */
static int seen_event(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	if (s->machine)
		return machine__seen(s, t, e);
	if (s->joining)
		return joins__seen(s, t, e);
	s->unknown_records++;
	return 0;
}

/* ---- all records ---- */

/* Is the record of a probe, and of a part of the recording, that there is? */
static bool is_known(const struct kprof_session *s, const struct kprof_wire_hdr *h)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
	case KPROF_WIRE_BEGIN_TEXT:
	case KPROF_WIRE_BEGIN_ARGS:
	case KPROF_WIRE_BEGIN_INPUTS:
		return h->id < probe_set__nr(s->probes);
	case KPROF_WIRE_SAMPLE:
	case KPROF_WIRE_STACK:
		return s->stacks;
	case KPROF_WIRE_WAIT:
		return s->waits;
	case KPROF_WIRE_MODULES:
		return s->modules;
	default:
		return true;
	}
}

/*
 * Is it the hit of a probe on a function? Calls below its stack pointer are over even if the hit
 * itself is ignored, and the kernel's program does not watch their slots any longer.
 */
static bool is_call(const struct kprof_wire_hdr *h)
{
	return h->kind == KPROF_WIRE_BEGIN || h->kind == KPROF_WIRE_BEGIN_TEXT ||
	       h->kind == KPROF_WIRE_BEGIN_ARGS || h->kind == KPROF_WIRE_BEGIN_INPUTS ||
	       h->kind == KPROF_WIRE_MARK;
}

/* The row of the hit's probe; NULL: it is none of a probe on a function. */
static const struct catalog_row *row_of(const struct kprof_session *s,
					const struct kprof_wire_hdr *h)
{
	return is_call(h) && h->kind != KPROF_WIRE_MARK ? probe_set__probe(s->probes, h->id)->row
							: NULL;
}

/* The index of the source that a record counts for. */
static uint32_t source_index(const struct kprof_session *s, const struct kprof_wire_hdr *h)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
	case KPROF_WIRE_BEGIN_TEXT:
	case KPROF_WIRE_BEGIN_ARGS:
	case KPROF_WIRE_BEGIN_INPUTS:
		return probe_set__probe(s->probes, h->id)->source;
	case KPROF_WIRE_SITE:
	case KPROF_WIRE_SITE_RESULT:
	case KPROF_WIRE_GONE:
	case KPROF_WIRE_COPY:
		return KPROF_WIRE_SOURCE_SITES;
	case KPROF_WIRE_MARK:
		return probe_set__mark_source(s->probes);
	case KPROF_WIRE_SAMPLE:
	case KPROF_WIRE_STACK:
		return stacks__source(s->stacks, h);
	case KPROF_WIRE_WAIT:
		return waits__source(s->waits);
	case KPROF_WIRE_MODULES:
		return modules_seen__source(s->modules);
	default:
		return KPROF_WIRE_SOURCE_TASKS;
	}
}

static int mark_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_mark *e)
{
	int renamed = marks__event(s->marks, th, e, probe_set__mark_source(s->probes));

	return renamed == 1 ? thread__record(s, th, 0) : renamed;
}

/* Handles the record of something that a thread did. Returns 0, 1, or a negative errno. */
static int thread_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
		return plain_event(s, th, (const struct kprof_wire_begin *)h);
	case KPROF_WIRE_BEGIN_TEXT:
		return text_event(s, th, (const struct kprof_wire_begin_text *)h);
	case KPROF_WIRE_BEGIN_ARGS:
		return args_event(s, th, (const struct kprof_wire_begin_args *)h);
	case KPROF_WIRE_BEGIN_INPUTS:
		return inputs_event(s, th, probe_set__probe(s->probes, h->id),
				    (const struct kprof_wire_begin_inputs *)h);
	case KPROF_WIRE_MARK:
		return mark_event(s, th, (const struct kprof_wire_mark *)h);
	case KPROF_WIRE_SAMPLE:
	case KPROF_WIRE_STACK:
		return stacks__event(s->stacks, th, (const struct kprof_wire_stack *)h);
	case KPROF_WIRE_WAIT:
		return waits__event(s->waits, th, (const struct kprof_wire_wait *)h);
	case KPROF_WIRE_MODULES:
		return modules_seen__event(s->modules, th, (const struct kprof_wire_modules *)h);
	case KPROF_WIRE_GONE:
		return returned__gone(s, th, (const struct kprof_wire_gone *)h);
	case KPROF_WIRE_COPY:
		return returned__walk(s, th, (const struct kprof_wire_copy *)h);
	default:
		return site_event(s, th, h);
	}
}

/* The record of something that a thread did, with what was counted then. */
static int counted_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_counters *counters = ring_counters(h);
	int err;

	spans__counted(th->spans, counters ? &counters->epoch : NULL);
	err = thread_event(s, th, h);
	spans__counted(th->spans, NULL);
	return err;
}

/* Does it concern the thread's spans? */
static bool is_held(const struct kprof_wire_hdr *h)
{
	return h->kind != KPROF_WIRE_SAMPLE && h->kind != KPROF_WIRE_STACK &&
	       h->kind != KPROF_WIRE_WAIT;
}

/* Where agents observe operators, only they know of the annotations around them (--within). */
static bool is_outside(const struct kprof_session *s, const struct thread *th,
		       const struct kprof_wire_hdr *h)
{
	return s->observed && s->opts.within && is_held(h) && !spans__observed(th->spans);
}

/* Where the kernel's programs know of them: was the thread left before the hit? */
static bool is_late(const struct kprof_session *s, struct thread *th,
		    const struct kprof_wire_hdr *h)
{
	return s->filter.within && within__is_late(s, th, h, row_of(s, h));
}

int dispatch__thread(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	int err;

	if (is_outside(s, th, h) || is_late(s, th, h)) {
		recorder__source_at(s->recorder, source_index(s, h))->ignored++;
		return 0;
	}
	err = s->counters ? counted_event(s, th, h) : thread_event(s, th, h);

	if (err >= 0 && is_call(h))
		err = spans__passed(s->spans, th->spans, h->time_ns, h->sp);
	return err < 0 ? err : 0;
}

/* The record of something that a thread of this process did. */
static int thread_record(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h)
{
	struct thread *th;
	int err;

	if (s->machine && !recorder__window(s->recorder)->open) {
		t->sampled_ns = h->time_ns; /* kprof_session_prepare(): it is not recorded yet */
		return 0;
	}
	if (s->machine) {
		err = machine__sampled(s, t, h->time_ns);
		if (err)
			return err < 0 ? err : 0;
	}
	if (!session_wants(s, h->pid_tgid)) /* --tid */
		return 0;
	th = thread__of(s, t, h->pid_tgid, h->time_ns);
	if (!th)
		return -ENOMEM;
	if (s->observed && is_held(h) && (agents__observes(s->agents, t) || observed__holds(s, th)))
		return observed__hold(s, th, h);
	return dispatch__thread(s, th, h);
}

/* A process is told of, and what had been recorded of it before. */
static int on_process(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	uint32_t pid = (uint32_t)(e->h.pid_tgid >> 32);
	int err = seen_event(s, t, e);
	struct kprof_wire_wait wait;

	t = targets__find(s->targets, pid);
	while (!err && t && early__take(s, pid, &wait))
		err = thread_record(s, t, &wait.h);
	return err;
}

static int on_record(void *ctx, const struct kprof_wire_hdr *h)
{
	struct kprof_session *s = ctx;
	struct target *t = targets__find(s->targets, (uint32_t)(h->pid_tgid >> 32));
	const struct record_window *window = recorder__window(s->recorder);
	uint32_t source;
	int err;

	targets__at(s->targets, h->time_ns);
	s->read_ns = h->time_ns;
	if (h->kind == KPROF_WIRE_BATCH)
		return agents__batch(s->agents, t, h);
	if (!is_known(s, h)) {
		s->unknown_records++;
		return 0;
	}
	source = source_index(s, h);
	recorder__source_at(s->recorder, source)->captured++;
	/* the probes are being removed; of waits, those that go on have a part in the window */
	if (window->end_ns && h->time_ns > window->end_ns && h->kind != KPROF_WIRE_WAIT)
		return 0;
	err = s->filter.within ? within__leave(s, h->time_ns) : 0;
	if (err)
		return err;
	if (h->kind == KPROF_WIRE_SEEN)
		return on_process(s, t, (const struct kprof_wire_seen *)h);
	if (!t)
		return early__hold(s, h);
	if (source == KPROF_WIRE_SOURCE_TASKS)
		return tasks__event(s, t, h);
	return thread_record(s, t, h);
}

int dispatch__drain(struct kprof_session *s, bool final)
{
	return rings__drain(s->rings, DISPATCH_RECORDS, final, on_record, s);
}
