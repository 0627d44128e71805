// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds out why a device was idle. Each gap between work of a device is explained by what the
 * thread did meanwhile that launched the work after the gap. A gap has up to two parts:
 *
 *   work ──┤ host's part: nothing launched yet │ launch call began … the work starts ├── work
 *
 * The second part is launch latency (or, if the call was over before the gap began, the device's
 * own delay). The first is explained by the thread: if it was in a call that waits for the device
 * when the gap began, the gap is sync-bound; otherwise it is host-bound, and named after what took
 * most of the thread's time in the gap, and after what the thread waited for, if it mostly waited
 * and the capture has waits. The parts of all gaps add up to the device's idle time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/correlate/correlate.h"
#include "model/report/impl.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/order.h"
#include "util/util.h"

/* Gaps of one thread at the same time: one for each device that it launches work on. */
#define MAX_ACTIVE 32
/* Different things that a thread does in one gap, at most. */
#define MAX_DOINGS 64

enum cause {
	CAUSE_HOST,
	CAUSE_SYNC,
	CAUSE_LATENCY,
	CAUSE_DEVICE,
	CAUSE_NO_WORK,
	CAUSE_UNKNOWN,
};

static const char *const categories[] = {
	[CAUSE_HOST] = "host-bound", [CAUSE_SYNC] = "sync-bound", [CAUSE_LATENCY] = "launch",
	[CAUSE_DEVICE] = "device",   [CAUSE_NO_WORK] = "no work", [CAUSE_UNKNOWN] = "unknown",
};

/* The host's part of a gap, to be explained by what its thread did. */
struct gap {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t device; /* index of the device's first row */
};

/* What a thread does: its innermost span and, if that is no operator, the operator around it. */
struct doing {
	uint32_t description, op; /* ids; 0: none */
	uint32_t wait; /* what it waited for most of the time (idle_waits.c); 0: it did not */
};

struct tally {
	struct doing doing;
	uint64_t ns;
	/* An annotation that began in the gap: a phase that the program itself names. */
	bool annotation;
};

struct active {
	struct gap gap;
	/* The waiting call that the thread was in when the gap began; .description 0: none. */
	struct doing sync;
	struct tally tallies[MAX_DOINGS];
	uint32_t nr;
};

struct level {
	struct doing doing;
	uint64_t start_ns;
	bool annotation;
	bool sync;
};

struct track { /* state of one thread */
	uint64_t last_ns;
	size_t next, end; /* range of its gaps in idle.gaps */
	struct active *active;
	uint32_t nr_active;
	struct level *levels;
	size_t depth, cap;
};

struct idle {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct correlate *corr;
	struct bulk gaps; /* struct gap */
	struct track *tracks;
	struct idle_waits *waits; /* NULL: the capture has none */
	struct map64 doings;      /* number of a doing + 1, by its two ids */
	struct map64 waiting;     /* the same of one with a wait, by the number of both */
	uint64_t nr_doings;
	struct map64 rows; /* index + 1, by device, cause and doing */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for the gaps between activities");
}

/* ---- rows ---- */

static char *span_name(const struct idle *idle, const struct doing *d)
{
	const struct tl_description *description =
		timeline__description(idle->t, (size_t)d->description - 1);
	const struct tl_description *op = timeline__description(idle->t, (size_t)d->op - 1);

	if (!d->description)
		return strdup("outside of operators");
	return op ? xasprintf("%s in %s", description->name, op->name) : strdup(description->name);
}

static char *doing_name(const struct idle *idle, const struct doing *d)
{
	char *span = span_name(idle, d), *name = span;

	if (d->wait && span) {
		name = xasprintf("%s, %s", span, idle_waits__text(idle->waits, d->wait));
		free(span);
	}
	return name;
}

