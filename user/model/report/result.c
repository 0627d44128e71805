// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables with one row per operator, or one per thread, over all spans of a capture. Those of
 * devices are in device.c and idle.c, those of samples in samples.c.
 */
#include "kprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/timeline/timeline.h"
#include "model/report/counts.h"
#include "model/report/flops.h"
#include "model/report/impl.h"
#include "model/report/memory.h"
#include "model/report/nested.h"
#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

/* While the spans are read. */
struct tally {
	struct kprof_result *result;
	const struct kprof_capture *t;
	struct nested rows, all;
	struct memory_walk memory;
	struct flops flops;
	struct counts counts;
	/* The span's row: of its group, or of its thread. */
	uint32_t (*row_of)(const struct kprof_result *r, const struct tl_span *s);
};

static uint32_t op_of(const struct kprof_result *r, const struct tl_span *s)
{
	return r->groups.of_what[s->description->id - 1];
}

static uint32_t thread_of(const struct kprof_result *r, const struct tl_span *s)
{
	return s->thread;
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct tally *tally = ctx;
	uint32_t row = tally->row_of(tally->result, s);
	int err = nested__begin(&tally->rows, row, s);

	if (!err)
		err = nested__begin(&tally->all, 0, s);
	if (!err)
		err = counts__begin(&tally->counts, row, s);
	return err ? err : memory_walk__begin(&tally->memory, s);
}

/* Of the calls that are counted: those that begin in the range. */
static void count_flops(struct tally *tally, struct kprof_row *row, const struct tl_span *s)
{
	uint64_t flops = s->beyond & TL_BEFORE ? 0 : flops__of(&tally->flops, tally->t, s);

	row->flops = flops > UINT64_MAX - row->flops ? UINT64_MAX : row->flops + flops;
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct tally *tally = ctx;
	struct kprof_result *r = tally->result;
	uint32_t row = tally->row_of(r, s);
	struct memory_sum self, all;

	result__count_span(&r->entries[row].row, s, nested__end(&tally->rows, row, s));
	count_flops(tally, &r->entries[row].row, s);
	counts__end(&tally->counts, tally->t, row, s, r->entries[row].counts);
	memory_walk__end(&tally->memory, s, &self, &all); /* by thread: none was read */
	memory_add(&r->entries[row].row.self_memory_bytes, self.cpu);
	memory_add(&r->entries[row].row.self_device_memory_bytes, self.devices);
	if (!nested__is_open(&tally->rows, row, s)) {
		memory_add(&r->entries[row].row.memory_bytes, all.cpu);
		memory_add(&r->entries[row].row.device_memory_bytes, all.devices);
	}
	r->spans_ns += nested__end(&tally->all, 0, s);
	return 0;
}

/*
 * What was allocated and freed in no span is in the row of the instants' own name, as in
 * key_averages().
 */
static void count_outside(struct tally *tally)
{
	const struct memory_walk *m = &tally->memory;
	struct kprof_result *r = tally->result;
	struct kprof_row *row;

	memory_walk__rest(&tally->memory);
	if (!m->nr_outside || tally->row_of != op_of)
		return;
	row = &r->entries[r->groups.of_what[m->description - 1]].row;
	row->calls += m->nr_outside;
	row->memory_bytes = row->self_memory_bytes = m->outside.cpu;
	row->device_memory_bytes = row->self_device_memory_bytes = m->outside.devices;
}

/* Gives each row its sums of counters. */
static int new_counts(struct kprof_result *r, const struct kprof_capture *t, struct counts *counts)
{
	int err = counts__new(t, counts);

	if (err || !counts->nr)
		return err;
	r->counts = calloc(r->nr + 1, counts->nr * sizeof(*r->counts));
	if (!r->counts)
		return error_set(-ENOMEM, NULL, "out of memory for counters");
	r->nr_counters = counts->nr;
	for (size_t i = 0; i < r->nr; i++)
		r->entries[i].counts = r->counts + i * counts->nr;
	return 0;
}

static int count_spans(struct kprof_result *r, struct kprof_capture *t,
		       uint32_t (*row_of)(const struct kprof_result *r, const struct tl_span *s))
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	struct tally tally = {.result = r, .t = t, .row_of = row_of};
	int err = row_of == op_of ? memory_walk__read(t, &tally.memory) : 0;

	if (!err)
		err = new_counts(r, t, &tally.counts);
	if (!err)
		err = timeline__walk(t, &walker, &tally);
	if (!err)
		count_outside(&tally);
	memory_walk__free(&tally.memory);
	flops__free(&tally.flops);
	counts__free(&tally.counts);
	nested__free(&tally.rows);
	nested__free(&tally.all);
	return err;
}

