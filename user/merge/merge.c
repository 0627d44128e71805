// SPDX-License-Identifier: BSD-2-Clause
/* kprof_merge(): writes the records of several captures into one, events in the order of time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "store/store.h"
#include "util/error.h"

/* Where a recording begins or ends so much earlier or later than all of them, a gap says so. */
#define GAP_NS NSEC_PER_MSEC

/* ---- records of one capture ---- */

static uint32_t task_in_merged(void *ctx, uint32_t id)
{
	const struct merge_capture *c = ctx;

	return id < MERGE_PID_STEP ? id + c->merge->machines[c->machine].told.first_pid : id;
}

static uint64_t time_in_merged(void *ctx, uint64_t ns)
{
	const struct merge_capture *c = ctx;

	return clock_line__apply(&c->merge->machines[c->machine].line, ns);
}

static struct store_record *source_at(struct vec *sources, size_t i)
{
	while (sources->nr <= i)
		if (!vec_push(sources, sizeof(struct store_record)))
			return NULL;
	return (struct store_record *)sources->data + i;
}

/* The source of this name in the merged capture. */
static int merged_source(struct merge *m, uint32_t name, uint32_t *index)
{
	uint64_t *at = map64__at(&m->source_by_name, name);
	struct store_record *sum;

	if (!at)
		return merge_no_memory();
	*index = (uint32_t)(*at ? *at - 1 : m->sources.nr);
	if (*at)
		return 0;
	sum = source_at(&m->sources, *index);
	if (!sum)
		return merge_no_memory();
	*at = m->sources.nr;
	*sum = (struct store_record){.type = STORE_SOURCE,
				     .source = {.index = *index, .name = name}};
	return store_writer__put(m->out, sum);
}

/*
 * A source of the same name is the same one in all captures. Its counts are added up at the end,
 * since a later record of a capture replaces an earlier one.
 */
static int on_source(struct merge_capture *c, const struct store_record *r)
{
	uint32_t name = (uint32_t)kprof_copy__number(c->copy, STORE_REF_STRING, r->source.name);
	uint32_t i = 0;
	struct store_record *own = source_at(&c->sources, r->source.index);
	int err;

	if (!own)
		return merge_no_memory();
	*own = *r;
	err = merged_source(c->merge, name, &i);
	return err ? err : kprof_copy__map(c->copy, STORE_REF_SOURCE, r->source.index, i);
}

/* One of all processes is one of all that this capture has. */
static int on_gap_of_all(struct merge_capture *c, const struct store_record *r)
{
	struct store_record one = *r;
	const uint32_t *pids = c->pids.data;
	int err = 0;

	one.gap.what = (uint32_t)kprof_copy__number(c->copy, STORE_REF_STRING, r->gap.what);
	one.gap.reason = (uint32_t)kprof_copy__number(c->copy, STORE_REF_STRING, r->gap.reason);
	one.gap.start_ns = time_in_merged(c, r->gap.start_ns);
	one.gap.end_ns = time_in_merged(c, r->gap.end_ns);
	for (size_t i = 0; i < c->pids.nr && !err; i++) {
		one.gap.pid = task_in_merged(c, pids[i]);
		if (!i || pids[i] != pids[i - 1])
			err = store_writer__put(c->merge->out, &one);
	}
	return err;
}

static int on_record(void *ctx, const struct store_record *r)
{
	struct merge_capture *c = ctx;

	switch (r->type) {
	case STORE_META: /* metadata.c puts it */
		return 0;
	case STORE_SOURCE:
		return on_source(c, r);
	case STORE_GAP:
		return r->gap.pid || c->merge->nr == 1 ? 1 : on_gap_of_all(c, r);
	case STORE_CLOCK: /* the first one, which opens the window, is there */
		return c->machine == c->merge->reference && r->clock.mono_ns > c->start_ns;
	default:
		return 1;
	}
}

static const struct kprof_copy_ops ops = {
	.record = on_record, .task = task_in_merged, .time = time_in_merged};

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct merge_capture *c = ctx;
	const struct kprof_merge_opts *opts = c->merge->opts;
	uint64_t all = 0;

	c->read_bytes = done / 2 + (c->merge->second_part ? total / 2 : 0);
	for (size_t i = 0; i < c->merge->nr; i++)
		all += c->merge->captures[i].read_bytes;
	return opts->progress ? opts->progress(opts->ctx, all, c->merge->bytes) : 0;
}

/* ---- when a capture is over ---- */

/* Says when its threads were recorded, if others were recorded longer. */
static int put_windows(struct merge_capture *c, uint64_t start_ns, uint64_t end_ns)
{
	struct merge *m = c->merge;
	struct store_record r = {.type = STORE_THREAD_WINDOW,
				 .thread_window = {.start_ns = start_ns, .end_ns = end_ns}};
	int err = 0;

	if (start_ns == m->start_ns && end_ns == m->end_ns)
		return 0;
	for (uint64_t i = 0; !err; i++) {
		uint64_t index = kprof_copy__number(c->copy, STORE_REF_THREAD, i);

		if (index == STORE_LEFT_OUT) /* all of them are copied, so it was the last one */
			break;
		r.thread_window.thread = (uint32_t)index;
		err = store_writer__put(m->out, &r);
	}
	return err;
}

