// SPDX-License-Identifier: BSD-2-Clause
/*
 * Table by collective: the work of all processes of a group is brought together, to find out who
 * came last and how long the others waited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/collective_parts.h"
#include "model/report/impl.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/order.h"
#include "util/util.h"

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct bulk parts;  /* struct collective_part */
	struct map64 ranks; /* by group and rank: index in result->collective_ranks + 1 */
	/* In order of the rows: their groups; of the row that is filled now, how often each rank
	 * came last; bytes and time of those of which both are known. */
	uint64_t *lasts;
	size_t cap_lasts;
	uint64_t timed_bytes, timed_ns;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of collectives");
}

/* Rows first (group, size, name), then the collectives in them, then their ranks. */
static int compare_rows(const struct collective_part *a, const struct collective_part *b)
{
	int order = order_u64(a->group, b->group);

	order = order ? order : order_u64(a->size, b->size);
	return order ? order : order_u64(a->name, b->name);
}

static int compare_collectives(const struct collective_part *a, const struct collective_part *b)
{
	int order = compare_rows(a, b);

	return order ? order : order_u64(a->number, b->number);
}

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct collective_part *a = pa, *b = pb;
	int order = compare_collectives(a, b);

	return order ? order : order_u64(a->rank, b->rank);
}

static struct collective_part *part_at(const struct table *table, size_t i)
{
	return bulk__at(&table->parts, i);
}

/* ---- one collective ---- */

/*
 * Is it the work of each rank once, whose begins were all seen? Groups of two programs may have the
 * same name and numbers: then one's work is over before the other's begins.
 */
static bool is_whole(const struct table *table, size_t from, size_t to)
{
	const struct collective_part *first = part_at(table, from);
	bool of_all = collective_part__of_all(table->t, first);
	uint64_t last_ns = 0, end_ns = UINT64_MAX;

	if (to - from != first->size)
		return false;
	for (size_t i = from; i < to; i++) {
		const struct collective_part *p = part_at(table, i);

		if (p->rank != i - from || p->flags & COLLECTIVE_BEGIN_UNKNOWN)
			return false;
		if (p->begin_ns > last_ns)
			last_ns = p->begin_ns;
		if (p->end_ns < end_ns)
			end_ns = p->end_ns;
	}
	add_capped(&end_ns, table->result->clock_error_ns);
	return !of_all || end_ns >= last_ns;
}

static uint64_t waited(const struct collective_part *p, uint64_t last_ns)
{
	uint64_t until = last_ns;

	/* an end that is not known was not before the one that is taken for it */
	if (p->end_ns < until)
		until = p->end_ns;
	return until > p->begin_ns ? until - p->begin_ns : 0;
}

static struct kprof_collective_rank *rank_of(struct table *table, const struct collective_part *p)
{
	struct kprof_result *r = table->result;
	uint64_t *at = map64__at(&table->ranks, (uint64_t)p->group << 32 | p->rank);

	if (!at)
		return NULL;
	if (*at)
		return &r->collective_ranks[*at - 1];
	if (vec_grow((void **)&r->collective_ranks, &r->cap_collective_ranks,
		     r->nr_collective_ranks, sizeof(*r->collective_ranks)))
		return NULL;
	*at = r->nr_collective_ranks + 1;
	r->collective_ranks[r->nr_collective_ranks] = (struct kprof_collective_rank){
		.group = timeline__string(table->t, p->group), .rank = p->rank, .pid = p->pid};
	return &r->collective_ranks[r->nr_collective_ranks++];
}

static int by_wait(const void *pa, const void *pb)
{
	const struct kprof_collective *a = pa, *b = pb;
	int order = order_u64(b->longest_ns, a->longest_ns);

	return order ? order : order_u64(a->at_ns, b->at_ns);
}

/* Of very many, those with the longest waits stay. */
static int keep(struct kprof_result *r, const struct kprof_collective *c)
{
	if (r->nr_collectives == 2 * KPROF_COLLECTIVES_MOST) {
		qsort(r->collectives, r->nr_collectives, sizeof(*c), by_wait);
		r->nr_collectives = KPROF_COLLECTIVES_MOST;
	}
	if (vec_grow((void **)&r->collectives, &r->cap_collectives, r->nr_collectives, sizeof(*c)))
		return no_memory();
	r->collectives[r->nr_collectives++] = *c;
	return 0;
}

