// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table by step of a training: those that lie in the selected range whole. What a process does
 * belongs to the step in which it begins, on whichever thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/activity.h"
#include "model/correlate/correlate.h"
#include "model/report/busy.h"
#include "model/report/impl.h"
#include "model/report/nested.h"
#include "model/report/step_parts.h"
#include "model/stacks/stacks.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define OP_CATEGORY "cpu_op"
/* Each is a row in memory. */
#define MAX_STEPS (1u << 18)
#define NO_STEP UINT32_MAX
/* How many steps a single wait or activity counts in: no more work for each, whatever it claims. */
#define MOST_STEPS_OF_ONE 16

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct bulk steps; /* struct tl_step: of row i, the i-th */
	struct nested nested;
	struct kprof_step_info *infos; /* of row i, the i-th */
	struct step_parts parts;
	uint32_t *number_of;  /* of step_parts, by id of the event description - 1 */
	uint64_t *covered_ns; /* by step: of its thread, in spans that lie in it */
	/* By step: devices that work all through it, minus those all through the one before. */
	int64_t *whole_steps;
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

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of steps");
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

/* ---- operators, calls, annotations ---- */

static bool is_op(const struct tl_description *d)
{
	return !strcmp(d->category, OP_CATEGORY);
}

/* The number of what a span's time goes to. Names such as "batch 17" count as one. */
static int number_of(struct table *table, const struct tl_description *d, uint32_t *number)
{
	uint32_t type = activity_by_name(d->category) ? activity_by_name(d->category)->id : 0;
	size_t len = strlen(d->name);
	char *name;
	int err;

	if (is_op(d))
		return step_parts__what(&table->parts, KPROF_STEP_OPERATOR, d->name, number);
	if (activity_is_call(type))
		return step_parts__what(&table->parts, KPROF_STEP_CALL, d->name, number);
	while (len && d->name[len - 1] >= '0' && d->name[len - 1] <= '9')
		len--;
	name = xasprintf("%.*s%s", (int)len, d->name, d->name[len] ? "N" : "");
	err = name ? step_parts__what(&table->parts, KPROF_STEP_ANNOTATION, name, number)
		   : no_memory();
	free(name);
	return err;
}

static int number_descriptions(struct table *table)
{
	const struct tl_description *d;
	size_t nr = 0;
	int err = 0;

	while (timeline__description(table->t, nr))
		nr++;
	table->number_of = calloc(nr + 1, sizeof(*table->number_of));
	if (!table->number_of)
		return no_memory();
	for (size_t i = 0; (d = timeline__description(table->t, i)) && !err; i++)
		err = number_of(table, d, &table->number_of[i]);
	return err;
}

static uint32_t step_of_span(const struct table *table, const struct tl_span *s)
{
	return step_of(table, timeline__thread(table->t, s->thread)->pid, s->whole_start_ns);
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct table *table = ctx;
	uint32_t step = is_op(s->description) ? step_of_span(table, s) : NO_STEP;

	return step == NO_STEP ? 0 : nested__begin(&table->nested, step, s);
}

/*
 * Counts self time for the step in which the span lies, but not that of the step's own annotation:
 * that is what is left when all others are taken away.
 */
static int count_self(struct table *table, uint32_t index, const struct tl_span *s)
{
	const struct tl_step *step = step_at(table, index);
	bool on_thread = s->thread == step->thread;

	if (s->whole_end_ns > step->end_ns && !is_op(s->description))
		return 0;
	if (on_thread && s->description->id == step->description &&
	    s->whole_start_ns == step->start_ns && s->whole_end_ns == step->end_ns)
		return 0;
	if (on_thread && s->whole_end_ns <= step->end_ns)
		add_capped(&table->covered_ns[index], s->self_ns);
	return step_parts__add(&table->parts, index, table->number_of[s->description->id - 1],
			       s->self_ns);
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct table *table = ctx;
	uint32_t step = step_of_span(table, s);
	struct kprof_row *row;

	if (step == NO_STEP)
		return 0;
	if (is_op(s->description)) {
		row = row_at(table, step);
		row->calls++;
		row->op_ns += nested__end(&table->nested, step, s);
	}
	return s->flags & KPROF_EVENT_CLOSED ? 0 : count_self(table, step, s);
}

