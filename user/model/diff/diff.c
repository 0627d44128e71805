// SPDX-License-Identifier: BSD-2-Clause
/* Compares two sets of captures: include/kprof/diff.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "util/error.h"

#define SAMPLE_HINT "`kprof sample` and `kprof attach --stacks` take them"
#define MAX_CAPTURES 4096

/* All captures, those of the first side first. */
struct reading {
	const struct kprof_diff_set *sets[DIFF_SIDES];
	const struct kprof_diff_opts *opts;
	struct diff_facts *facts;
	size_t nr;
};

static const char *path_at(const struct reading *r, size_t i, enum diff_side *side)
{
	*side = i < r->sets[DIFF_BEFORE]->nr ? DIFF_BEFORE : DIFF_AFTER;
	return r->sets[*side]->paths[*side == DIFF_AFTER ? i - r->sets[DIFF_BEFORE]->nr : i];
}

/* ---- what is compared ---- */

static int read_facts(struct reading *r)
{
	bool steps = r->opts->per == KPROF_DIFF_PER_AUTO;
	enum diff_side side;
	int err = 0;

	for (size_t i = 0; i < r->nr && !err; i++) {
		const char *path = path_at(r, i, &side);
		struct kprof_capture *t;

		err = kprof_capture_open(path, &t);
		if (err)
			return err;
		err = diff_facts__read(t, path, steps, r->opts->step, &r->facts[i]);
		kprof_capture_close(t);
	}
	return err;
}

/* The first capture that has none; NULL: all have some. */
static const struct diff_facts *without_ops(const struct reading *r)
{
	for (size_t i = 0; i < r->nr; i++)
		if (!r->facts[i].ops)
			return &r->facts[i];
	return NULL;
}

static const struct diff_facts *without_samples(const struct reading *r)
{
	for (size_t i = 0; i < r->nr; i++)
		if (!r->facts[i].samples)
			return &r->facts[i];
	return NULL;
}

static int check_waits(const struct reading *r)
{
	for (size_t i = 0; i < r->nr; i++)
		if (!r->facts[i].waits)
			return error_set(
				-ENODATA,
				"`kprof sample --off-cpu` and `kprof attach --sched` record them",
				"the captures can not be compared: %s has no waits",
				r->facts[i].path);
	return 0;
}

static bool all_have_steps(const struct reading *r)
{
	for (size_t i = 0; i < r->nr; i++)
		if (r->facts[i].steps < DIFF_MIN_STEPS)
			return false;
	return true;
}

static int choose_by(const struct reading *r, struct kprof_diff_info *info)
{
	const struct diff_facts *no_ops = without_ops(r), *no_samples = without_samples(r);

	info->by = r->opts->by;
	if (info->by == KPROF_DIFF_BY_AUTO)
		info->by = !no_ops ? KPROF_DIFF_BY_OP : KPROF_DIFF_BY_FUNCTION;
	if (info->by == KPROF_DIFF_BY_WAIT)
		return check_waits(r);
	if (info->by == KPROF_DIFF_BY_KERNEL)
		return 0;
	info->of_samples = info->by != KPROF_DIFF_BY_OP || no_ops;
	if (!info->of_samples || !no_samples)
		return 0;
	if (info->by == KPROF_DIFF_BY_OP)
		return error_set(-ENODATA, "`kprof attach` records operators of all captures alike",
				 "the captures can not be compared: %s has no operators, and %s no "
				 "samples",
				 no_ops->path, no_samples->path);
	return error_set(-ENODATA, SAMPLE_HINT,
			 "the captures can not be compared: %s has no samples", no_samples->path);
}

static int choose_per(const struct reading *r, struct kprof_diff_info *info)
{
	info->per = r->opts->per;
	/* How much of a CPU a program gets in a second depends on what else the machine does. */
	if (info->per == KPROF_DIFF_PER_AUTO)
		info->per = all_have_steps(r)  ? KPROF_DIFF_PER_STEP
			    : info->of_samples ? KPROF_DIFF_PER_SHARE
					       : KPROF_DIFF_PER_SECOND;
	if (info->per == KPROF_DIFF_PER_CALL && info->of_samples)
		return error_set_usage(-EINVAL, "per step, second or run",
				       "samples do not tell how often a function was called");
	return 0;
}

static int check_opts(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		      const struct kprof_diff_opts *opts)
{
	if (!before->nr || !after->nr)
		return error_set_usage(-EINVAL, NULL, "a comparison takes captures of two sides");
	if (before->nr > MAX_CAPTURES || after->nr > MAX_CAPTURES)
		return error_set_usage(-EINVAL, NULL, "more than %d captures on one side",
				       MAX_CAPTURES);
	if (opts->by > KPROF_DIFF_BY_WAIT)
		return error_set_usage(-EINVAL, NULL, "no such rows (%u)", opts->by);
	if (opts->per > KPROF_DIFF_PER_CALL)
		return error_set_usage(-EINVAL, NULL, "no such unit (%u)", opts->per);
	if (opts->frames > KPROF_FRAMES_PYTHON)
		return error_set_usage(-EINVAL, NULL, "no such frames (%u)", opts->frames);
	return 0;
}

