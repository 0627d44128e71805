// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table by step of a training: those that lie in the selected range whole. What a process does
 * belongs to the step in which it begins, on whichever thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/busy.h"
#include "model/report/impl.h"
#include "model/report/nested.h"
#include "model/stacks/stacks.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define OP_CATEGORY "cpu_op"
/* Each is a row in memory. */
#define MAX_STEPS (1u << 18)
/* Different operators of all steps together: at most 128 MB. */
#define MAX_SHARES (1u << 22)
#define NO_STEP UINT32_MAX

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct bulk steps; /* struct tl_step: of row i, the i-th */
	struct nested nested;
	struct groups groups;
	struct map64 self; /* operators' self time + 1, by step << 32 | group */
};

static const struct tl_step *step_at(const struct table *table, size_t i)
{
	return bulk__at(&table->steps, i);
}

static struct kprof_row *row_at(const struct table *table, uint32_t i)
{
	return &table->result->entries[i].row;
}

static int too_many(const char *what, unsigned int limit)
{
	return error_set(-E2BIG, "choose a part: --from TIME, --to TIME or --step A..B",
			 "more than %u %s", limit, what);
}

/* ---- rows ---- */

static char *name_of(const struct table *table, const struct tl_step *s)
{
	const struct tl_description *d =
		timeline__description(table->t, (size_t)s->description - 1);
	size_t len = strlen(d->name);

	if (!strncmp(d->name, "Optimizer.", 10))
		return xasprintf("step %llu", (unsigned long long)s->number);
	if (len && d->name[len - 1] >= '0' && d->name[len - 1] <= '9')
		return strdup(d->name);
	return xasprintf("%s %llu", d->name, (unsigned long long)s->number);
}

static int add_row(struct table *table, const struct tl_step *s)
{
	struct kprof_row *row = result__row(table->result, name_of(table, s));

	if (!row)
		return -ENOMEM;
	row->pid = s->pid;
	row->tid = timeline__thread(table->t, s->thread)->tid;
	row->step = s->number;
	row->start_ns = s->start_ns - timeline__recorded_from(table->t);
	row->total_ns = row->min_ns = row->max_ns = s->end_ns - s->start_ns;
	row->timed = 1;
	/* Its duration is an upper bound, or only a part of it was recorded. */
	row->inexact = (s->flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END |
				    KPROF_EVENT_OPEN_AT_START)) != 0;
	row->top = "";
	return 0;
}

/* Leaves the steps that lie in the window whole, with a row for each. */
static int take_steps(struct table *table)
{
	const struct kprof_capture_info *info = kprof_capture_info(table->t);
	size_t nr = 0;
	int err = timeline__steps(table->t, &table->steps);

	for (size_t i = 0; i < table->steps.nr && !err; i++) {
		struct tl_step s = *step_at(table, i);

		if (s.start_ns < info->start_mono_ns || s.end_ns > info->end_mono_ns)
			continue;
		if (nr == MAX_STEPS)
			return too_many("steps", MAX_STEPS);
		*(struct tl_step *)bulk__at(&table->steps, nr++) = s;
		err = add_row(table, &s);
	}
	table->steps.nr = nr;
	return err;
}

