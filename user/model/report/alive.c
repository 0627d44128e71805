// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table of memory: what was in use when a process had most of it, what each operator allocated, and
 * what outlived the steps in which it was allocated.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/impl.h"
#include "model/report/memory.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/order.h"
#include "util/util.h"

/* What is still in use so many steps after that of its allocation is counted as kept. */
#define STEPS_TO_LIVE 2
#define NO_STEP SIZE_MAX
#define OUTSIDE "(in no operator)"

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct memory_walk walk;
	struct groups groups;
	struct bulk steps;     /* struct tl_step: by process and time */
	struct map64 rows;     /* of the heap: number of the row + 1, by group + 1 */
	struct map64 in_use;   /* of the heap: number of the allocation + 1, by address */
	struct map64 row_step; /* the latest step that counts as one with kept memory + 1, by row */
};

static struct allocation *at(const struct table *table, size_t i)
{
	return bulk__at(&table->walk.list, i);
}

static pid_t pid_of(const struct table *table, const struct allocation *a)
{
	return timeline__thread(table->t, a->thread)->pid;
}

/* ---- reading ---- */

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	return memory_walk__begin(&((struct table *)ctx)->walk, s);
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct memory_sum self, all;

	memory_walk__end(&((struct table *)ctx)->walk, s, &self, &all);
	return 0;
}

/* Are they of one heap: of one device's memory in one process? */
static bool same_heap(const struct table *table, const struct allocation *a,
		      const struct allocation *b)
{
	return pid_of(table, a) == pid_of(table, b) && a->device == b->device;
}

static int by_heap_and_time(const void *pa, const void *pb, void *ctx)
{
	const struct allocation *a = pa, *b = pb;
	pid_t pid_a = pid_of(ctx, a), pid_b = pid_of(ctx, b);

	if (pid_a != pid_b)
		return order_u64((uint32_t)pid_a, (uint32_t)pid_b);
	return a->device != b->device ? order_u64(a->device, b->device)
				      : order_u64(a->time_ns, b->time_ns);
}

static int read_all(struct table *table)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	int err = memory_walk__read(table->t, &table->walk);

	if (!err)
		err = groups__make(table->t, GROUPS_BY_NAME_AND_CATEGORY, &table->groups);
	if (!err && table->walk.list.nr)
		err = timeline__walk(table->t, &walker, table);
	if (err)
		return err;
	memory_walk__rest(&table->walk);
	if (bulk__sort(&table->walk.list, 0, table->walk.list.nr, by_heap_and_time, table))
		return error_set(-ENOMEM, NULL, "out of memory for allocations");
	return timeline__steps(table->t, &table->steps);
}

/* ---- steps ---- */

static const struct tl_step *step_at(const struct table *table, size_t i)
{
	return i < table->steps.nr ? bulk__at(&table->steps, i) : NULL;
}

/* The number of the step of the process that goes on at that time. */
static size_t step_of(const struct table *table, pid_t pid, uint64_t ns)
{
	size_t low = 0, high = table->steps.nr;
	const struct tl_step *s;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		s = step_at(table, mid);
		if (s->pid < pid || (s->pid == pid && s->end_ns <= ns))
			low = mid + 1;
		else
			high = mid;
	}
	s = step_at(table, low);
	return s && s->pid == pid && s->start_ns <= ns ? low : NO_STEP;
}

/* Was it allocated in a step, and still in use at the end of a later one? */
static size_t kept_in_step(const struct table *table, const struct allocation *a)
{
	pid_t pid = pid_of(table, a);
	size_t step = step_of(table, pid, a->time_ns);
	const struct tl_step *later = step == NO_STEP ? NULL : step_at(table, step + STEPS_TO_LIVE);

	if (!later || later->pid != pid ||
	    later->end_ns > kprof_capture_info(table->t)->end_mono_ns)
		return NO_STEP;
	return a->ended && at(table, a->ended - 1)->time_ns <= later->end_ns ? NO_STEP : step;
}

/* ---- rows ---- */

static int row_of(struct table *table, const struct allocation *a, size_t *out)
{
	uint32_t group = a->inside ? table->groups.of_what[a->inside - 1] + 1 : 0;
	uint64_t *number = map64__at(&table->rows, group);
	struct kprof_row *row;

	if (!number)
		return error_set(-ENOMEM, NULL, "out of memory for a table of memory");
	if (!*number) {
		const char *name = group ? table->groups.groups[group - 1].name : OUTSIDE;
		const char *category = group ? table->groups.groups[group - 1].category : "";
		char device[TL_MEMORY_DEVICE_BYTES];
		const char *kept =
			result__keep(table->result, timeline__memory_device(device, a->device));

		category = result__keep(table->result, category);
		row = category && kept ? result__row(table->result, strdup(name)) : NULL;
		if (!row)
			return -ENOMEM;
		row->category = category;
		row->memory_device = kept;
		row->pid = pid_of(table, a);
		*number = table->result->nr;
	}
	*out = *number - 1;
	return 0;
}