static char *cause_name(const struct idle *idle, enum cause cause, const struct doing *d)
{
	switch (cause) {
	case CAUSE_LATENCY:
		return strdup("launch latency");
	case CAUSE_DEVICE:
		return strdup("work launched before");
	case CAUSE_NO_WORK:
		return strdup("no work submitted");
	case CAUSE_UNKNOWN:
		return strdup("launch not recorded");
	default:
		return doing_name(idle, d);
	}
}

/* The number of what a thread does, from 1; 0: no memory. */
static uint64_t number_of(struct idle *idle, const struct doing *d)
{
	uint64_t *slot = map64__at(&idle->doings, (uint64_t)d->description << 32 | d->op);

	if (slot && !*slot)
		*slot = ++idle->nr_doings;
	if (slot && d->wait) {
		slot = map64__at(&idle->waiting, *slot << 32 | d->wait);
		if (slot && !*slot)
			*slot = ++idle->nr_doings;
	}
	return slot ? *slot : 0;
}

static int count(struct idle *idle, uint32_t device, enum cause cause, struct doing d, uint64_t ns)
{
	const struct corr_row *of = correlate__row(idle->corr, device);
	uint64_t doing, *slot;
	struct kprof_row *row;

	if (!ns)
		return 0;
	doing = number_of(idle, &d);
	if (!doing)
		return no_memory();
	slot = map64__at(&idle->rows, doing << 32 | (uint64_t)(device & 0xffffff) << 4 | cause);
	if (!slot)
		return no_memory();
	if (!*slot) {
		row = result__row(idle->result, cause_name(idle, cause, &d));
		if (!row)
			return -ENOMEM;
		row->category = categories[cause];
		row->pid = of->pid;
		row->device = of->device;
		*slot = idle->result->nr;
	}
	result__count(&idle->result->entries[*slot - 1].row, ns);
	return 0;
}

/* ---- gaps ---- */

static int add_gap(struct idle *idle, const struct gap *gap)
{
	struct gap *added = bulk__push(&idle->gaps);

	if (!added)
		return no_memory();
	*added = *gap;
	return 0;
}

static const struct gap *gap_at(const struct idle *idle, size_t i)
{
	return bulk__at(&idle->gaps, i);
}

/* Explains a gap that the activity act ends, or leaves its host's part for later. */
static int on_gap(struct idle *idle, uint32_t device, uint64_t start_ns, uint64_t end_ns,
		  const struct corr_act *act)
{
	const struct corr_call *call = correlate__call(idle->corr, act->call);
	struct doing none = {0};
	uint64_t launch_ns;
	int err;

	if (!call)
		return count(idle, device, CAUSE_UNKNOWN, none, end_ns - start_ns);
	if (corr_call_end_ns(call) <= start_ns)
		return count(idle, device, CAUSE_DEVICE, none, end_ns - start_ns);
	launch_ns = call->start_ns < start_ns ? start_ns
		    : call->start_ns > end_ns ? end_ns
					      : call->start_ns;
	err = count(idle, device, CAUSE_LATENCY, none, end_ns - launch_ns);
	if (!err && launch_ns > start_ns)
		err = add_gap(idle, &(struct gap){start_ns, launch_ns, call->thread, device});
	return err;
}

/* Finds the gaps between the activities of one device, which are sorted by start time. */
static int find_gaps(struct idle *idle, uint32_t device, const struct bulk *acts)
{
	const struct kprof_capture_info *info = kprof_capture_info(idle->t);
	uint64_t until_ns = info->start_mono_ns, end_ns;
	int err = 0;

	for (size_t i = 0; i < acts->nr && !err; i++) {
		const struct corr_act *act =
			correlate__act(idle->corr, *(const uint32_t *)bulk__at(acts, i));

		end_ns = act->start_ns < info->end_mono_ns ? act->start_ns : info->end_mono_ns;
		if (end_ns > until_ns)
			err = on_gap(idle, device, until_ns, end_ns, act);
		if (act->end_ns > until_ns)
			until_ns = act->end_ns;
	}
	if (!err && until_ns < info->end_mono_ns)
		err = count(idle, device, CAUSE_NO_WORK, (struct doing){0},
			    info->end_mono_ns - until_ns);
	return err;
}

