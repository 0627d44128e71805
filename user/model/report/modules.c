// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table by module of PyTorch: the calls of each, how long they took, and what the operators inside
 * of them did.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/flops.h"
#include "model/report/impl.h"
#include "model/report/launched.h"
#include "model/report/memory.h"
#include "model/report/nested.h"
#include "util/error.h"
#include "util/util.h"

#define NO_ROW UINT32_MAX

/* A call that is open; what was done in it, and in the calls inside of it that have ended. */
struct call {
	uint64_t inner_ns; /* of these, how long they took */
	uint64_t op_ns, device_ns, flops;
};

struct calls { /* of one thread, the innermost last */
	struct call *at;
	size_t nr, cap;
};

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	uint32_t *rows; /* by description */
	struct calls *threads;
	size_t nr_threads;
	struct nested nested;
	struct memory_walk memory;
	struct flops flops;
	struct launched launched;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of modules");
}

/* ---- rows ---- */

static int add_row(struct table *table, const struct tl_description *d)
{
	struct kprof_row *row =
		result__row(table->result, strdup(*d->nn->path ? d->nn->path : d->nn->name));

	if (!row)
		return -ENOMEM;
	row->category = d->nn->name;
	row->where = d->nn->outermost;
	table->rows[d->id - 1] = (uint32_t)(table->result->nr - 1);
	return 0;
}

static int add_rows(struct table *table)
{
	const struct tl_description *d;
	size_t nr = 0;
	int err = 0;

	while (timeline__description(table->t, nr))
		nr++;
	while (timeline__thread(table->t, table->nr_threads))
		table->nr_threads++;
	table->rows = calloc(nr + 1, sizeof(*table->rows));
	table->threads = calloc(table->nr_threads + 1, sizeof(*table->threads));
	if (!table->rows || !table->threads)
		return no_memory();
	for (size_t i = 0; i < nr && !err; i++) {
		d = timeline__description(table->t, i);
		table->rows[i] = NO_ROW;
		if (d->nn)
			err = add_row(table, d);
	}
	return err;
}

/* ---- calls ---- */

static int begin(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	uint32_t row = ((struct table *)ctx)->rows[s->description->id - 1];
	struct table *table = ctx;
	struct calls *calls = &table->threads[s->thread];
	int err = memory_walk__begin(&table->memory, s);

	if (err || row == NO_ROW)
		return err;
	if (vec_grow((void **)&calls->at, &calls->cap, calls->nr, sizeof(*calls->at)))
		return no_memory();
	calls->at[calls->nr++] = (struct call){0};
	return nested__begin(&table->nested, row, s);
}

/* An operator ends, or another span that is no call of a module. */
static void end_other(struct table *table, const struct tl_span *s)
{
	struct calls *calls = &table->threads[s->thread];
	struct call *inner = calls->nr ? &calls->at[calls->nr - 1] : NULL;
	const struct launched_work *work;
	struct memory_sum self, all;

	memory_walk__end(&table->memory, s, &self, &all);
	if (!inner)
		return;
	if (!(s->beyond & TL_BEFORE))
		add_capped(&inner->flops, flops__of(&table->flops, table->t, s));
	work = launched__of(&table->launched, s->id);
	add_capped(&inner->device_ns, work ? work->ns : 0);
	/* the outermost one in the call */
	if (s->parent_what && s->parent_what->nn && !(s->flags & KPROF_EVENT_CLOSED))
		add_capped(&inner->op_ns, s->end_ns - s->start_ns);
}

static void end_call(struct table *table, const struct tl_span *s, uint32_t at)
{
	struct kprof_row *row = &table->result->entries[at].row;
	struct calls *calls = &table->threads[s->thread];
	struct call call = calls->at[--calls->nr];
	struct call *outer = calls->nr ? &calls->at[calls->nr - 1] : NULL;
	uint64_t duration_ns = s->end_ns - s->start_ns;
	struct tl_span whole = *s;
	struct memory_sum self, all;

	memory_walk__end(&table->memory, s, &self, &all);
	whole.self_ns = duration_ns > call.inner_ns ? duration_ns - call.inner_ns : 0;
	row->pid = timeline__thread(table->t, s->thread)->pid;
	result__count_span(row, &whole, nested__end(&table->nested, at, s));
	if (!nested__is_open(&table->nested, at, s)) {
		memory_add(&row->memory_bytes, all.cpu);
		memory_add(&row->device_memory_bytes, all.devices);
		add_capped(&row->flops, call.flops);
		add_capped(&row->device_ns, call.device_ns);
		add_capped(&row->op_ns, call.op_ns);
	}
	if (!outer)
		return;
	add_capped(&outer->inner_ns, duration_ns);
	add_capped(&outer->flops, call.flops);
	add_capped(&outer->device_ns, call.device_ns);
	add_capped(&outer->op_ns, call.op_ns);
}

static int end(void *ctx, const struct tl_span *s, void *data)
{
	struct table *table = ctx;
	uint32_t row = table->rows[s->description->id - 1];

	if (row == NO_ROW)
		end_other(table, s);
	else
		end_call(table, s, row);
	return 0;
}

static int fill(struct table *table)
{
	static const struct tl_walker walker = {.modules = true, .begin = begin, .end = end};
	int err = add_rows(table);

	if (err || !table->result->nr)
		return err;
	err = launched__read(table->t, &table->launched);
	if (!err)
		err = memory_walk__read(table->t, &table->memory);
	return err ? err : timeline__walk(table->t, &walker, table);
}

int result__by_module(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {.result = r, .t = t};
	int err = fill(&table);

	for (size_t i = 0; table.threads && i < table.nr_threads; i++)
		free(table.threads[i].at);
	free(table.threads);
	free(table.rows);
	nested__free(&table.nested);
	memory_walk__free(&table.memory);
	flops__free(&table.flops);
	launched__free(&table.launched);
	return err;
}