static int count(struct table *table, const struct allocation *a, size_t number, size_t peak)
{
	size_t row_number = 0, step = kept_in_step(table, a);
	struct kprof_row *row;
	int err = row_of(table, a, &row_number);

	if (err)
		return err;
	row = &table->result->entries[row_number].row;
	row->calls++;
	memory_add(&row->memory_bytes, a->bytes);
	if (number <= peak && (!a->ended || a->ended - 1 > peak)) {
		memory_add(&row->peak_bytes, a->bytes);
		row->peak_blocks++;
	}
	if (step != NO_STEP) {
		uint64_t *latest = map64__at(&table->row_step, row_number);

		if (!latest)
			return error_set(-ENOMEM, NULL, "out of memory for a table of memory");
		memory_add(&row->kept_bytes, a->bytes);
		row->kept_blocks++;
		row->kept_steps += *latest != step + 1;
		*latest = step + 1;
	}
	return 0;
}

/* ---- a heap ---- */

static uint64_t *slot_of(struct table *table, uint64_t addr)
{
	return map64__at(&table->in_use, addr);
}

/* The process's allocator has nothing but this: it runs another program. */
static void forget_all(struct table *table, size_t number)
{
	for (size_t i = 0; i < table->in_use.cap; i++) {
		struct map64_slot *slot = &table->in_use.slots[i];

		if (slot->value)
			at(table, slot->value - 1)->ended = number + 1;
		slot->value = 0;
	}
}

/* All that is in use after an allocation or a free. Allocators of the CPU say no sum. */
static __int128 in_use_after(const struct allocation *a, __int128 live)
{
	return a->device == TL_MEMORY_CPU ? live : a->allocated;
}

/* Finds out when what was allocated is freed, and when most is in use. */
static int replay(struct table *table, size_t from, size_t to, size_t *peak,
		  struct kprof_memory_peak *p)
{
	__int128 live = 0, all = 0, most = -1, live_at_peak = 0;

	map64__free(&table->in_use);
	for (size_t i = from; i < to; i++) {
		struct allocation *a = at(table, i);
		uint64_t *slot;

		if (a->bytes > 0 && a->bytes == a->allocated && live) {
			forget_all(table, i);
			map64__free(&table->in_use); /* so that no slot is looked at again */
			live = 0;
		}
		slot = slot_of(table, a->addr);
		if (!slot)
			return error_set(-ENOMEM, NULL, "out of memory for allocations");
		if (*slot) {
			live -= at(table, *slot - 1)->bytes;
			at(table, *slot - 1)->ended = i + 1;
		}
		*slot = a->bytes > 0 ? i + 1 : 0;
		live += a->bytes > 0 ? a->bytes : 0;
		all = in_use_after(a, live);
		if (a->reserved > (int64_t)p->reserved_bytes)
			p->reserved_bytes = (uint64_t)a->reserved;
		if (all > most) {
			most = all;
			live_at_peak = live;
			*peak = i;
		}
	}
	p->bytes = most > INT64_MAX ? INT64_MAX : (uint64_t)most;
	p->end_bytes = all > INT64_MAX ? INT64_MAX : (uint64_t)all;
	p->earlier_bytes = most > live_at_peak ? (uint64_t)(most - live_at_peak) : 0;
	return 0;
}

static int add_heap(struct table *table, size_t from, size_t to)
{
	const struct allocation *first = at(table, from);
	struct kprof_result *r = table->result;
	char device[TL_MEMORY_DEVICE_BYTES];
	struct kprof_memory_peak *p;
	size_t peak = from;
	int err;

	if (vec_grow((void **)&r->peaks, &r->cap_peaks, r->nr_peaks, sizeof(*r->peaks)))
		return error_set(-ENOMEM, NULL, "out of memory for a table of memory");
	p = &r->peaks[r->nr_peaks++];
	*p = (struct kprof_memory_peak){
		.pid = pid_of(table, first),
		.device = result__keep(r, timeline__memory_device(device, first->device)),
	};
	err = p->device ? replay(table, from, to, &peak, p) : -ENOMEM;
	if (err)
		return err;
	p->at_ns = at(table, peak)->time_ns - timeline__recorded_from(table->t);
	map64__free(&table->rows);
	for (size_t i = from; i < to && !err; i++)
		if (at(table, i)->bytes > 0)
			err = count(table, at(table, i), i, peak);
	return err;
}

static int by_peak(const void *pa, const void *pb)
{
	const struct kprof_row *a = &((const struct entry *)pa)->row;
	const struct kprof_row *b = &((const struct entry *)pb)->row;

	if (a->peak_bytes != b->peak_bytes)
		return a->peak_bytes < b->peak_bytes ? 1 : -1;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	return strcmp(a->name, b->name);
}

int result__by_memory(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {.result = r, .t = t};
	int err = read_all(&table);
	size_t from = 0;

	for (size_t i = 1; !err && i <= table.walk.list.nr; i++) {
		if (i < table.walk.list.nr && same_heap(&table, at(&table, i), at(&table, from)))
			continue;
		err = add_heap(&table, from, i);
		from = i;
	}
	r->in_order = true;
	if (r->nr)
		qsort(r->entries, r->nr, sizeof(*r->entries), by_peak);
	memory_walk__free(&table.walk);
	groups__free(&table.groups);
	bulk__free(&table.steps);
	map64__free(&table.rows);
	map64__free(&table.in_use);
	map64__free(&table.row_step);
	return err;
}

int kprof_result_memory(const struct kprof_result *r, size_t i, struct kprof_memory_peak *out)
{
	if (i >= r->nr_peaks)
		return -ENOENT;
	*out = r->peaks[i];
	return 0;
}