/* Who came last, and until when it lasted. */
static struct kprof_collective meet(const struct table *table, size_t from, size_t to)
{
	const struct collective_part *first = part_at(table, from), *last = first;
	uint64_t end_ns = 0;
	bool ends = true;
	struct kprof_collective c = {.name = timeline__string(table->t, first->name),
				     .group = timeline__string(table->t, first->group),
				     .number = first->number,
				     .ranks = first->size,
				     .bytes = first->bytes};

	for (size_t i = from; i < to; i++) {
		const struct collective_part *p = part_at(table, i);

		if (p->begin_ns > last->begin_ns)
			last = p;
		if (p->end_ns > end_ns)
			end_ns = p->end_ns;
		ends &= !(p->flags & (COLLECTIVE_END_LATE | COLLECTIVE_OPEN));
		if (p->bytes != c.bytes)
			c.bytes = COLLECTIVE_BYTES_UNKNOWN;
	}
	c.last_rank = last->rank;
	c.last_pid = last->pid;
	c.at_ns = last->begin_ns; /* made relative below */
	c.took_ns = ends ? end_ns - last->begin_ns : 0;
	return c;
}

static void count(struct table *table, struct kprof_row *row, struct kprof_collective_info *info,
		  const struct kprof_collective *c)
{
	struct entry *e = (struct entry *)row;

	row->calls++;
	add_capped(&info->waited_ns, c->waited_ns);
	if (c->longest_ns > info->longest_ns)
		info->longest_ns = c->longest_ns;
	if (++table->lasts[c->last_rank] > info->last_times) {
		info->last_times = table->lasts[c->last_rank];
		info->last_rank = c->last_rank;
	}
	if (c->bytes != COLLECTIVE_BYTES_UNKNOWN) {
		add_capped(&row->bytes, c->bytes);
		info->sized++;
	}
	if (!c->took_ns) {
		row->inexact++;
		return;
	}
	row->timed++;
	add_capped(&row->total_ns, c->took_ns);
	if (!e->whole++ || c->took_ns < row->min_ns)
		row->min_ns = c->took_ns;
	if (c->took_ns > row->max_ns)
		row->max_ns = c->took_ns;
	if (c->bytes == COLLECTIVE_BYTES_UNKNOWN)
		return;
	add_capped(&table->timed_bytes, c->bytes);
	add_capped(&table->timed_ns, c->took_ns);
}

static int add_collective(struct table *table, size_t from, size_t to, struct kprof_row *row,
			  struct kprof_collective_info *info)
{
	struct kprof_collective c = meet(table, from, to);

	for (size_t i = from; i < to; i++) {
		const struct collective_part *p = part_at(table, i);
		uint64_t ns = waited(p, c.at_ns);
		struct kprof_collective_rank *rank = rank_of(table, p);

		if (!rank)
			return no_memory();
		rank->calls++;
		add_capped(&rank->waited_ns, ns);
		add_capped(&c.waited_ns, ns);
		if (ns > c.longest_ns)
			c.longest_ns = ns;
	}
	for (size_t i = from; i < to; i++) {
		struct kprof_collective_rank *rank = rank_of(table, part_at(table, i));

		if (rank && rank->rank == c.last_rank) {
			rank->last++;
			add_capped(&rank->awaited_ns, c.waited_ns);
		}
	}
	c.at_ns -= timeline__recorded_from(table->t);
	count(table, row, info, &c);
	return keep(table->result, &c);
}

/* ---- rows ---- */

static int new_row(struct table *table, const struct collective_part *p, struct kprof_row **row,
		   struct kprof_collective_info **info)
{
	*info = calloc(1, sizeof(**info));
	*row = *info ? result__row(table->result, strdup(timeline__string(table->t, p->name)))
		     : NULL;
	if (!*row) {
		free(*info);
		*info = NULL;
		return no_memory();
	}
	(*info)->ranks = p->size;
	(*row)->collective = *info; /* freed with the result */
	(*row)->category = timeline__string(table->t, p->group);
	if (p->size > table->cap_lasts) {
		free(table->lasts);
		table->lasts = calloc(p->size, sizeof(*table->lasts));
		table->cap_lasts = table->lasts ? p->size : 0;
	} else {
		memset(table->lasts, 0, p->size * sizeof(*table->lasts));
	}
	table->timed_bytes = table->timed_ns = 0;
	return table->lasts ? 0 : no_memory();
}

