// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of what devices did, by kernel, by stream and by kind of copy; and of the calls that
 * launched it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/activity.h"
#include "catalog/runtime.h"
#include "model/correlate/correlate.h"
#include "model/report/impl.h"
#include "model/report/nested.h"
#include "store/store.h"
#include "symbol/names/names.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* A name may occur under several string ids: at most this many rows are compared by text. */
#define MAX_SEARCH 4096

struct rows {
	struct kprof_result *result;
	const struct kprof_capture *t;
	struct map64 by_key; /* index + 1 */
	/* Of work by name: which activities are counted; NULL: all. */
	bool (*wanted)(const void *ctx, uint32_t number);
	const void *ctx;
	uint32_t seen; /* activities */
};

/* Finds or adds the row of this name and category, and returns its index. -ENOMEM. */
static int row_named(struct rows *rows, char *name, const char *category, size_t *index)
{
	struct kprof_result *r = rows->result;
	struct kprof_row *row;

	for (size_t i = 0; name && i < r->nr && i < MAX_SEARCH; i++) {
		if (!strcmp(r->entries[i].row.name, name) &&
		    !strcmp(r->entries[i].row.category, category)) {
			free(name);
			*index = i;
			return 0;
		}
	}
	row = result__row(r, name);
	if (!row)
		return -ENOMEM;
	row->category = category;
	*index = r->nr - 1;
	return 0;
}

/* The row of a name, given by its string id, and of one type of activity. */
static int row_of(struct rows *rows, uint32_t name, uint32_t type, struct kprof_row **out)
{
	uint64_t *slot = map64__at(&rows->by_key, (uint64_t)(type & 63) << 32 | name);
	const char *text = timeline__string(rows->t, name);
	size_t index;
	int err;

	if (!slot)
		return error_set(-ENOMEM, NULL, "out of memory for a table");
	if (!*slot) {
		char *plain = activity_is_call(type)   ? strndup(text, catalog_call_stem(text))
			      : strncmp(text, "_Z", 2) ? strdup(text)
						       : demangle(text);

		err = row_named(rows, plain, activity_by_id(type)->name, &index);
		if (err)
			return err;
		*slot = index + 1;
	}
	*out = &rows->result->entries[*slot - 1].row;
	return 0;
}

/* ---- by kernel, by kind of copy ---- */

static int count_work(void *ctx, const struct store_record *r)
{
	struct rows *rows = ctx;
	struct kprof_row *row = NULL;
	uint32_t number;
	int err;

	if (r->type != STORE_ACTIVITY)
		return 0;
	number = rows->seen++;
	if (!activity_by_id(r->activity.type)->on_device || activity_is_wait(r->activity.type) ||
	    (rows->wanted && !rows->wanted(rows->ctx, number)))
		return 0;
	err = row_of(rows, r->activity.name, r->activity.type, &row);
	if (row)
		result__count_part(row, rows->t, r->activity.start_ns, r->activity.end_ns);
	return err;
}

static int count_copy(void *ctx, const struct store_record *r)
{
	struct rows *rows = ctx;
	struct kprof_row *row = NULL;
	int err;

	if (r->type != STORE_ACTIVITY || (r->activity.type != KPROF_ACTIVITY_GPU_MEMCPY &&
					  r->activity.type != KPROF_ACTIVITY_GPU_MEMSET))
		return 0;
	err = row_of(rows, r->activity.name, r->activity.type, &row);
	if (!row || !result__count_part(row, rows->t, r->activity.start_ns, r->activity.end_ns))
		return err;
	for (uint32_t i = 0; i < r->nr_attrs; i++)
		if (!strcmp(timeline__string(rows->t, r->attrs[i].key), "bytes"))
			row->bytes += r->attrs[i].value;
	return 0;
}

static int by_details(struct kprof_result *r, struct kprof_capture *t,
		      int (*count)(void *ctx, const struct store_record *r))
{
	struct rows rows = {.result = r, .t = t};
	int err = correlate__activities(t, count, &rows);

	map64__free(&rows.by_key);
	return err;
}

int result__by_kernel(struct kprof_result *r, struct kprof_capture *t)
{
	return by_details(r, t, count_work);
}

int result__by_work(struct kprof_result *r, struct kprof_capture *t,
		    bool (*wanted)(const void *ctx, uint32_t number), const void *ctx)
{
	struct rows rows = {.result = r, .t = t, .wanted = wanted, .ctx = ctx};
	int err = timeline__details(t, 0, count_work, &rows);

	map64__free(&rows.by_key);
	return err;
}

int result__by_memcpy(struct kprof_result *r, struct kprof_capture *t)
{
	return by_details(r, t, count_copy);
}

/* ---- by call ---- */

struct calls {
	struct rows rows;
	struct correlate *corr;
	struct map64 by_what; /* index + 1 */
	struct nested nested;
	uint32_t at; /* API records seen */
};

static void count_result(struct calls *c, struct kprof_row *row, const struct tl_span *s)
{
	const struct corr_call *record;
	size_t nr;
	const uint32_t *calls = correlate__of_span(c->corr, s, &nr);

	switch (correlate__result(c->corr, s, calls, nr, &record)) {
	case CORR_RESULT_UNKNOWN:
		row->unknown_results++;
		break;
	case CORR_RESULT_OF_SPAN:
		row->errors += timeline__attr(c->rows.t, s->attrs, s->nr_attrs, "error") != NULL;
		break;
	case CORR_RESULT_OF_RECORD:
		row->errors += (record->flags & CORR_CALL_FAILED) != 0;
		break;
	}
}