/* What a step's thread was in no operator, call or annotation for. */
static int count_rest(struct table *table)
{
	uint32_t number;
	int err = step_parts__what(&table->parts, KPROF_STEP_REST, "", &number);

	for (size_t i = 0; i < table->steps.nr && !err; i++) {
		const struct tl_step *s = step_at(table, i);
		uint64_t ns = s->end_ns - s->start_ns;

		if (ns > table->covered_ns[i])
			err = step_parts__add(&table->parts, (uint32_t)i, number,
					      ns - table->covered_ns[i]);
	}
	return err;
}

/* Whether the operator comes before the other one as the step's first. */
static bool is_more(const struct step_parts *p, const struct map64_slot *slot,
		    const struct map64_slot *than)
{
	if (!than || slot->value != than->value)
		return !than || slot->value > than->value;
	return strcmp(step_parts__at(p, (uint32_t)(slot->tag - 1))->name,
		      step_parts__at(p, (uint32_t)(than->tag - 1))->name) < 0;
}

/* Names each step's operator with the most self time; between equals, the first by name. */
static int name_tops(struct table *table)
{
	size_t nr = table->result->nr;
	const struct map64_slot **top = calloc(nr + 1, sizeof(*top));
	uint64_t *all = calloc(nr + 1, sizeof(*all));
	int err = top && all ? 0 : no_memory();

	for (size_t i = 0; i < table->parts.ns.cap && !err; i++) {
		const struct map64_slot *slot = &table->parts.ns.slots[i];
		uint32_t step = (uint32_t)((slot->tag - 1) >> 32);

		if (!slot->tag || !slot->value ||
		    step_parts__at(&table->parts, (uint32_t)(slot->tag - 1))->what !=
			    KPROF_STEP_OPERATOR)
			continue;
		add_capped(&all[step], slot->value - 1);
		if (is_more(&table->parts, slot, top[step]))
			top[step] = slot;
	}
	for (size_t i = 0; i < nr && !err; i++) {
		struct kprof_row *row = row_at(table, (uint32_t)i);

		if (!top[i])
			continue;
		row->top = result__keep(
			table->result,
			step_parts__at(&table->parts, (uint32_t)(top[i]->tag - 1))->name);
		row->top_share = all[i] ? (double)(top[i]->value - 1) / (double)all[i] : 0;
		err = row->top ? 0 : -ENOMEM;
	}
	free(top);
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

/*
 * A device's work may go on through several steps. Those that it fills are only counted, at the
 * first of them and after the last: add_whole_steps() sums up.
 */
static int count_busy(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns)
{
	struct table *table = ctx;
	size_t first = step_until(table, pid, start_ns), last = step_until(table, pid, end_ns);

	for (size_t i = first; i <= last; i += last > first ? last - first : 1) {
		const struct tl_step *s = i < table->steps.nr ? step_at(table, i) : NULL;
		uint64_t from_ns, to_ns;

		if (!s || s->pid != pid)
			break;
		from_ns = s->start_ns > start_ns ? s->start_ns : start_ns;
		to_ns = s->end_ns < end_ns ? s->end_ns : end_ns;
		if (from_ns < to_ns)
			add_capped(&row_at(table, (uint32_t)i)->device_ns, to_ns - from_ns);
	}
	if (last > first + 1) {
		table->whole_steps[first + 1]++;
		table->whole_steps[last]--;
	}
	return 0;
}

static void add_whole_steps(struct table *table)
{
	int64_t devices = 0;

	for (size_t i = 0; i < table->steps.nr; i++) {
		struct kprof_row *row = row_at(table, (uint32_t)i);
		uint64_t ns;

		devices += table->whole_steps[i];
		if (__builtin_mul_overflow((uint64_t)devices, row->total_ns, &ns))
			ns = UINT64_MAX;
		add_capped(&row->device_ns, ns);
	}
}

/*
 * Calls fn for the steps of a process that a stretch of time has a part in, with that part: at most
 * for so many.
 */
static int each_step(struct table *table, pid_t pid, uint64_t start_ns, uint64_t end_ns,
		     int (*fn)(struct table *table, uint32_t step, uint32_t number, uint64_t ns),
		     uint32_t number)
{
	size_t first = step_until(table, pid, start_ns);
	int err = 0;

	for (size_t i = first; i < table->steps.nr && i - first < MOST_STEPS_OF_ONE && !err; i++) {
		const struct tl_step *s = step_at(table, i);
		uint64_t from_ns = s->start_ns > start_ns ? s->start_ns : start_ns;
		uint64_t to_ns = s->end_ns < end_ns ? s->end_ns : end_ns;

		if (s->pid != pid || from_ns >= to_ns)
			break;
		err = fn(table, (uint32_t)i, number, to_ns - from_ns);
	}
	return err;
}

static int add_part(struct table *table, uint32_t step, uint32_t number, uint64_t ns)
{
	return step_parts__add(&table->parts, step, number, ns);
}

static int count_work(void *ctx, const struct store_record *r)
{
	struct table *table = ctx;
	uint32_t number;
	int err;

	if (r->type != STORE_ACTIVITY || !activity_by_id(r->activity.type)->on_device ||
	    activity_is_wait(r->activity.type))
		return 0;
	err = step_parts__what(&table->parts, KPROF_STEP_DEVICE,
			       timeline__string(table->t, r->activity.name), &number);
	return err ? err
		   : each_step(table, (pid_t)r->activity.pid, r->activity.start_ns,
			       r->activity.end_ns, add_part, number);
}

static int add_wait(struct table *table, uint32_t step, uint32_t number, uint64_t ns)
{
	add_capped(&table->infos[step].wait_ns, ns);
	return step_parts__add(&table->parts, step, number, ns);
}

/* Of the thread that has the steps: others wait for work all the time. */
static int count_wait(void *ctx, const struct store_record *r)
{
	struct table *table = ctx;
	pid_t pid = timeline__thread(table->t, r->wait.thread)->pid;
	size_t first = step_until(table, pid, r->wait.start_ns);
	uint32_t number;
	int err;

	if (first == table->steps.nr || step_at(table, first)->thread != r->wait.thread)
		return 0;
	err = step_parts__what(&table->parts, KPROF_STEP_WAIT, timeline__wait_reason(table->t, r),
			       &number);
	return err ? err
		   : each_step(table, pid, r->wait.start_ns, r->wait.end_ns, add_wait, number);
}

static int count_waits(struct table *table)
{
	int err;

	timeline__cut(table->t, false);
	err = timeline__waits(table->t, 0, count_wait, table);
	timeline__cut(table->t, true);
	for (size_t i = 0; i < table->steps.nr; i++)
		table->infos[i].waits_recorded = kprof_capture_meta(table->t, "waits") != NULL;
	return err;
}

static int fill(struct table *table)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	int err = take_steps(table);

	if (err || !table->steps.nr)
		return err;
	table->infos = calloc(table->steps.nr, sizeof(*table->infos));
	table->covered_ns = calloc(table->steps.nr, sizeof(*table->covered_ns));
	table->whole_steps = calloc(table->steps.nr + 1, sizeof(*table->whole_steps));
	table->result->step_infos = table->infos;
	if (!table->infos || !table->covered_ns || !table->whole_steps)
		return no_memory();
	for (size_t i = 0; i < table->steps.nr; i++)
		row_at(table, (uint32_t)i)->in_step = &table->infos[i];
	err = number_descriptions(table);
	if (!err)
		err = timeline__walk(table->t, &walker, table);
	if (!err)
		err = name_tops(table);
	if (!err)
		err = count_rest(table);
	if (!err)
		err = timeline__samples(table->t, 0, count_sample, table);
	if (!err)
		err = busy__each(table->t, count_busy, table);
	add_whole_steps(table);
	if (!err)
		err = correlate__activities(table->t, count_work, table);
	if (!err)
		err = count_waits(table);
	return err ? err
		   : step_parts__compare(&table->parts, table->result, &table->steps, table->infos);
}

int result__by_step(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {.result = r, .t = t};
	int err;

	r->keep_all = r->in_order = true;
	err = fill(&table);
	bulk__free(&table.steps);
	nested__free(&table.nested);
	step_parts__free(&table.parts);
	free(table.number_of);
	free(table.covered_ns);
	free(table.whole_steps);
	return err;
}
