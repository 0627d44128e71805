// SPDX-License-Identifier: BSD-2-Clause
/* Queries about calls, activities and their rows, for this room and for others. */
#include "model/correlate/impl.h"

#include <errno.h>

#include "catalog/runtime.h"
#include "store/store.h"
#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

int correlate__no_memory(size_t nr)
{
	return error_set(-ENOMEM, NULL, "out of memory for %zu device activities", nr);
}

void *correlate__push(struct bulk *b)
{
	void *at;

	if (b->nr >= CORRELATE_NONE) {
		error_set(-E2BIG, NULL, "the capture has more than %u device activities",
			  CORRELATE_NONE - 1);
		return NULL;
	}
	at = bulk__push(b);
	if (!at)
		correlate__no_memory(b->nr);
	return at;
}

/* ---- names and types ---- */

bool correlate_is_sync(const char *name)
{
	return device_role_waits(device_role_of(name));
}

enum kprof_activity correlate__type(const struct correlate *c,
				    const struct tl_description *description)
{
	return c->types[description->id - 1] & ~CALL_WAITS;
}

bool correlate__is_wait(const struct correlate *c, const struct tl_description *description)
{
	return c->types[description->id - 1] & CALL_WAITS;
}

bool correlate__is_call(const struct correlate *c, const struct tl_description *description)
{
	return activity_is_call(correlate__type(c, description));
}

bool correlate__is_op(const struct correlate *c, const struct tl_description *description)
{
	uint32_t type = correlate__type(c, description);

	return type == KPROF_ACTIVITY_CPU_OP || type == KPROF_ACTIVITY_USER_ANNOTATION;
}

const struct corr_counts *correlate__counts(const struct correlate *c)
{
	return &c->counts;
}

bool correlate__any(const struct correlate *c)
{
	return c->acts.nr || c->calls.nr;
}

void correlate__rewind(struct correlate *c)
{
	c->cursor = 0;
}

const uint32_t *correlate__of_span(struct correlate *c, const struct tl_span *s, size_t *nr)
{
	size_t first = c->cursor;

	while (c->cursor < c->matches.nr &&
	       corr_call_at(c, corr_number_at(&c->matches, c->cursor))->span == s->id)
		c->cursor++;
	*nr = c->cursor - first;
	return *nr ? bulk__at(&c->matches, first) : NULL;
}

bool corr_same_function(const char *a, const char *b)
{
	size_t len = catalog_call_stem(a);

	return len == catalog_call_stem(b) && !memcmp(a, b, len);
}

enum corr_result correlate__result(const struct correlate *c, const struct tl_span *s,
				   const uint32_t *calls, size_t nr,
				   const struct corr_call **record)
{
	/* Captures from before the flag have the attributes, where there was something to tell. */
	if (s->flags & KPROF_EVENT_RESULT || timeline__attr(c->t, s->attrs, s->nr_attrs, "error") ||
	    timeline__attr(c->t, s->attrs, s->nr_attrs, "result"))
		return CORR_RESULT_OF_SPAN;
	for (size_t i = 0; i < nr; i++) {
		*record = corr_call_at(c, calls[i]);
		if (corr_same_function(timeline__string(c->t, (*record)->name),
				       s->description->name))
			return CORR_RESULT_OF_RECORD;
	}
	return CORR_RESULT_UNKNOWN;
}

const char *correlate__error(const struct correlate *c, const struct corr_call *call)
{
	return call->error ? timeline__string(c->t, call->error) : "of an unknown number";
}

const struct corr_act *correlate__act(const struct correlate *c, uint32_t i)
{
	return i < c->acts.nr ? corr_act_at(c, i) : NULL;
}

const struct corr_call *correlate__call(const struct correlate *c, uint32_t i)
{
	return i < c->calls.nr ? corr_call_at(c, i) : NULL;
}

const struct corr_row *correlate__row(const struct correlate *c, size_t i)
{
	return i < c->rows.nr ? (const struct corr_row *)c->rows.data + i : NULL;
}

bool correlate__first_of_device(const struct correlate *c, size_t i)
{
	const struct corr_row *rows = c->rows.data, *row = &rows[i];

	if (!corr_row_is_work(row))
		return false;
	while (i--)
		if (corr_row_is_work(&rows[i]) && rows[i].pid == row->pid &&
		    rows[i].device == row->device)
			return false;
	return true;
}

uint32_t correlate__of_row(const struct correlate *c, const struct corr_row *row, uint32_t i)
{
	return corr_number_at(&c->by_row, (size_t)row->first + i);
}

static int by_start(const void *a, const void *b, void *ctx)
{
	return order_u64(corr_act_at(ctx, *(const uint32_t *)a)->start_ns,
			 corr_act_at(ctx, *(const uint32_t *)b)->start_ns);
}

static int add_row(const struct correlate *c, const struct corr_row *row, struct bulk *acts)
{
	size_t nr = acts->nr;

	if (bulk__resize(acts, nr + row->nr))
		return correlate__no_memory(nr + row->nr);
	for (uint32_t i = 0; i < row->nr; i++)
		*(uint32_t *)bulk__at(acts, nr + i) = correlate__of_row(c, row, i);
	return 0;
}

int correlate__of_device(const struct correlate *c, pid_t pid, uint32_t device, struct bulk *acts)
{
	const struct corr_row *row;
	int err = 0;

	*acts = (struct bulk){.size = sizeof(uint32_t)};
	for (size_t i = 0; !err && (row = correlate__row(c, i)); i++)
		if (corr_row_is_work(row) && row->pid == pid && row->device == device)
			err = add_row(c, row, acts);
	if (!err && bulk__sort(acts, 0, acts->nr, by_start, (void *)c))
		err = correlate__no_memory(acts->nr);
	return err;
}

const struct corr_annotation *correlate__annotation(const struct correlate *c, size_t i)
{
	return i < c->annotations.nr ? bulk__at(&c->annotations, i) : NULL;
}

bool corr_call_own_slice(const struct corr_call *call)
{
	return call->first != CORRELATE_NONE &&
	       !(call->flags & (CORR_CALL_NESTED | CORR_CALL_SPAN | CORR_CALL_CROSSING));
}

bool corr_call_drawn(const struct corr_call *call)
{
	return call->flags & CORR_CALL_SPAN || corr_call_own_slice(call);
}
