// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table by operator and type of its elements: the operations that it did, the bytes that it had to
 * move, how long that took, and what the device could have done in that time. What else devices
 * worked for has a row without operations: by operator, or by kernel where no operator launched it,
 * as with kernels that torch.compile has made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/flops.h"
#include "model/report/impl.h"
#include "model/report/launched.h"
#include "model/report/peak.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define MOST_DEVICES 4096

/* An open span whose operations are counted, and what was launched inside of it. */
struct counted {
	uint64_t device_ns;
	uint32_t device;
	bool launched; /* a call for a device's work was made inside of it */
};

struct counteds { /* of one thread, the innermost last */
	struct counted *at;
	size_t nr, cap;
};

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct counteds *threads;
	size_t nr_threads;
	struct flops flops;
	struct launched launched;
	struct map64 in_rows; /* ids of spans whose launched work is in a row: 1 */
	struct map64 devices; /* PID << 32 | ordinal → index into peaks[] + 1 */
	struct peak *peaks;
	size_t nr_peaks, cap_peaks;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of operations");
}

/* ---- rows ---- */

/* NULL: no memory. Beyond many devices, nothing is known of one. */
static const struct peak *peak_of(struct table *table, pid_t pid, uint32_t device)
{
	static const struct peak unknown;
	uint64_t *at = map64__at(&table->devices, (uint64_t)pid << 32 | device);

	if (!at)
		return NULL;
	if (*at)
		return &table->peaks[*at - 1];
	if (table->nr_peaks == MOST_DEVICES)
		return &unknown;
	if (vec_grow((void **)&table->peaks, &table->cap_peaks, table->nr_peaks,
		     sizeof(*table->peaks)))
		return NULL;
	peak_read(table->t, pid, device, &table->peaks[table->nr_peaks++]);
	*at = table->nr_peaks;
	return &table->peaks[table->nr_peaks - 1];
}

/* There are few: operators, types of a known size, two places. */
static struct kprof_row *row_of(struct table *table, const char *name, const char *type,
				const char *where)
{
	struct kprof_result *r = table->result;
	struct kprof_row *row;

	for (size_t i = 0; i < r->nr; i++) {
		row = &r->entries[i].row;
		if (!strcmp(row->name, name) && !strcmp(row->category, type) &&
		    !strcmp(row->where, where))
			return row;
	}
	row = result__row(r, strdup(name));
	if (!row)
		return NULL;
	row->where = where;
	row->category = result__keep(r, type);
	return row->category ? row : NULL;
}

/* Rows of devices that differ have no peak: it becomes -1 on the way. */
static int give_peak(struct table *table, struct kprof_row *row, pid_t pid, uint32_t device)
{
	const struct peak *peak = peak_of(table, pid, device);
	double flops = peak ? peak_flops_per_s(peak, row->category, false) : 0;
	double tf32 = peak ? peak_flops_per_s(peak, row->category, true) : 0;

	if (!peak)
		return no_memory();
	if (row->calls == 1) {
		row->flops_peak = flops;
		row->tf32_peak = tf32;
		row->bytes_peak = peak->bytes_per_s;
	}
	if (row->flops_peak != flops)
		row->flops_peak = row->tf32_peak = -1;
	if (row->bytes_peak != peak->bytes_per_s)
		row->bytes_peak = -1;
	return 0;
}

/* ---- calls ---- */

static int begin(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct table *table = ctx;
	struct counteds *open = &table->threads[s->thread];

	if (!flops__counts(&table->flops, s))
		return 0;
	if (vec_grow((void **)&open->at, &open->cap, open->nr, sizeof(*open->at)))
		return no_memory();
	open->at[open->nr++] = (struct counted){0};
	return 0;
}

static void launched_in(struct counteds *open, uint64_t ns, uint32_t device)
{
	if (!ns || !open->nr)
		return;
	add_capped(&open->at[open->nr - 1].device_ns, ns);
	open->at[open->nr - 1].device = device;
}

static int count(struct table *table, const struct tl_span *s, const struct flops_work *work,
		 const struct counted *inside)
{
	bool on_device = inside->device_ns;
	/* what was launched, and not recorded, took a time that is not known */
	bool timed = !(s->flags & KPROF_EVENT_CLOSED) && !inside->launched;
	uint64_t took_ns = on_device ? inside->device_ns : s->end_ns - s->start_ns;
	struct kprof_row *row =
		row_of(table, s->description->name, work->type, on_device ? "device" : "cpu");

	if (!row)
		return -ENOMEM;
	if (!on_device && (!timed || s->beyond)) { /* of which it is not known how long it took */
		row->inexact++;
		return 0;
	}
	row->calls++;
	row->timed++;
	add_capped(&row->flops, work->flops);
	add_capped(&row->bytes,
		   work->bytes ? work->bytes : UINT64_MAX); /* all, or none are known */
	add_capped(&row->total_ns, took_ns);
	add_capped(&row->self_ns, took_ns);
	if (!on_device)
		return 0;
	add_capped(&row->device_ns, took_ns);
	return give_peak(table, row, timeline__thread(table->t, s->thread)->pid, inside->device);
}