static int op_rows(struct kprof_result *r, struct kprof_capture *t)
{
	int err = groups__make(t, GROUPS_BY_NAME_AND_CATEGORY, &r->groups);

	if (err)
		return err;
	r->entries = calloc(r->groups.nr + 1, sizeof(*r->entries)); /* + 1: none is no failure */
	if (!r->entries)
		return error_set(-ENOMEM, NULL, "out of memory for %zu rows", r->groups.nr);
	for (; r->nr < r->groups.nr; r->nr++) {
		r->entries[r->nr].row.name = r->groups.groups[r->nr].name;
		r->entries[r->nr].row.category = r->groups.groups[r->nr].category;
	}
	return 0;
}

static int by_op(struct kprof_result *r, struct kprof_capture *t)
{
	int err = op_rows(r, t);

	return err ? err : count_spans(r, t, op_of);
}

static int by_thread(struct kprof_result *r, struct kprof_capture *t)
{
	int err = result__thread_rows(r, t);

	return err ? err : count_spans(r, t, thread_of);
}

/* Compares a.total / a.timed with b's, without rounding. */
static int compare_avg(const struct kprof_row *a, const struct kprof_row *b)
{
	unsigned __int128 x = (unsigned __int128)a->total_ns * b->timed;
	unsigned __int128 y = (unsigned __int128)b->total_ns * a->timed;

	return (x > y) - (x < y);
}

/* Sorts rows from the largest value to the smallest, and names in ascending order. */
static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct entry *ea = pa, *eb = pb;
	const struct kprof_row *a = &ea->row, *b = &eb->row;
	int order = 0;

	switch (*(const enum kprof_sort *)ctx) {
	case KPROF_SORT_SELF:
		order = order_u64(b->self_ns, a->self_ns);
		break;
	case KPROF_SORT_TOTAL:
		order = order_u64(b->total_ns, a->total_ns);
		break;
	case KPROF_SORT_COUNT:
		order = order_u64(b->calls, a->calls);
		break;
	case KPROF_SORT_AVG:
		order = compare_avg(b, a);
		break;
	case KPROF_SORT_NAME:
		break;
	}
	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = strcmp(a->category, b->category);
	return order ? order : order_u64(ea->order, eb->order);
}

/*
 * Sums of spans may wrap around, as in the call tree. Weights of samples, which no window bounds,
 * saturate instead.
 */
static void add_self(struct kprof_result *r, uint64_t self_ns)
{
	if (__builtin_add_overflow(r->self_total_ns, self_ns, &r->self_total_ns) && r->of_samples)
		r->self_total_ns = UINT64_MAX;
}

static void give_shares(struct kprof_result *r)
{
	uint64_t whole_ns = r->spans_ns ? r->spans_ns : r->self_total_ns;

	for (size_t i = 0; i < r->nr && whole_ns; i++) {
		struct kprof_row *row = &r->entries[i].row;

		row->self_share = (double)row->self_ns / (double)whole_ns;
		if (!r->of_samples) /* those have theirs, with its error */
			row->total_share = (double)row->total_ns / (double)whole_ns;
	}
}

/* Removes rows that were never counted, then computes shares and sorts. */
static void finish(struct kprof_result *r, enum kprof_sort sort)
{
	bool by_self = sort == KPROF_SORT_SELF;
	size_t nr = 0;

	for (size_t i = 0; i < r->nr; i++) {
		const struct kprof_row *row = &r->entries[i].row;

		/* What was cut by the range's begin has time and no calls. */
		if (!row->calls && !row->timed && !row->idle_ns && !r->keep_all)
			continue;
		r->entries[nr] = r->entries[i];
		r->entries[nr].order = nr;
		if (!r->entries[nr].row.where)
			r->entries[nr].row.where = "";
		add_self(r, r->entries[nr++].row.self_ns);
	}
	r->nr = nr;
	give_shares(r);
	if (r->keep_all && sort == KPROF_SORT_SELF && !r->self_total_ns)
		sort = KPROF_SORT_TOTAL; /* without samples */
	if (nr && !(r->in_order && by_self))
		qsort_r(r->entries, nr, sizeof(*r->entries), compare_rows, &sort);
}

/* Tables are made of spans if the capture has any, since spans are exact. */
static bool wants_samples(const struct kprof_capture *t, enum kprof_by by)
{
	return by == KPROF_BY_FUNCTION || by == KPROF_BY_LINE ||
	       ((by == KPROF_BY_OP || by == KPROF_BY_THREAD) && kprof_capture_info(t)->nr_samples &&
		!result__has_op_spans(t));
}

