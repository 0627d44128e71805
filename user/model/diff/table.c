// SPDX-License-Identifier: BSD-2-Clause
/* Rows by name, and what is counted into them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "util/error.h"

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a comparison");
}

struct diff_entry *diff_table__entry(const struct diff_table *t, uint32_t row)
{
	return (struct diff_entry *)t->entries.data + row;
}

/* ---- rows ---- */

static int add_entry(struct diff_table *t, const struct diff_key *key)
{
	struct diff_entry *e = vec_push(&t->entries, sizeof(*e));

	if (!e)
		return no_memory();
	e->category = strdup(key->category);
	e->name = strdup(key->name);
	e->where = strdup(key->where);
	return e->category && e->name && e->where ? 0 : no_memory();
}

int diff_table__init(struct diff_table *t)
{
	static const char *const names[DIFF_OWN_ROWS] = {"[all]", "[step]", "[others]"};
	int err = 0;

	for (size_t i = 0; i < DIFF_OWN_ROWS && !err; i++)
		err = add_entry(t, &(struct diff_key){"", names[i], ""});
	return err;
}

void diff_table__free(struct diff_table *t)
{
	for (uint32_t i = 0; i < t->entries.nr; i++) {
		free(diff_table__entry(t, i)->category);
		free(diff_table__entry(t, i)->name);
		free(diff_table__entry(t, i)->where);
	}
	free(t->entries.data);
	map64__free(&t->by_hash);
	free(t->time);
	free(t->calls);
}

/* Gives each row blocks of 0, as far as it has none. */
static int make_room(struct diff_table *t)
{
	size_t cap = t->room ? t->room : 256;
	bool calls = t->info.per == KPROF_DIFF_PER_CALL;
	double *more;

	while (cap < t->entries.nr)
		cap *= 2;
	if (cap == t->room)
		return 0;
	for (int i = 0; i < 1 + calls; i++) {
		double **of = i ? &t->calls : &t->time;

		more = reallocarray(*of, cap * DIFF_MAX_BLOCKS, sizeof(*more));
		if (!more)
			return no_memory();
		memset(more + t->room * DIFF_MAX_BLOCKS, 0,
		       (cap - t->room) * DIFF_MAX_BLOCKS * sizeof(*more));
		*of = more;
	}
	t->room = cap;
	return 0;
}

static bool is_row(const struct diff_table *t, uint32_t row, const struct diff_key *key)
{
	const struct diff_entry *e = diff_table__entry(t, row);

	return !strcmp(e->category, key->category) && !strcmp(e->name, key->name) &&
	       !strcmp(path_base(e->where), path_base(key->where));
}

int diff_table__row(struct diff_table *t, const struct diff_key *key, uint32_t *row)
{
	uint64_t hash = hash64_text(hash64_text(hash64_text(0, key->category), key->name),
				    path_base(key->where));
	uint64_t *slot;
	int err;

	for (hash >>= 1;; hash++) {
		slot = map64__at(&t->by_hash, hash);
		if (!slot)
			return no_memory();
		if (!*slot)
			break;
		if (is_row(t, (uint32_t)*slot - 1, key)) {
			*row = (uint32_t)*slot - 1;
			return 0;
		}
	}
	*row = DIFF_ROW_OTHERS;
	if (t->entries.nr == DIFF_MAX_ROWS)
		return 0;
	err = add_entry(t, key);
	if (err)
		return err;
	*row = (uint32_t)t->entries.nr - 1;
	*slot = t->entries.nr;
	return make_room(t);
}

/* ---- counting ---- */

int diff_table__begin(struct diff_table *t, enum diff_side side)
{
	t->side = side;
	t->whole_var = 0;
	if (t->time)
		memset(t->time, 0, t->room * DIFF_MAX_BLOCKS * sizeof(*t->time));
	if (t->calls)
		memset(t->calls, 0, t->room * DIFF_MAX_BLOCKS * sizeof(*t->calls));
	return make_room(t);
}

void diff_table__add(struct diff_table *t, uint32_t row, uint32_t block, double self, double total,
		     double calls)
{
	struct diff_count *c = &diff_table__entry(t, row)->side[t->side];
	size_t at = (size_t)row * DIFF_MAX_BLOCKS + block;

	c->self += self;
	c->total += total;
	c->calls += calls;
	t->time[at] += t->info.total ? total : self;
	if (t->calls)
		t->calls[at] += calls;
}

/* What the times of a row are divided by, by block. */
static const double *units_of(const struct diff_table *t, uint32_t row, const double *units)
{
	return t->info.per == KPROF_DIFF_PER_CALL ? t->calls + (size_t)row * DIFF_MAX_BLOCKS
						  : units;
}

/*
 * From a share of all time to the time in a run. How much time a program gets in each block depends
 * on what else the machine does; the work of a run does not. So the blocks tell the shares, and the
 * sum is known as well as sampling lets it.
 */
static struct stats_mean of_run(const struct diff_table *t, struct stats_mean m, double seconds)
{
	double share = m.mean / NSEC_PER_SEC;

	m.var = m.var * seconds * seconds + share * share * t->whole_var;
	m.mean *= seconds;
	return m;
}

static void end_row(struct diff_table *t, uint32_t row, const double *units, double seconds)
{
	struct diff_count *c = &diff_table__entry(t, row)->side[t->side];
	const double *time = t->time + (size_t)row * DIFF_MAX_BLOCKS;
	bool some = false;

	units = units_of(t, row, units);
	for (uint32_t i = 0; i < t->blocks.nr && !some; i++)
		some = units[i] > 0;
	if (!some)
		return; /* without calls, this capture says nothing of how long they take */
	for (unsigned int level = 0; level < STATS_LEVELS; level++) {
		c->blocks[level] = stats_of_blocks(time, units, t->blocks.nr, level);
		if (t->info.per == KPROF_DIFF_PER_RUN)
			c->blocks[level] = of_run(t, c->blocks[level], seconds);
	}
	c->sum += c->blocks[0].mean;
	c->squares += c->blocks[0].mean * c->blocks[0].mean;
	c->nr++;
}

void diff_table__end(struct diff_table *t)
{
	const double *whole = t->time + (size_t)DIFF_ROW_WHOLE * DIFF_MAX_BLOCKS;
	bool shares = t->info.per == KPROF_DIFF_PER_SHARE;
	double units[DIFF_MAX_BLOCKS], seconds = 0;

	for (uint32_t i = 0; i < t->blocks.nr; i++) {
		uint64_t ns = t->blocks.edge_ns[i + 1] - t->blocks.edge_ns[i];

		t->seconds[t->side] += (double)ns / NSEC_PER_SEC;
		seconds += whole[i] / NSEC_PER_SEC;
		units[i] = shares || t->info.per == KPROF_DIFF_PER_RUN ? whole[i] / NSEC_PER_SEC
								       : t->blocks.units;
		diff_table__add(t, DIFF_ROW_STEP, i, (double)ns, (double)ns, 0);
	}
	t->units[t->side] += shares ? seconds : t->blocks.units * t->blocks.nr;
	for (uint32_t row = 0; row < t->entries.nr; row++)
		end_row(t, row, units, seconds);
}