/* The index of the row of a call's span; CORRELATE_NONE: it is no call. */
static int row_of_span(struct calls *c, const struct tl_span *s, uint32_t *row)
{
	uint32_t type = correlate__type(c->corr, s->description);
	uint64_t *slot;
	size_t index;
	int err;

	*row = CORRELATE_NONE;
	if (!activity_is_call(type))
		return 0;
	slot = map64__at(&c->by_what, s->description->id);
	if (!slot)
		return error_set(-ENOMEM, NULL, "out of memory for a table");
	if (!*slot) {
		err = row_named(&c->rows, strdup(s->description->name), activity_by_id(type)->name,
				&index);
		if (err)
			return err;
		*slot = index + 1;
	}
	*row = (uint32_t)(*slot - 1);
	return 0;
}

static int begin_call(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct calls *c = ctx;
	uint32_t row;
	int err = row_of_span(c, s, &row);

	return err || row == CORRELATE_NONE ? err : nested__begin(&c->nested, row, s);
}

static int end_call(void *ctx, const struct tl_span *s, void *data)
{
	struct calls *c = ctx;
	struct kprof_row *row;
	uint32_t index;
	int err = row_of_span(c, s, &index);

	if (err || index == CORRELATE_NONE)
		return err;
	row = &c->rows.result->entries[index].row;
	result__count_span(row, s, nested__end(&c->nested, index, s));
	if (!(s->beyond & TL_BEFORE))
		count_result(c, row, s);
	return 0;
}

/* Calls that only the device's tool interface saw. */
static int count_record(void *ctx, const struct store_record *r)
{
	struct calls *c = ctx;
	const struct corr_call *call;
	struct kprof_row *row = NULL;
	int err;

	if (r->type != STORE_API)
		return 0;
	call = correlate__call(c->corr, c->at++);
	if (!corr_call_own_slice(call))
		return 0;
	err = row_of(&c->rows, r->api.name, r->api.type, &row);
	if (!row || !result__count_part(row, c->rows.t, call->start_ns, corr_call_end_ns(call)))
		return err;
	row->errors += timeline__attr(c->rows.t, r->attrs, r->nr_attrs, "error") != NULL;
	return 0;
}

int result__by_api(struct kprof_result *r, struct kprof_capture *t)
{
	static const struct tl_walker walker = {.begin = begin_call, .end = end_call};
	struct calls c = {.rows = {.result = r, .t = t}};
	int err = correlate__new(t, 0, &c.corr);

	if (!err)
		correlate__rewind(c.corr);
	if (!err)
		err = timeline__walk(t, &walker, &c);
	if (!err)
		err = timeline__details(t, 0, count_record, &c);
	correlate__free(c.corr);
	map64__free(&c.by_what);
	nested__free(&c.nested);
	map64__free(&c.rows.by_key);
	return err;
}

/* ---- by stream ---- */

/* Time covered by activities, which are added in order of their start time. */
struct cover {
	uint64_t floor_ns, ceil_ns; /* the window */
	uint64_t until_ns, busy_ns;
};

static void cover_add(struct cover *c, const struct corr_act *act)
{
	uint64_t start_ns = act->start_ns > c->until_ns ? act->start_ns : c->until_ns;
	uint64_t end_ns = act->end_ns < c->ceil_ns ? act->end_ns : c->ceil_ns;

	if (start_ns < c->floor_ns)
		start_ns = c->floor_ns;
	if (end_ns > start_ns) {
		c->busy_ns += end_ns - start_ns;
		c->until_ns = end_ns;
	}
}

/*
 * Adds a row for a stream, or for a whole device (stream UINT32_MAX), whose activities are `acts`.
 * Takes ownership of the name.
 */
static int count_acts(struct kprof_result *r, const struct kprof_capture *t,
		      const struct correlate *corr, const struct corr_row *like, char *name,
		      const struct bulk *acts)
{
	size_t nr = acts ? acts->nr : like->nr;
	const struct kprof_capture_info *info = kprof_capture_info(t);
	struct cover cover = {.floor_ns = info->start_mono_ns, .ceil_ns = info->end_mono_ns};
	struct kprof_row *row = result__row(r, name);

	if (!row)
		return -ENOMEM;
	row->pid = like->pid;
	row->device = like->device;
	row->stream = like->stream;
	for (size_t i = 0; i < nr; i++) {
		uint32_t number = acts ? *(const uint32_t *)bulk__at(acts, i)
				       : correlate__of_row(corr, like, (uint32_t)i);
		const struct corr_act *act = correlate__act(corr, number);

		result__count_part(row, t, act->start_ns, act->end_ns);
		cover_add(&cover, act);
	}
	row->total_ns = row->self_ns = cover.busy_ns;
	row->idle_ns = cover.ceil_ns - cover.floor_ns - cover.busy_ns;
	return 0;
}

static int count_device(struct kprof_result *r, const struct kprof_capture *t,
			const struct correlate *corr, const struct corr_row *row)
{
	struct corr_row all = {.pid = row->pid, .device = row->device, .stream = UINT32_MAX};
	struct bulk acts;
	int err = correlate__of_device(corr, row->pid, row->device, &acts);

	if (!err)
		err = count_acts(r, t, corr, &all, xasprintf("%d GPU %u", row->pid, row->device),
				 &acts);
	bulk__free(&acts);
	return err;
}

int result__by_stream(struct kprof_result *r, struct kprof_capture *t)
{
	struct correlate *corr;
	const struct corr_row *row;
	int err = correlate__new(t, 0, &corr);

	for (size_t i = 0; !err && (row = correlate__row(corr, i)); i++) {
		if (!corr_row_is_work(row))
			continue;
		if (correlate__first_of_device(corr, i))
			err = count_device(r, t, corr, row);
		if (!err)
			err = count_acts(r, t, corr, row,
					 xasprintf("%d GPU %u stream %u", row->pid, row->device,
						   row->stream),
					 NULL);
	}
	correlate__free(corr);
	return err;
}