/* The first step of a process that ends after a moment, or else of a later process. */
static size_t step_until(const struct table *table, pid_t pid, uint64_t ns)
{
	size_t low = 0, high = table->steps.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct tl_step *s = step_at(table, mid);

		if (s->pid < pid || (s->pid == pid && s->end_ns <= ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The step that a moment of a process belongs to; NO_STEP: none. */
static uint32_t step_of(const struct table *table, pid_t pid, uint64_t ns)
{
	size_t i = step_until(table, pid, ns);
	const struct tl_step *s = i < table->steps.nr ? step_at(table, i) : NULL;

	return s && s->pid == pid && s->start_ns <= ns ? (uint32_t)i : NO_STEP;
}

/* ---- operators ---- */

static uint32_t step_of_op(const struct table *table, const struct tl_span *s)
{
	if (strcmp(s->description->category, OP_CATEGORY) != 0)
		return NO_STEP;
	return step_of(table, timeline__thread(table->t, s->thread)->pid, s->whole_start_ns);
}

static int begin_op(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct table *table = ctx;
	uint32_t step = step_of_op(table, s);

	return step == NO_STEP ? 0 : nested__begin(&table->nested, step, s);
}

static int end_op(void *ctx, const struct tl_span *s, void *data)
{
	struct table *table = ctx;
	uint32_t step = step_of_op(table, s);
	struct kprof_row *row;
	uint64_t *self;

	if (step == NO_STEP)
		return 0;
	row = row_at(table, step);
	row->calls++;
	row->op_ns += nested__end(&table->nested, step, s);
	if (s->flags & KPROF_EVENT_CLOSED)
		return 0;
	if (table->self.used == MAX_SHARES)
		return too_many("different operators in steps", MAX_SHARES);
	self = map64__at(&table->self,
			 (uint64_t)step << 32 | table->groups.of_what[s->description->id - 1]);
	if (!self)
		return error_set(-ENOMEM, NULL, "out of memory for a table of steps");
	*self += s->self_ns + !*self; /* the first one adds 1: a value of 0 is no entry */
	return 0;
}

/* Names each step's operator with the most self time; between equals, the first by name. */
static int name_tops(struct table *table)
{
	size_t nr = table->result->nr;
	uint32_t *top = calloc(nr + 1, sizeof(*top));
	uint64_t *most = calloc(nr + 1, sizeof(*most)), *all = calloc(nr + 1, sizeof(*all));
	int err = top && most && all
			  ? 0
			  : error_set(-ENOMEM, NULL, "out of memory for a table of steps");

	for (size_t i = 0; i < table->self.cap && !err; i++) {
		const struct map64_slot *slot = &table->self.slots[i];
		uint32_t step = (uint32_t)((slot->tag - 1) >> 32),
			 group = (uint32_t)(slot->tag - 1);

		if (!slot->tag || !slot->value)
			continue;
		all[step] += slot->value - 1;
		if (slot->value < most[step] || (slot->value == most[step] && group > top[step]))
			continue;
		most[step] = slot->value;
		top[step] = group;
	}
	for (size_t i = 0; i < nr && !err; i++) {
		struct kprof_row *row = row_at(table, (uint32_t)i);

		if (!most[i])
			continue;
		row->top = result__keep(table->result, table->groups.groups[top[i]].name);
		row->top_share = all[i] ? (double)(most[i] - 1) / (double)all[i] : 0;
		err = row->top ? 0 : -ENOMEM;
	}
	free(top);
	free(most);
	free(all);
	return err;
}

/* ---- samples and devices ---- */

static int count_sample(void *ctx, const struct store_record *r)
{
	struct table *table = ctx;
	uint32_t step = step_of(table, timeline__thread(table->t, r->sample.thread)->pid,
				r->sample.time_ns);

	if (step == NO_STEP || stack_off_cpu(r->sample.flags))
		return 0;
	row_at(table, step)->self_samples++;
	add_capped(&row_at(table, step)->self_ns, r->sample.weight_ns);
	return 0;
}

/* A device's work may go on through several steps. */
static int count_busy(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns)
{
	struct table *table = ctx;

	for (size_t i = step_until(table, pid, start_ns); i < table->steps.nr; i++) {
		const struct tl_step *s = step_at(table, i);
		uint64_t from_ns = s->start_ns > start_ns ? s->start_ns : start_ns;
		uint64_t to_ns = s->end_ns < end_ns ? s->end_ns : end_ns;

		if (s->pid != pid || from_ns >= to_ns)
			break;
		row_at(table, (uint32_t)i)->device_ns += to_ns - from_ns;
	}
	return 0;
}

static int fill(struct table *table)
{
	static const struct tl_walker walker = {.begin = begin_op, .end = end_op};
	int err = take_steps(table);

	if (err || !table->steps.nr)
		return err;
	err = groups__make(table->t, GROUPS_BY_NAME, &table->groups);
	if (!err)
		err = timeline__walk(table->t, &walker, table);
	if (!err)
		err = name_tops(table);
	if (!err)
		err = timeline__samples(table->t, 0, count_sample, table);
	return err ? err : busy__each(table->t, count_busy, table);
}

int result__by_step(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {.result = r, .t = t};
	int err;

	r->keep_all = r->in_order = true;
	err = fill(&table);
	bulk__free(&table.steps);
	nested__free(&table.nested);
	groups__free(&table.groups);
	map64__free(&table.self);
	return err;
}