/* Finds the gaps of the device whose first row this is. */
static int find_device(struct idle *idle, uint32_t device)
{
	const struct corr_row *row = correlate__row(idle->corr, device);
	struct bulk acts;
	int err = correlate__of_device(idle->corr, row->pid, row->device, &acts);

	if (!err)
		err = find_gaps(idle, device, &acts);
	bulk__free(&acts);
	return err;
}

static int by_thread(const void *pa, const void *pb, void *ctx)
{
	const struct gap *a = pa, *b = pb;

	if (a->thread != b->thread)
		return order_u64(a->thread, b->thread);
	if (a->start_ns != b->start_ns)
		return order_u64(a->start_ns, b->start_ns);
	return order_u64(a->device, b->device);
}

/* ---- what the threads did in gaps ---- */

static struct level *top(struct track *tr)
{
	return tr->depth ? &tr->levels[tr->depth - 1] : NULL;
}

static void add_time(struct active *a, const struct level *l, uint64_t ns)
{
	struct doing d = l ? l->doing : (struct doing){0};
	uint32_t i = 0;

	while (i < a->nr &&
	       (a->tallies[i].doing.description != d.description || a->tallies[i].doing.op != d.op))
		i++;
	if (i == MAX_DOINGS)
		return; /* with so many kinds, the next one is not what took most of the time */
	if (i == a->nr) {
		a->tallies[a->nr++] = (struct tally){.doing = d,
						     .annotation = l && l->annotation &&
								   l->start_ns >= a->gap.start_ns};
	}
	a->tallies[i].ns += ns;
}

static int end_gap(struct idle *idle, const struct active *a)
{
	uint64_t ns = a->gap.end_ns - a->gap.start_ns;
	const struct tally *most = NULL;
	struct doing d = {0};

	for (uint32_t i = 0; i < a->nr; i++)
		if (!most || a->tallies[i].ns > most->ns)
			most = &a->tallies[i];
	if (most)
		d = most->doing;
	/* An annotation that fills most of the gap says more than the wait at its begin. */
	if (a->sync.description && !(most && most->annotation && most->ns > ns / 2))
		return count(idle, a->gap.device, CAUSE_SYNC, a->sync, ns);
	d.wait = idle_waits__of(idle->waits, a->gap.thread, a->gap.start_ns, a->gap.end_ns);
	return count(idle, a->gap.device, CAUSE_HOST, d, ns);
}