/* Work of an operator of which nobody knows how many operations it did. */
static int count_unknown(struct table *table, const struct tl_span *s, uint64_t device_ns)
{
	struct kprof_row *row = row_of(table, s->description->name, "", "device");

	if (!row)
		return -ENOMEM;
	result__count(row, device_ns);
	add_capped(&row->device_ns, device_ns);
	return 0;
}

/*
 * What a span has launched itself, inside of an operator with a formula or not. What an annotation
 * has is in no row yet: its kernels get rows of their own.
 */
static int count_launched(struct table *table, const struct tl_span *s,
			  const struct launched_work *launched)
{
	struct counteds *open = &table->threads[s->thread];
	uint64_t *in_rows;

	launched_in(open, launched->ns, launched->device);
	if (!open->nr && strcmp(s->description->category, "cpu_op") != 0)
		return 0;
	in_rows = map64__at(&table->in_rows, s->id);
	if (!in_rows)
		return no_memory();
	*in_rows = 1;
	return open->nr ? 0 : count_unknown(table, s, launched->ns);
}

static bool is_launch(const char *category)
{
	return !strcmp(category, "cuda_runtime") || !strcmp(category, "cuda_driver");
}

static int end(void *ctx, const struct tl_span *s, void *data)
{
	struct table *table = ctx;
	struct counteds *open = &table->threads[s->thread];
	const struct launched_work *launched = launched__of(&table->launched, s->id);
	const struct flops_work *work;
	bool formula = flops__counts(&table->flops, s) && open->nr;
	struct counted inside;
	int err = 0;

	if (launched)
		err = count_launched(table, s, launched);
	if (err)
		return err;
	if (open->nr && is_launch(s->description->category))
		open->at[open->nr - 1].launched = true;
	if (!formula)
		return 0;
	inside = open->at[--open->nr];
	launched_in(open, inside.device_ns, inside.device);
	if (open->nr) {
		open->at[open->nr - 1].launched |= inside.launched;
		return 0; /* the work of what is around it, as with sparse matrices */
	}
	err = s->beyond & TL_BEFORE ? -ENODATA : flops__work(&table->flops, table->t, s, &work);
	if (err == -ENOMEM)
		return no_memory();
	if (err || !work)
		return inside.device_ns ? count_unknown(table, s, inside.device_ns) : 0;
	return count(table, s, work, &inside);
}

/* Work that is in no row yet: nobody called for it, or an annotation was all there was around. */
static bool is_left(const void *ctx, uint32_t number)
{
	const struct table *table = ctx;
	const struct corr_act *act = correlate__act(table->launched.corr, number);
	const struct corr_call *call =
		act ? correlate__call(table->launched.corr, act->call) : NULL;

	return act && !(call && call->op && map64__get(&table->in_rows, call->op));
}

static int by_kernel(struct table *table)
{
	size_t first = table->result->nr;
	int err = result__by_work(table->result, table->t, is_left, table);

	for (size_t i = first; i < table->result->nr; i++) {
		struct kprof_row *row = &table->result->entries[i].row;

		row->category = "";
		row->where = "device";
		row->device_ns = row->total_ns;
	}
	return err;
}

/* Floats that are faster than floats can be: their products were shortened, as TF32 does. */
static void finish(struct kprof_row *row)
{
	double seconds = (double)row->total_ns / 1e9;

	if (row->tf32_peak > row->flops_peak && seconds > 0 &&
	    (double)row->flops / seconds > row->flops_peak) {
		row->flops_peak = row->tf32_peak;
	} else {
		row->tf32_peak = 0;
	}
	if (row->bytes == UINT64_MAX)
		row->bytes = 0;
	if (row->flops_peak < 0)
		row->flops_peak = 0;
	if (row->bytes_peak < 0)
		row->bytes_peak = 0;
}

static int fill(struct table *table)
{
	static const struct tl_walker walker = {.begin = begin, .end = end};
	int err;

	while (timeline__thread(table->t, table->nr_threads))
		table->nr_threads++;
	table->threads = calloc(table->nr_threads + 1, sizeof(*table->threads));
	err = table->threads ? launched__read(table->t, &table->launched) : no_memory();
	if (!err)
		err = timeline__walk(table->t, &walker, table);
	if (!err)
		err = by_kernel(table);
	for (size_t i = 0; i < table->result->nr; i++)
		finish(&table->result->entries[i].row);
	return err;
}

int result__by_flops(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {.result = r, .t = t};
	int err = fill(&table);

	for (size_t i = 0; table.threads && i < table.nr_threads; i++)
		free(table.threads[i].at);
	free(table.threads);
	free(table.peaks);
	map64__free(&table.devices);
	map64__free(&table.in_rows);
	launched__free(&table.launched);
	flops__free(&table.flops);
	return err;
}