/* ---- reading ---- */

static int read_capture(struct kprof_diff *d, struct kprof_capture *t,
			const struct kprof_diff_opts *opts, enum diff_side side)
{
	struct diff_table *table = &d->table;
	int err;

	kprof_capture_show_interpreter(t, opts->interpreter || opts->frames == KPROF_FRAMES_NATIVE);
	err = diff_blocks__make(t, table->info.per, opts->step, &table->blocks);
	if (!err)
		err = diff_table__begin(table, side);
	if (err)
		return err;
	if (table->info.by == KPROF_DIFF_BY_KERNEL)
		err = diff_read_device(table, t);
	else if (table->info.by == KPROF_DIFF_BY_WAIT)
		err = diff_read_waits(table, t);
	else if (table->info.of_samples)
		err = diff_read_samples(table, t, opts->frames);
	else
		err = diff_read_spans(table, t);
	if (!err)
		diff_table__end(table);
	return err;
}

static int read_all(struct kprof_diff *d, const struct reading *r)
{
	enum diff_side side;
	int err = 0;

	for (size_t i = 0; i < r->nr && !err; i++) {
		struct kprof_capture *t;

		err = kprof_capture_open(path_at(r, i, &side), &t);
		if (err)
			return err;
		err = read_capture(d, t, r->opts, side);
		if (!err && !kprof_capture_info(t)->complete)
			err = diff_notes__add(&d->notes, "%s was cut short", timeline__path(t));
		kprof_capture_close(t);
	}
	return err;
}

/* A side in which nothing was counted cannot be compared. */
static int check_counted(const struct kprof_diff *d, const struct reading *r)
{
	const struct diff_entry *whole = diff_table__entry(&d->table, DIFF_ROW_WHOLE);
	const char *what = d->table.info.by == KPROF_DIFF_BY_KERNEL ? "activities of devices"
			   : d->table.info.by == KPROF_DIFF_BY_WAIT ? "waits"
			   : d->table.info.of_samples               ? "samples"
								    : "operators";

	for (int side = 0; side < DIFF_SIDES; side++)
		if (whole->side[side].calls <= 0)
			return error_set(
				-ENODATA, NULL, "the captures can not be compared: %s has no %s%s",
				r->sets[side]->paths[0], what,
				d->table.info.per == KPROF_DIFF_PER_STEP ? " within steps" : "");
	return 0;
}

static int compare(struct kprof_diff *d, struct reading *r)
{
	struct kprof_diff_info *info = &d->table.info;
	int err = read_facts(r);

	if (!err)
		err = choose_by(r, info);
	if (!err)
		err = choose_per(r, info);
	if (!err)
		err = diff_facts__compare(r->facts, info->nr_before, r->nr, &d->notes);
	if (!err)
		err = diff_table__init(&d->table);
	if (!err)
		err = read_all(d, r);
	if (!err)
		err = check_counted(d, r);
	return err ? err : diff_test(d, r->opts);
}

int kprof_diff_new(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		   const struct kprof_diff_opts *user, struct kprof_diff **out)
{
	struct kprof_diff_opts opts = {0};
	struct reading r = {.sets = {before, after}, .opts = &opts};
	struct kprof_diff *d;
	int err;

	error_clear();
	*out = NULL;
	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	err = check_opts(before, after, &opts);
	if (err)
		return err;
	r.nr = before->nr + after->nr;
	r.facts = calloc(r.nr, sizeof(*r.facts));
	d = calloc(1, sizeof(*d));
	if (d)
		d->table.info = (struct kprof_diff_info){
			.total = opts.total, .nr_before = before->nr, .nr_after = after->nr};
	err = d && r.facts ? compare(d, &r) : error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; r.facts && i < r.nr; i++)
		diff_facts__free(&r.facts[i]);
	free(r.facts);
	if (err) {
		kprof_diff_free(d);
		return err;
	}
	*out = d;
	return 0;
}

/* ---- what came out ---- */

const struct kprof_diff_info *kprof_diff_info(const struct kprof_diff *d)
{
	return &d->table.info;
}

size_t kprof_diff_nr_rows(const struct kprof_diff *d)
{
	return d->nr_rows;
}

const struct kprof_diff_row *kprof_diff_row(const struct kprof_diff *d, size_t i)
{
	return i < d->nr_rows ? &d->rows[i] : NULL;
}

const char *kprof_diff_note(const struct kprof_diff *d, size_t i)
{
	return i < d->notes.texts.nr ? ((char **)d->notes.texts.data)[i] : NULL;
}

static bool is_above(const struct kprof_diff_change *c, double share)
{
	return c->verdict == KPROF_DIFF_MORE && c->change > share * c->before;
}

bool kprof_diff_above(const struct kprof_diff *d, double share)
{
	bool above = is_above(&d->table.info.whole, share) || is_above(&d->table.info.step, share);

	for (size_t i = 0; i < d->nr_rows && !above; i++)
		above = is_above(&d->rows[i].time, share);
	return above;
}

void kprof_diff_free(struct kprof_diff *d)
{
	if (!d)
		return;
	diff_table__free(&d->table);
	diff_notes__free(&d->notes);
	free(d->rows);
	free(d);
}