static int fill(struct kprof_result *r, struct kprof_capture *t,
		const struct kprof_result_opts *opts)
{
	static int (*const tables[])(struct kprof_result * r, struct kprof_capture * t) = {
		[KPROF_BY_OP] = by_op,
		[KPROF_BY_THREAD] = by_thread,
		[KPROF_BY_KERNEL] = result__by_kernel,
		[KPROF_BY_API] = result__by_api,
		[KPROF_BY_STREAM] = result__by_stream,
		[KPROF_BY_MEMCPY] = result__by_memcpy,
		[KPROF_BY_IDLE] = result__by_idle,
		[KPROF_BY_PROCESS] = result__by_process,
		[KPROF_BY_USER] = result__by_user,
		[KPROF_BY_CONTAINER] = result__by_container,
		[KPROF_BY_STEP] = result__by_step,
		[KPROF_BY_WAIT] = result__by_wait,
		[KPROF_BY_MEMORY] = result__by_memory,
		[KPROF_BY_MODULE] = result__by_module,
		[KPROF_BY_COLLECTIVE] = result__by_collective,
		[KPROF_BY_FLOPS] = result__by_flops,
	};

	if (opts->off_cpu || wants_samples(t, opts->by))
		return result__by_samples(r, t, opts);
	if (opts->by >= ARRAY_SIZE(tables))
		return error_set_usage(-EINVAL, NULL, "no such table (%u)", opts->by);
	return tables[opts->by](r, t);
}

static int check_opts(const struct kprof_result_opts *opts)
{
	if (opts->sort > KPROF_SORT_NAME)
		return error_set_usage(-EINVAL, NULL, "no such order (%u)", opts->sort);
	if (opts->off_cpu && opts->by != KPROF_BY_OP && opts->by != KPROF_BY_THREAD &&
	    opts->by != KPROF_BY_FUNCTION && opts->by != KPROF_BY_LINE)
		return error_set_usage(-EINVAL, "by function, line, op or thread",
				       "this table is not made of samples or waits");
	if (opts->frames > KPROF_FRAMES_PYTHON)
		return error_set_usage(-EINVAL, NULL, "no such frames (%u)", opts->frames);
	if (opts->frames && opts->by != KPROF_BY_FUNCTION && opts->by != KPROF_BY_LINE)
		return error_set_usage(-EINVAL, "ask for a table by function or line",
				       "only these can be of native or Python frames alone");
	return 0;
}

int kprof_result_new_opts(struct kprof_capture *c, const struct kprof_result_opts *user,
			  struct kprof_result **out)
{
	struct kprof_result_opts opts = {0};
	struct kprof_result *r;
	int err;

	error_clear();
	*out = NULL;
	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	err = check_opts(&opts);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return error_set(-ENOMEM, NULL, "out of memory for a table");
	timeline__cut(c, true);
	timeline__show_waits(c, opts.off_cpu);
	err = fill(r, c, &opts);
	timeline__show_waits(c, false);
	timeline__cut(c, false);
	if (err) {
		kprof_result_free(r);
		return err;
	}
	finish(r, opts.sort);
	*out = r;
	return 0;
}

int kprof_result_new(struct kprof_capture *c, enum kprof_by by, enum kprof_sort sort,
		     struct kprof_result **out)
{
	const struct kprof_result_opts opts = {.sz = sizeof(opts), .by = by, .sort = sort};

	return kprof_result_new_opts(c, &opts, out);
}

bool kprof_result_of_samples(const struct kprof_result *r)
{
	return r->of_samples;
}

size_t kprof_result_nr_rows(const struct kprof_result *r)
{
	return r->nr;
}

const struct kprof_row *kprof_result_row(const struct kprof_result *r, size_t i)
{
	return i < r->nr ? &r->entries[i].row : NULL;
}

bool kprof_result_count(const struct kprof_result *r, size_t i, size_t counter,
			struct kprof_count *out)
{
	if (i >= r->nr || counter >= r->nr_counters || !r->entries[i].counts)
		return false;
	*out = r->entries[i].counts[counter];
	return true;
}

uint64_t kprof_result_self_total_ns(const struct kprof_result *r)
{
	return r->self_total_ns;
}

void kprof_result_free(struct kprof_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_names; i++)
		free(r->names[i]);
	free(r->names);
	groups__free(&r->groups);
	free(r->step_infos);
	free(r->step_differences);
	result__free_collectives(r);
	free(r->peaks);
	free(r->counts);
	free(r->entries);
	free(r);
}
