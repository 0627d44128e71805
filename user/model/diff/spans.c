// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a capture's operators, or what its devices did, into rows. A span belongs to the block in
 * which it ends; its times are those of a report (model/report/nested.h), so that the rows of both
 * add up to the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/activity.h"
#include "model/correlate/correlate.h"
#include "model/diff/impl.h"
#include "model/report/nested.h"
#include "store/store.h"
#include "symbol/names/names.h"
#include "util/error.h"

struct reading {
	struct diff_table *table;
	struct kprof_capture *t;
	struct nested nested;
	struct map64 rows; /* row + 1, by description or by type and name */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a comparison");
}

/* ---- operators ---- */

/* Steps are one row, though each has a name of its own. */
static const char *name_of(const struct tl_description *d)
{
	return strncmp(d->name, DIFF_STEP_NAME, strlen(DIFF_STEP_NAME)) ? d->name
									: DIFF_STEP_NAME "N";
}

static int row_of_span(struct reading *r, const struct tl_span *s, uint32_t *row)
{
	const struct tl_description *d = s->description;
	uint64_t *slot = map64__at(&r->rows, d->id);
	int err;

	if (!slot)
		return no_memory();
	*row = (uint32_t)*slot - 1;
	if (*slot)
		return 0;
	err = diff_table__row(r->table, &(struct diff_key){d->category, name_of(d), ""}, row);
	if (!err)
		*slot = (uint64_t)*row + 1;
	return err;
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct reading *r = ctx;
	uint32_t row = 0;
	int err = row_of_span(r, s, &row);

	return err ? err : nested__begin(&r->nested, row, s);
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct reading *r = ctx;
	uint32_t row = 0, block = diff_blocks__of(&r->table->blocks, s->end_ns);
	int err = row_of_span(r, s, &row);
	uint64_t total_ns = err ? 0 : nested__end(&r->nested, row, s);
	double self = s->flags & KPROF_EVENT_CLOSED ? 0 : (double)s->self_ns;

	if (err || block == DIFF_MAX_BLOCKS)
		return err;
	diff_table__add(r->table, row, block, self, (double)total_ns, 1);
	diff_table__add(r->table, DIFF_ROW_WHOLE, block, self, self, 1);
	return 0;
}

int diff_read_spans(struct diff_table *table, struct kprof_capture *t)
{
	static const struct tl_walker walker = {.begin = begin_span, .end = end_span};
	struct reading r = {.table = table, .t = t};
	int err = timeline__walk(t, &walker, &r);

	nested__free(&r.nested);
	map64__free(&r.rows);
	return err;
}

/* ---- devices ---- */

static int row_of_work(struct reading *r, uint32_t name, uint32_t type, uint32_t *row)
{
	uint64_t *slot = map64__at(&r->rows, (uint64_t)(type & 63) << 32 | name);
	const char *text = timeline__string(r->t, name);
	char *plain;
	int err;

	if (!slot)
		return no_memory();
	*row = (uint32_t)*slot - 1;
	if (*slot)
		return 0;
	plain = strncmp(text, "_Z", 2) ? strdup(text) : demangle(text);
	err = plain ? diff_table__row(r->table,
				      &(struct diff_key){activity_by_id(type)->name, plain, ""},
				      row)
		    : no_memory();
	free(plain);
	if (!err)
		*slot = (uint64_t)*row + 1;
	return err;
}

static int count_work(void *ctx, const struct store_record *rec)
{
	struct reading *r = ctx;
	uint32_t block, row = 0;
	double ns;
	int err;

	if (rec->type != STORE_ACTIVITY || !activity_by_id(rec->activity.type)->on_device ||
	    activity_is_wait(rec->activity.type))
		return 0;
	block = diff_blocks__of(&r->table->blocks, rec->activity.end_ns);
	if (block == DIFF_MAX_BLOCKS)
		return 0;
	err = row_of_work(r, rec->activity.name, rec->activity.type, &row);
	if (err)
		return err;
	ns = (double)(rec->activity.end_ns - rec->activity.start_ns);
	diff_table__add(r->table, row, block, ns, ns, 1);
	diff_table__add(r->table, DIFF_ROW_WHOLE, block, ns, ns, 1);
	return 0;
}

int diff_read_device(struct diff_table *table, struct kprof_capture *t)
{
	struct reading r = {.table = table, .t = t};
	int err = correlate__activities(t, count_work, &r);

	map64__free(&r.rows);
	return err;
}
