// SPDX-License-Identifier: BSD-2-Clause
/* Reads what a capture says of threads into arrays by thread and time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/waits.h"
#include "model/correlate/correlate.h"
#include "model/why/impl.h"
#include "store/store.h"
#include "util/error.h"
#include "util/order.h"

#define MOST_DROPPED 0.005 /* share of all events */

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for what threads did");
}

/* ---- steps ---- */

static const struct tl_step *step_at(const struct events *e, size_t i)
{
	return bulk__at(&e->steps, i);
}

/* Leaves the steps that were recorded whole. */
static void keep_whole(struct events *e)
{
	const struct kprof_capture_info *info = kprof_capture_info(e->t);
	size_t nr = 0;

	for (size_t i = 0; i < e->steps.nr; i++) {
		struct tl_step s = *step_at(e, i);

		if (s.start_ns >= info->start_mono_ns && s.end_ns <= info->end_mono_ns &&
		    s.start_ns < s.end_ns)
			*(struct tl_step *)bulk__at(&e->steps, nr++) = s;
	}
	e->steps.nr = nr;
}

static void add_subject(struct events *e, const struct subject *s)
{
	struct subject *least = &e->subjects[0];

	e->nr_peers++;
	if (e->nr_subjects < MOST_SUBJECTS) {
		e->subjects[e->nr_subjects++] = *s;
		return;
	}
	for (size_t i = 1; i < e->nr_subjects; i++)
		if (e->subjects[i].step_ns < least->step_ns)
			least = &e->subjects[i];
	if (least->step_ns < s->step_ns)
		*least = *s;
}

/* A subject for each process that has steps: the thread that has them. */
static int find_subjects(struct events *e)
{
	int err = timeline__steps(e->t, &e->steps);

	if (err)
		return err;
	keep_whole(e);
	for (size_t i = 0, to; i < e->steps.nr; i = to) {
		const struct tl_step *first = step_at(e, i);
		struct subject s = {.thread = first->thread,
				    .pid = first->pid,
				    .description = first->description,
				    .from = i};

		for (to = i; to < e->steps.nr && step_at(e, to)->pid == s.pid; to++)
			s.step_ns += step_at(e, to)->end_ns - step_at(e, to)->start_ns;
		s.to = to;
		add_subject(e, &s);
	}
	return 0;
}

/* ---- without steps: how much each thread does ---- */

struct effort {
	struct events *e;
	uint64_t *op_ns, *sampled_ns; /* by thread */
};

static int add_op(void *ctx, const struct tl_span *s)
{
	struct effort *f = ctx;

	if (!strcmp(s->description->category, "cpu_op"))
		add_capped(&f->op_ns[s->thread], s->self_ns);
	return 0;
}

static int add_weight(void *ctx, const struct store_record *r)
{
	struct effort *f = ctx;

	add_capped(&f->sampled_ns[r->sample.thread], r->sample.weight_ns);
	return 0;
}

/* How much a thread does. */
static uint64_t work_of(const struct effort *f, size_t thread)
{
	const struct tl_thread_time *time = timeline__thread_time(f->e->t, thread);

	return f->sampled_ns[thread] + (time ? time->on_ns : 0);
}

/* A thread that only waits for another to end does not tell why. */
static bool only_waits(const struct effort *f, size_t thread)
{
	const struct tl_thread_time *time = timeline__thread_time(f->e->t, thread);

	return time && time->told <= 1 && time->on_ns < (time->end_ns - time->start_ns) / 100;
}

/* The thread with most time in operators, else the main thread of the process that does most. */
static size_t choose_thread(const struct effort *f, size_t nr)
{
	size_t most_ops = 0, most_work = 0, chosen = nr;
	struct map64 work = {0};
	uint64_t most = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t *sum = map64__at(&work, (uint32_t)timeline__thread(f->e->t, i)->pid);

		if (f->op_ns[i] > f->op_ns[most_ops])
			most_ops = i;
		if (sum)
			add_capped(sum, work_of(f, i));
	}
	for (size_t i = 0; i < nr; i++) {
		const struct tl_thread *th = timeline__thread(f->e->t, i);
		uint64_t sum = map64__get(&work, (uint32_t)th->pid);

		if (sum > most || (sum == most && chosen == nr)) {
			most = sum;
			chosen = i;
		}
		if (sum == most && th->tid == th->pid)
			chosen = i;
		if (work_of(f, i) > work_of(f, most_work))
			most_work = i;
	}
	map64__free(&work);
	if (f->op_ns[most_ops])
		return most_ops;
	return chosen < nr && only_waits(f, chosen) ? most_work : chosen;
}