/* The parts from .. to are those of one row. */
static int add_row(struct table *table, size_t from, size_t to)
{
	struct kprof_collective_info *info = NULL;
	struct kprof_row *row = NULL;
	int err = 0;

	for (size_t i = from, next; i < to && !err; i = next) {
		for (next = i + 1; next < to; next++)
			if (compare_collectives(part_at(table, i), part_at(table, next)))
				break;
		if (!is_whole(table, i, next)) {
			table->result->unmatched += next - i;
			continue;
		}
		if (!row)
			err = new_row(table, part_at(table, i), &row, &info);
		if (!err)
			err = add_collective(table, i, next, row, info);
	}
	if (info && table->timed_ns)
		info->gb_per_s = (double)table->timed_bytes / (double)table->timed_ns;
	return err;
}

static int by_waited(const void *pa, const void *pb)
{
	const struct kprof_row *a = &((const struct entry *)pa)->row;
	const struct kprof_row *b = &((const struct entry *)pb)->row;
	int order = order_u64(b->collective->waited_ns, a->collective->waited_ns);

	return order ? order
		     : order_u64(((const struct entry *)pa)->order,
				 ((const struct entry *)pb)->order);
}

static int by_group_and_rank(const void *pa, const void *pb)
{
	const struct kprof_collective_rank *a = pa, *b = pb;
	int order = strcmp(a->group, b->group);

	return order ? order : order_u64(a->rank, b->rank);
}

static void put_in_order(struct kprof_result *r)
{
	r->in_order = true;
	for (size_t i = 0; i < r->nr; i++)
		r->entries[i].order = i;
	if (r->nr)
		qsort(r->entries, r->nr, sizeof(*r->entries), by_waited);
	if (r->nr_collectives)
		qsort(r->collectives, r->nr_collectives, sizeof(*r->collectives), by_wait);
	if (r->nr_collectives > KPROF_COLLECTIVES_MOST)
		r->nr_collectives = KPROF_COLLECTIVES_MOST;
	if (r->nr_collective_ranks)
		qsort(r->collective_ranks, r->nr_collective_ranks, sizeof(*r->collective_ranks),
		      by_group_and_rank);
}

int result__by_collective(struct kprof_result *r, struct kprof_capture *t)
{
	struct table table = {
		.result = r, .t = t, .parts = {.size = sizeof(struct collective_part)}};
	int err;

	r->clock_error_ns = timeline__clock_error_ns(t);
	err = collective_parts__read(t, &table.parts, &r->unmatched);

	if (!err && bulk__sort(&table.parts, 0, table.parts.nr, compare, NULL))
		err = no_memory();
	for (size_t i = 0, next; i < table.parts.nr && !err; i = next) {
		for (next = i + 1; next < table.parts.nr; next++)
			if (compare_rows(part_at(&table, i), part_at(&table, next)))
				break;
		err = add_row(&table, i, next);
	}
	if (!err)
		put_in_order(r);
	bulk__free(&table.parts);
	map64__free(&table.ranks);
	free(table.lasts);
	return err;
}

/* ---- results ---- */

void result__free_collectives(struct kprof_result *r)
{
	for (size_t i = 0; i < r->nr; i++)
		free((struct kprof_collective_info *)r->entries[i].row.collective);
	free(r->collective_ranks);
	free(r->collectives);
}

int kprof_result_collective_rank(const struct kprof_result *r, size_t i,
				 struct kprof_collective_rank *out)
{
	if (i >= r->nr_collective_ranks)
		return -ENOENT;
	*out = r->collective_ranks[i];
	return 0;
}

int kprof_result_collective(const struct kprof_result *r, size_t i, struct kprof_collective *out)
{
	if (i >= r->nr_collectives)
		return -ENOENT;
	*out = r->collectives[i];
	return 0;
}

uint64_t kprof_result_clock_error_ns(const struct kprof_result *r)
{
	return r->clock_error_ns;
}

uint64_t kprof_result_unmatched(const struct kprof_result *r)
{
	return r->unmatched;
}