static int put_gap(struct merge_capture *c, uint32_t pid, const char *reason, uint64_t start_ns,
		   uint64_t end_ns)
{
	struct store_writer *out = c->merge->out;
	struct store_record r = {
		.type = STORE_GAP,
		.gap = {.pid = task_in_merged(c, pid),
			.what = store_writer__string(out, "anything", strlen("anything")),
			.reason = store_writer__string(out, reason, strlen(reason)),
			.start_ns = start_ns,
			.end_ns = end_ns},
	};

	return end_ns < start_ns + GAP_NS ? 0 : store_writer__put(out, &r);
}

/*
 * Where a process was not recorded. Where several captures have it, one after the other, each tells
 * of what was before it, and the last one of what was after it.
 */
static int put_gaps_of(struct merge_capture *c, uint32_t pid)
{
	const struct merge *m = c->merge;
	uint64_t before_ns = m->start_ns, start_ns = time_in_merged(c, c->start_ns);
	bool is_last = true;
	int err;

	for (const struct merge_capture *o = m->captures; o < m->captures + m->nr; o++) {
		if (o == c || o->machine != c->machine || !merge_has_pid(o, pid))
			continue;
		is_last &= o->start_ns < c->start_ns;
		if (o->end_ns <= c->start_ns && time_in_merged(c, o->end_ns) > before_ns)
			before_ns = time_in_merged(c, o->end_ns);
	}
	err = put_gap(c, pid, "its recording began later", before_ns, start_ns);
	if (!err && is_last)
		err = put_gap(c, pid, "its recording was over", time_in_merged(c, c->end_ns),
			      m->end_ns);
	return err;
}

static int put_gaps(struct merge_capture *c)
{
	const uint32_t *pids = c->pids.data;
	int err = 0;

	/* Of a whole machine, there may be thousands, most of which lived for a moment. */
	if (cJSON_GetObjectItemCaseSensitive(c->metadata, "all_processes"))
		return 0;
	for (size_t i = 0; i < c->pids.nr && !err; i++)
		if (!i || pids[i] != pids[i - 1])
			err = put_gaps_of(c, pids[i]);
	return err;
}

static void add_counts(struct store_record *sum, const struct store_record *own)
{
	add_capped(&sum->source.fired, own->source.fired);
	add_capped(&sum->source.captured, own->source.captured);
	add_capped(&sum->source.dropped, own->source.dropped);
	add_capped(&sum->source.missed, own->source.missed);
	add_capped(&sum->source.begins, own->source.begins);
	add_capped(&sum->source.ends_exact, own->source.ends_exact);
	add_capped(&sum->source.ends_closed, own->source.ends_closed);
	add_capped(&sum->source.orphan_ends, own->source.orphan_ends);
}

static int end_capture(struct merge_capture *c)
{
	struct store_record *sums = c->merge->sources.data, *own = c->sources.data;
	const struct kprof_source *counted = c->counts.data;
	int err = put_windows(c, time_in_merged(c, c->start_ns), time_in_merged(c, c->end_ns));

	for (size_t i = 0; i < c->sources.nr; i++) {
		if (i < c->counts.nr) { /* it was cut short */
			own[i].source.begins = counted[i].begins;
			own[i].source.ends_exact = counted[i].ends_exact;
			own[i].source.ends_closed = counted[i].ends_closed;
		}
		add_counts(&sums[kprof_copy__number(c->copy, STORE_REF_SOURCE, i)], &own[i]);
	}
	return err ? err : put_gaps(c);
}

/* ---- in the order of time ---- */

/* The captures that have a further event, as a heap: the one with the earliest is the first. */
struct queue {
	struct merge_capture **captures;
	size_t nr;
};

static bool is_before(const struct merge_capture *a, const struct merge_capture *b)
{
	return a->next_ns != b->next_ns ? a->next_ns < b->next_ns : a < b;
}

static void sink_down(struct queue *q, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		struct merge_capture *c = q->captures[i];

		for (size_t k = child; k < child + 2 && k < q->nr; k++)
			if (is_before(q->captures[k], q->captures[least]))
				least = k;
		if (least == i)
			return;
		q->captures[i] = q->captures[least];
		q->captures[least] = c;
		i = least;
	}
}

static int copy_in_order(struct queue *q)
{
	while (q->nr) {
		struct merge_capture *c = q->captures[0];
		int err = kprof_copy__event(c->copy);

		if (!err)
			err = kprof_copy__next(c->copy, &c->next_ns);
		if (err < 0)
			return err;
		if (!err)
			q->captures[0] = q->captures[--q->nr];
		if (q->nr)
			sink_down(q, 0);
	}
	return 0;
}