static int find_thread(struct events *e)
{
	size_t nr = kprof_capture_info(e->t)->nr_threads, chosen;
	struct effort f = {.e = e};
	int err = 0;

	if (!nr)
		return error_set(-ENODATA, NULL, "there is no thread in %s", timeline__path(e->t));
	f.op_ns = calloc(nr, sizeof(*f.op_ns));
	f.sampled_ns = calloc(nr, sizeof(*f.sampled_ns));
	if (!f.op_ns || !f.sampled_ns)
		err = no_memory();
	if (!err)
		err = timeline__spans(e->t, add_op, &f);
	if (!err)
		err = timeline__samples(e->t, 0, add_weight, &f);
	if (!err) {
		chosen = choose_thread(&f, nr);
		e->subjects[0] = (struct subject){.thread = (uint32_t)chosen,
						  .pid = timeline__thread(e->t, chosen)->pid};
		e->nr_subjects = 1;
	}
	free(f.op_ns);
	free(f.sampled_ns);
	return err;
}

/* The subject is the thread with this number; its process's steps are its own. */
static int take_thread(struct events *e, pid_t tid)
{
	const struct tl_thread *th = NULL;
	struct subject s = {0};

	for (size_t i = 0; i < kprof_capture_info(e->t)->nr_threads; i++)
		if (timeline__thread(e->t, i)->tid == tid)
			th = timeline__thread(e->t, i);
	if (!th)
		return error_set(-EINVAL, "kprof report --by thread lists them",
				 "there is no thread %d in %s", tid, timeline__path(e->t));
	for (size_t i = 0; i < e->nr_subjects; i++)
		if (e->subjects[i].pid == th->pid)
			s = e->subjects[i];
	s.thread = th->index;
	s.pid = th->pid;
	e->subjects[0] = s;
	e->nr_subjects = 1;
	return 0;
}

/* ---- spans: what was around each moment of a subject ---- */

struct open_span {
	uint32_t flags, op;
	uint64_t start_ns;
	size_t first; /* of its segments */
};

struct thread_spans {
	uint64_t until_ns;
	uint64_t ops;    /* in the outermost operator */
	struct vec open; /* struct open_span */
};

struct spans {
	struct events *e;
	uint32_t *flags;    /* by description */
	uint8_t *of_thread; /* number of the subject + 1, by thread */
	struct thread_spans threads[MOST_SUBJECTS];
};

static uint32_t flags_of(const struct tl_description *d)
{
	uint32_t flags = 0;

	if (!strcmp(d->category, "cpu_op"))
		flags |= IN_OP;
	if (!strncmp(d->name, "enumerate(DataLoader)", 21))
		flags |= IN_DATA;
	if (catalog_wait_collective(d->name))
		flags |= IN_COLLECTIVE;
	if (catalog_wait_message(d->name))
		flags |= IN_MESSAGE;
	if (strstr(d->category, "_runtime") || strstr(d->category, "_driver"))
		flags |= correlate_is_sync(d->name) ? IN_CALL | IN_SYNC : IN_CALL;
	return flags;
}

static int add_segment(struct spans *s, struct thread_spans *th, uint32_t thread, uint64_t to_ns)
{
	const struct open_span *open = th->open.data;
	const struct open_span *in = th->open.nr ? &open[th->open.nr - 1] : NULL;
	struct segment *segment;

	if (to_ns <= th->until_ns)
		return 0;
	segment = bulk__push(&s->e->segments);
	if (!segment)
		return no_memory();
	*segment = (struct segment){.start_ns = th->until_ns,
				    .end_ns = to_ns,
				    .thread = thread,
				    .op = in ? in->op : 0,
				    .flags = in ? in->flags : 0};
	th->until_ns = to_ns;
	return 0;
}

static struct thread_spans *spans_of(struct spans *s, uint32_t thread)
{
	return s->of_thread[thread] ? &s->threads[s->of_thread[thread] - 1] : NULL;
}

static int begin_span(void *ctx, const struct tl_span *span, void *parent_data, void **data)
{
	struct spans *s = ctx;
	struct thread_spans *th = spans_of(s, span->thread);
	uint32_t own = s->flags[span->description->id - 1];
	struct open_span outer = {0}, *open;
	int err;

	s->e->has_ops |= own & IN_OP;
	s->e->has_calls |= own & IN_CALL;
	if (!th)
		return 0;
	err = add_segment(s, th, span->thread, span->start_ns);
	if (err)
		return err;
	if (th->open.nr)
		outer = ((struct open_span *)th->open.data)[th->open.nr - 1];
	open = vec_push(&th->open, sizeof(*open));
	if (!open)
		return no_memory();
	open->flags = outer.flags | own;
	open->op = own & IN_OP ? span->description->id : outer.op;
	open->start_ns = span->start_ns;
	/* Of those that are in no other operator: to mark their segments. */
	open->first = own & IN_OP && !(outer.flags & IN_OP) ? s->e->segments.nr : SIZE_MAX;
	if (own & IN_OP)
		th->ops = outer.flags & IN_OP ? th->ops + 1 : 1;
	return 0;
}

/* An outermost operator has ended. All segments since its begin that are its own are tiny. */
static void mark_tiny(struct spans *s, const struct open_span *open, uint32_t thread)
{
	for (size_t i = open->first; i < s->e->segments.nr; i++) {
		struct segment *segment = bulk__at(&s->e->segments, i);

		if (segment->thread == thread)
			segment->flags |= IN_TINY;
	}
}