static int begin_gap(struct track *tr, const struct gap *gap)
{
	struct active *a;

	if (!tr->active)
		tr->active = calloc(MAX_ACTIVE, sizeof(*tr->active));
	if (!tr->active)
		return no_memory();
	if (tr->nr_active == MAX_ACTIVE)
		return 0; /* its time is in no row: the rows' sum shows that it is missing */
	a = &tr->active[tr->nr_active++];
	a->gap = *gap;
	a->nr = 0;
	a->sync = (struct doing){0};
	for (size_t i = 0; i < tr->depth && !a->sync.description; i++)
		if (tr->levels[i].sync)
			a->sync = tr->levels[i].doing;
	return 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Accounts for the time since the thread's last event, in which its innermost span was the same. */
static int pass_time(struct idle *idle, struct track *tr, uint64_t now_ns)
{
	uint32_t kept = 0;
	int err = 0;

	while (!err && tr->next < tr->end && gap_at(idle, tr->next)->start_ns < now_ns)
		err = begin_gap(tr, gap_at(idle, tr->next++));
	for (uint32_t i = 0; i < tr->nr_active && !err; i++) {
		struct active *a = &tr->active[i];
		uint64_t from_ns = later(a->gap.start_ns, tr->last_ns);
		uint64_t to_ns = now_ns < a->gap.end_ns ? now_ns : a->gap.end_ns;

		if (to_ns > from_ns)
			add_time(a, top(tr), to_ns - from_ns);
		if (a->gap.end_ns <= now_ns)
			err = end_gap(idle, a);
		else if (kept++ != i)
			tr->active[kept - 1] = *a;
	}
	tr->nr_active = kept;
	tr->last_ns = now_ns;
	return err;
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct idle *idle = ctx;
	struct track *tr = &idle->tracks[s->thread];
	const struct level *outer;
	struct level *l;
	int err;

	if (tr->end == 0) /* the thread launched nothing that ended a gap */
		return 0;
	err = pass_time(idle, tr, s->start_ns);
	if (err)
		return err;
	if (vec_grow((void **)&tr->levels, &tr->cap, tr->depth, sizeof(*l)))
		return no_memory();
	outer = top(tr);
	l = &tr->levels[tr->depth++];
	*l = (struct level){.start_ns = s->start_ns, .doing = {.description = s->description->id}};
	if (!correlate__is_op(idle->corr, s->description) && outer)
		l->doing.op = outer->doing.op ? outer->doing.op : outer->doing.description;
	l->annotation =
		correlate__type(idle->corr, s->description) == KPROF_ACTIVITY_USER_ANNOTATION;
	/*
	 * The profiler's step annotation is around everything and does not say what is done in it.
	 */
	if (l->annotation && !strncmp(s->description->name, "ProfilerStep#", 13)) {
		l->doing = outer ? outer->doing : (struct doing){0};
		l->annotation = outer && outer->annotation;
	}
	l->sync = correlate__is_wait(idle->corr, s->description);
	return 0;
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct idle *idle = ctx;
	struct track *tr = &idle->tracks[s->thread];
	int err;

	if (tr->end == 0)
		return 0;
	err = pass_time(idle, tr, s->end_ns);
	tr->depth--;
	return err;
}

static int explain_gaps(struct idle *idle)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	size_t nr = kprof_capture_info(idle->t)->nr_threads;
	int err;

	if (bulk__sort(&idle->gaps, 0, idle->gaps.nr, by_thread, NULL))
		return no_memory();
	idle->tracks = calloc(nr + 1, sizeof(*idle->tracks));
	if (!idle->tracks)
		return no_memory();
	for (size_t i = idle->gaps.nr; i--;) {
		struct track *tr = &idle->tracks[gap_at(idle, i)->thread];

		tr->next = i;
		if (!tr->end)
			tr->end = i + 1;
	}
	err = timeline__walk(idle->t, &walker, idle);
	for (size_t i = 0; i < nr && !err; i++)
		err = pass_time(idle, &idle->tracks[i], UINT64_MAX);
	return err;
}

static void idle_free(struct idle *idle)
{
	size_t nr = kprof_capture_info(idle->t)->nr_threads;

	for (size_t i = 0; idle->tracks && i < nr; i++) {
		free(idle->tracks[i].active);
		free(idle->tracks[i].levels);
	}
	free(idle->tracks);
	bulk__free(&idle->gaps);
	map64__free(&idle->doings);
	map64__free(&idle->waiting);
	idle_waits__free(idle->waits);
	map64__free(&idle->rows);
	correlate__free(idle->corr);
}

int result__by_idle(struct kprof_result *r, struct kprof_capture *t)
{
	struct idle idle = {.result = r, .t = t, .gaps = {.size = sizeof(struct gap)}};
	int err = idle_waits__new(t, &idle.waits);

	if (!err)
		err = correlate__new(t, 0, &idle.corr);
	for (uint32_t i = 0; !err && correlate__row(idle.corr, i); i++)
		if (correlate__first_of_device(idle.corr, i))
			err = find_device(&idle, i);
	if (!err)
		err = explain_gaps(&idle);
	idle_free(&idle);
	return err;
}