static int copy_part(struct merge *m, struct queue *q, enum kprof_copy_part part)
{
	int err = 0;

	q->nr = 0;
	m->second_part = part == KPROF_COPY_EVENTS;
	for (size_t i = 0; i < m->nr; i++) {
		struct merge_capture *c = &m->captures[i];

		kprof_copy__start(c->copy, part);
		err = kprof_copy__next(c->copy, &c->next_ns);
		if (err < 0)
			return err;
		if (err)
			q->captures[q->nr++] = c;
	}
	for (size_t i = q->nr; i-- > 0;)
		sink_down(q, i);
	return copy_in_order(q);
}

static int copy_all(struct merge *m)
{
	struct queue q = {.captures = calloc(m->nr, sizeof(struct merge_capture *))};
	int err = q.captures ? 0 : merge_no_memory();

	for (size_t i = 0; i < m->nr && !err; i++) {
		struct merge_capture *c = &m->captures[i];

		err = kprof_copy__new(c->path, m->out, &m->numbers, &ops, c, &c->copy);
		if (!err)
			store_reader__watch(kprof_copy__in(c->copy), on_progress, c);
	}
	if (!err)
		err = copy_part(m, &q, KPROF_COPY_DETAILS);
	if (!err)
		err = copy_part(m, &q, KPROF_COPY_EVENTS);
	for (size_t i = 0; i < m->nr && !err; i++)
		err = end_capture(&m->captures[i]);
	free(q.captures);
	return err;
}

/* ---- the whole ---- */

static void set_window(struct merge *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		struct merge_capture *c = &m->captures[i];
		uint64_t start_ns = time_in_merged(c, c->start_ns);
		uint64_t end_ns = time_in_merged(c, c->end_ns);

		if (!i || start_ns < m->start_ns)
			m->start_ns = start_ns;
		if (end_ns > m->end_ns)
			m->end_ns = end_ns;
	}
}

/* The first reading of the clocks opens the window. */
static int put_clock(struct merge *m)
{
	const struct merge_capture *c = &m->captures[m->machines[m->reference].first];
	struct store_record r = {
		.type = STORE_CLOCK,
		.clock = {.mono_ns = m->start_ns,
			  .real_ns = c->start_real_ns + (m->start_ns - c->start_ns)},
	};

	return store_writer__put(m->out, &r);
}

static int put_sources(struct merge *m)
{
	const struct store_record *sums = m->sources.data;
	int err = 0;

	for (size_t i = 0; i < m->sources.nr && !err; i++)
		err = store_writer__put(m->out, &sums[i]);
	return err;
}

int merge_write(struct merge *m)
{
	const struct kprof_merge_opts *opts = m->opts;
	const struct outfile_opts owner = {opts->set_owner, opts->uid, opts->gid};
	struct store_writer *out;
	int err;

	set_window(m);
	err = store_writer__open(opts->output, &owner, &m->out);
	if (!err)
		err = put_clock(m);
	if (!err)
		err = merge_put_metadata(m);
	if (!err)
		err = copy_all(m);
	if (!err)
		err = put_sources(m);
	out = m->out;
	m->out = NULL;
	if (err)
		store_writer__discard(out);
	return err ? err : store_writer__finish(out, m->end_ns);
}

static void tell(struct merge *m)
{
	for (size_t i = 0; i < m->nr_machines; i++) {
		struct merge_machine *machine = &m->machines[i];
		uint64_t middle_ns = machine->start_ns + (machine->end_ns - machine->start_ns) / 2;

		machine->told.offset_ns =
			(int64_t)(clock_line__apply(&machine->line, middle_ns) - middle_ns);
		machine->told.drift_ppm = machine->line.rate * 1e6;
		if (m->opts->machine)
			m->opts->machine(m->opts->ctx, &machine->told);
	}
}

static void free_all(struct merge *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		struct merge_capture *c = &m->captures[i];

		kprof_copy__free(c->copy);
		cJSON_Delete(c->metadata);
		free(c->host);
		free(c->boot);
		free(c->pids.data);
		free(c->sources.data);
		free(c->counts.data);
	}
	merge_free_texts(m);
	bulk__free(&m->parts);
	free(m->sources.data);
	map64__free(&m->source_by_name);
	free(m->captures);
	free(m->machines);
}

int kprof_merge(const char *const *paths, size_t nr, const struct kprof_merge_opts *user)
{
	struct kprof_merge_opts opts = {0};
	struct merge m = {
		.opts = &opts,
		.captures = calloc(nr + 1, sizeof(struct merge_capture)),
		.machines = calloc(nr + 1, sizeof(struct merge_machine)),
		.parts.size = sizeof(struct meeting),
		.numbers = KPROF_COPY_NUMBERS,
	};
	int err;

	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	error_clear();
	if (!m.captures || !m.machines)
		err = merge_no_memory();
	else if (!nr || !opts.output)
		err = error_set_usage(-EINVAL, NULL,
				      "no captures to merge, or no name for the result");
	else
		err = merge_read(&m, paths, nr);
	raise_descriptor_limit(); /* each capture has two files open while it is copied */
	if (!err)
		err = merge_fit(&m);
	if (!err) {
		tell(&m);
		err = merge_write(&m);
	}
	free_all(&m);
	return err;
}