static int end_span(void *ctx, const struct tl_span *span, void *data)
{
	struct spans *s = ctx;
	struct thread_spans *th = spans_of(s, span->thread);
	struct open_span open;
	int err;

	if (!th || !th->open.nr)
		return 0;
	err = add_segment(s, th, span->thread, span->end_ns);
	open = ((struct open_span *)th->open.data)[--th->open.nr];
	if (!err && open.first != SIZE_MAX && span->end_ns >= open.start_ns &&
	    span->end_ns - open.start_ns < th->ops * TINY_NS)
		mark_tiny(s, &open, span->thread);
	return err;
}

static int read_spans(struct events *e)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	const struct tl_description *d;
	struct spans s = {.e = e};
	size_t nr = 0;
	int err = 0;

	while (timeline__description(e->t, nr))
		nr++;
	s.flags = calloc(nr + 1, sizeof(*s.flags));
	s.of_thread = calloc(kprof_capture_info(e->t)->nr_threads + 1, sizeof(*s.of_thread));
	if (!s.flags || !s.of_thread)
		err = no_memory();
	for (size_t i = 0; !err && (d = timeline__description(e->t, i)); i++)
		s.flags[i] = flags_of(d);
	for (size_t i = 0; i < e->nr_subjects && !err; i++) {
		s.of_thread[e->subjects[i].thread] = (uint8_t)(i + 1);
		s.threads[i].until_ns = kprof_capture_info(e->t)->start_mono_ns;
	}
	if (!err)
		err = timeline__walk(e->t, &walker, &s);
	for (size_t i = 0; i < e->nr_subjects && !err; i++)
		err = add_segment(&s, &s.threads[i], e->subjects[i].thread,
				  kprof_capture_info(e->t)->end_mono_ns);
	for (size_t i = 0; i < MOST_SUBJECTS; i++)
		free(s.threads[i].open.data);
	free(s.flags);
	free(s.of_thread);
	return err;
}

/* ---- waits ---- */

struct wait_reader {
	struct events *e;
	struct map64 flags; /* enum stack_flags, by stack */
};

static uint32_t flags_of_stack(struct wait_reader *w, uint32_t stack)
{
	uint64_t *slot = stack ? map64__at(&w->flags, stack) : NULL;

	if (!slot)
		return 0;
	if (!*slot)
		*slot = why_stack_flags(w->e->t, stack);
	return (uint32_t)*slot;
}

static uint32_t note_wait(void *ctx, const struct store_record *r)
{
	struct wait_reader *w = ctx;
	uint32_t flags = flags_of_stack(w, r->wait.stack);

	return WAIT_NOTE(why_wait_kind(w->e->t, r, flags), flags);
}

static int read_waits(struct events *e)
{
	struct wait_reader w = {.e = e};
	int err = timeline__list_waits(e->t, note_wait, &w, &e->waits);

	e->has_waits = kprof_capture_meta(e->t, "waits") != NULL;
	e->waits_until_ns = timeline__waits_number(e->t, "until_ns");
	map64__free(&w.flags);
	return err;
}

static int segment_order(const void *pa, const void *pb, void *ctx)
{
	const struct segment *a = pa, *b = pb;

	return a->thread != b->thread ? order_u64(a->thread, b->thread)
				      : order_u64(a->start_ns, b->start_ns);
}

/* Whether so many events were lost that what lies between others is not known. */
static bool has_dropped(const struct kprof_capture *t)
{
	const struct kprof_source *source;
	double fired = 0, lost = 0;

	for (size_t i = 0; (source = kprof_capture_source(t, i)); i++) {
		fired += (double)source->fired;
		lost += (double)source->dropped + (double)source->missed;
	}
	return lost > MOST_DROPPED * fired;
}

int events__read(struct events *e, struct kprof_capture *t, pid_t tid)
{
	const struct kprof_selection *part = kprof_capture_selection(t);
	int err;

	*e = (struct events){.t = t, .segments = {.size = sizeof(struct segment)}};
	e->dropped = has_dropped(t);
	e->has_samples = (part ? part->samples : kprof_capture_info(t)->nr_samples) != 0;
	err = find_subjects(e);
	if (!err && tid)
		err = take_thread(e, tid);
	else if (!err && !e->nr_subjects)
		err = find_thread(e);
	if (!err)
		err = read_spans(e);
	if (!err && bulk__sort(&e->segments, 0, e->segments.nr, segment_order, NULL))
		err = no_memory();
	if (!err)
		err = read_waits(e);
	return err;
}

void events__free(struct events *e)
{
	bulk__free(&e->steps);
	bulk__free(&e->segments);
	bulk__free(&e->waits);
}

/* ---- search ---- */

size_t events__segment(const struct events *e, uint32_t thread, uint64_t ns)
{
	size_t low = 0, high = e->segments.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct segment *s = bulk__at(&e->segments, mid);

		if (s->thread < thread || (s->thread == thread && s->end_ns <= ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
