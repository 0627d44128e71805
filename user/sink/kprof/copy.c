// SPDX-License-Identifier: BSD-2-Clause
#include "sink/kprof/copy.h"

#include <errno.h>
#include <stdlib.h>

#include "kprof/activity.h"
#include "sink/kprof/spans.h"
#include "util/error.h"
#include "util/util.h"

struct kprof_copy {
	const struct kprof_copy_ops *ops;
	void *ctx;
	struct store_reader *in;
	struct store_writer *out;
	struct kprof_copy_numbers *next;
	struct vec ids[STORE_REFS]; /* by id in the source: id in the copy + 1; 0: left out */
	struct store_renumber numbers;
	int err; /* error while renumbering */
	struct kprof_spans spans;
	/*
	 * ARGS records precede the begins of their spans. At that point a span's number in the copy
	 * is unknown, and whether the copy has it. So a second reader reads ARGS, and holds each
	 * back until its span has begun.
	 */
	struct {
		struct store_reader *in; /* NULL: no ARGS so far */
		struct store_record held;
		/*
		 * ARGS that the first reader has passed; that this one has copied, without the one
		 * held.
		 */
		uint64_t seen, done;
		bool holds;
	} args;
	enum kprof_copy_part part;
	/* What waits for its turn: a begin or end with the copy's numbers, or a sample or wait. */
	struct store_record event;
	uint64_t event_ns;
	uint32_t event_thread; /* its thread in the source */
	uint64_t end_ns;
};

/* ---- numbers ---- */

static int ids_set(struct vec *ids, uint64_t from, uint64_t to)
{
	while (ids->nr <= from)
		if (!vec_push(ids, sizeof(to)))
			return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	((uint64_t *)ids->data)[from] = to + 1;
	return 0;
}

static uint64_t ids_get(const struct vec *ids, uint64_t from)
{
	return from < ids->nr ? ((uint64_t *)ids->data)[from] - 1 : STORE_LEFT_OUT;
}

uint64_t kprof_copy__number(const struct kprof_copy *c, enum store_ref ref, uint64_t number)
{
	return !number && ref == STORE_REF_STRING ? 0 : ids_get(&c->ids[ref], number);
}

int kprof_copy__map(struct kprof_copy *c, enum store_ref ref, uint64_t from, uint64_t to)
{
	return ids_set(&c->ids[ref], from, to);
}

static uint64_t task(const struct kprof_copy *c, uint64_t id)
{
	return c->ops->task ? c->ops->task(c->ctx, (uint32_t)id) : id;
}

static uint64_t process(const struct kprof_copy *c, uint64_t pid)
{
	return !c->ops->process || c->ops->process(c->ctx, (uint32_t)pid) ? task(c, pid)
									  : STORE_LEFT_OUT;
}

/*
 * What is left out gets no number: the PID of a THREAD record, say, is looked at before its index.
 */
static uint64_t dense(struct kprof_copy *c, enum store_ref ref, uint64_t number, bool defines)
{
	uint64_t to = ids_get(&c->ids[ref], number);

	if (to != STORE_LEFT_OUT || !defines)
		return to;
	c->err = ids_set(&c->ids[ref], number, c->next->next[ref]);
	return c->err ? STORE_LEFT_OUT : c->next->next[ref]++;
}

static uint64_t number_in_copy(void *ctx, enum store_ref ref, uint64_t number, bool defines)
{
	struct kprof_copy *c = ctx;

	switch (ref) {
	case STORE_REF_SPAN:
		number = kprof_spans__number(&c->spans, number);
		return number ? number : STORE_LEFT_OUT;
	case STORE_REF_PID:
		return process(c, number);
	case STORE_REF_PID_OR_ALL:
		return number ? process(c, number) : 0;
	case STORE_REF_TASK:
		return number ? task(c, number) : 0;
	case STORE_REF_STRING:
	case STORE_REF_MODULE:
	case STORE_REF_STACK:
		return number ? dense(c, ref, number, defines) : 0;
	default:
		return dense(c, ref, number, defines);
	}
}

static uint64_t time_in_copy(void *ctx, uint64_t ns)
{
	const struct kprof_copy *c = ctx;

	return ns && c->ops->time ? c->ops->time(c->ctx, ns) : ns;
}

static int copy_renumbered(struct kprof_copy *c, const struct store_record *from)
{
	struct store_record r = *from;

	if (!store_record__renumber(&r, &c->numbers))
		return c->err;
	return c->ops->put ? c->ops->put(c->ctx, &r) : store_writer__put(c->out, &r);
}

/* ---- spans ---- */

/*
 * Holds the second reader's next ARGS, which the first reader has passed. 1: done; 0: the file has
 * no more; < 0: an error.
 */
static int hold_args(struct kprof_copy *c)
{
	int err;

	do
		err = store_reader__next(c->args.in, &c->args.held);
	while (err == 1 && c->args.held.type != STORE_ARGS);
	c->args.holds = err == 1;
	return err;
}

/*
 * Copies the ARGS of spans that have begun, in their order, so that none comes after its span's
 * end.
 */
static int copy_args(struct kprof_copy *c)
{
	while (c->args.done < c->args.seen) {
		int err = c->args.holds ? 1 : hold_args(c);

		if (err <= 0)
			return err;
		if (c->args.held.args.span > c->spans.begun)
			return 0;
		c->args.holds = false;
		c->args.done++;
		err = copy_renumbered(c, &c->args.held);
		if (err)
			return err;
	}
	return 0;
}

static int saw_args(struct kprof_copy *c)
{
	int err = 0;

	if (!c->args.in) {
		err = store_reader__again(c->in, &c->args.in);
		if (!err)
			store_reader__rewind(c->args.in, STORE_READ_DETAILS);
	}
	c->args.seen++;
	return err ? err : copy_args(c);
}

/* Whether the begin is to be copied: 1 or 0; < 0: an error. */
static int take_begin(struct kprof_copy *c, struct store_record *r)
{
	uint64_t thread = ids_get(&c->ids[STORE_REF_THREAD], r->begin.thread);
	uint64_t span = c->spans.begun + 1;
	int yes = 1, err;

	if (c->ops->event)
		yes = c->ops->event(c->ctx, r, &span);
	else if (c->ops->begin)
		yes = c->ops->begin(c->ctx, r->begin.thread, span);
	if (yes < 0)
		return yes;
	if (yes == 2) {
		err = kprof_spans__begin(&c->spans, r->begin.thread, span);
		return err ? err : copy_args(c);
	}
	if (thread == STORE_LEFT_OUT || !yes) {
		kprof_spans__pass(&c->spans);
		return copy_args(c);
	}
	c->event = *r;
	c->event_thread = r->begin.thread;
	c->event.begin.thread = (uint32_t)thread;
	c->event.begin.description = (uint32_t)ids_get(&c->ids[STORE_REF_DESCRIPTION], //
						       r->begin.description);
	c->event.begin.time_ns = c->event_ns = time_in_copy(c, r->begin.time_ns);
	return 1;
}

static int take_end(struct kprof_copy *c, struct store_record *r)
{
	uint64_t thread = ids_get(&c->ids[STORE_REF_THREAD], r->end.thread);
	int yes = c->ops->event ? c->ops->event(c->ctx, r, NULL) : 1;

	if (yes <= 0)
		return yes;
	if ((c->ops->end && !c->ops->end(c->ctx, r->end.thread)) || thread == STORE_LEFT_OUT)
		return 0;
	c->event = *r;
	c->event_thread = r->end.thread;
	c->event.end.thread = (uint32_t)thread;
	c->event.end.time_ns = c->event_ns = time_in_copy(c, r->end.time_ns);
	return 1;
}

/* ---- all records ---- */

static int copy_string(struct kprof_copy *c, const struct store_record *r)
{
	uint32_t id = store_writer__string(c->out, r->string.bytes, r->string.len);

	if (!id && r->string.len)
		return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	return ids_set(&c->ids[STORE_REF_STRING], r->string.id, id);
}

/* What a program reported by itself is on a thread, whose index is in the place of a stream's. */
static bool is_of_thread(const struct store_record *r)
{
	return r->type == STORE_ACTIVITY && r->activity.type == KPROF_ACTIVITY_CPU_OP &&
	       r->activity.device == UINT32_MAX;
}

static int copy_other(struct kprof_copy *c, const struct store_record *r)
{
	int yes = c->ops->record ? c->ops->record(c->ctx, r) : 1;
	struct store_record other = *r;
	uint64_t thread;

	if (yes <= 0)
		return yes;
	if (is_of_thread(r)) {
		thread = ids_get(&c->ids[STORE_REF_THREAD], r->activity.stream);
		if (thread == STORE_LEFT_OUT)
			return 0;
		other.activity.stream = (uint32_t)thread;
	}
	return copy_renumbered(c, &other);
}

/* 1: it is of a moment, and waits for kprof_copy__event(), which copies it. */
static int take_moment(struct kprof_copy *c, const struct store_record *r, uint64_t ns)
{
	c->event = *r;
	c->event_ns = time_in_copy(c, ns);
	return 1;
}

/* 1: it is to be copied in its turn, and waits for kprof_copy__event(). */
static int take(struct kprof_copy *c, struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		return c->part == KPROF_COPY_EVENTS ? 0 : copy_string(c, r);
	case STORE_BEGIN:
		return take_begin(c, r);
	case STORE_END:
		return take_end(c, r);
	case STORE_ARGS:
		return c->part == KPROF_COPY_DETAILS ? 0 : saw_args(c);
	case STORE_FINISH: /* who copies puts one at the end */
		c->end_ns = r->finish.time_ns;
		return 0;
	case STORE_SAMPLE:
		if (c->part == KPROF_COPY_DETAILS)
			return take_moment(c, r, r->sample.time_ns);
		break;
	case STORE_WAIT:
		if (c->part == KPROF_COPY_DETAILS)
			return take_moment(c, r, r->wait.start_ns);
		break;
	default:
		break;
	}
	return c->part == KPROF_COPY_EVENTS ? 0 : copy_other(c, r);
}

int kprof_copy__event(struct kprof_copy *c)
{
	int err;

	if (c->event.type == STORE_SAMPLE || c->event.type == STORE_WAIT)
		return copy_other(c, &c->event);
	if (c->event.type == STORE_END) {
		kprof_spans__end(&c->spans, c->event_thread);
		return store_writer__put(c->out, &c->event);
	}
	err = kprof_spans__begin(&c->spans, c->event_thread, store_writer__begins(c->out) + 1);
	if (!err)
		err = store_writer__put(c->out, &c->event);
	return err ? err : copy_args(c);
}

void kprof_copy__start(struct kprof_copy *c, enum kprof_copy_part part)
{
	c->part = part;
	store_reader__rewind(c->in,
			     part == KPROF_COPY_DETAILS ? STORE_READ_DETAILS : STORE_READ_ALL);
}

int kprof_copy__next(struct kprof_copy *c, uint64_t *ns)
{
	struct store_record r;
	int err;

	while ((err = store_reader__next(c->in, &r)) > 0) {
		err = take(c, &r);
		if (err < 0)
			return err;
		if (!err)
			continue;
		*ns = c->event_ns;
		return 1;
	}
	return err;
}

struct store_reader *kprof_copy__in(const struct kprof_copy *c)
{
	return c->in;
}

uint64_t kprof_copy__end_ns(const struct kprof_copy *c)
{
	return c->end_ns;
}

int kprof_copy__new(const char *path, struct store_writer *out, struct kprof_copy_numbers *numbers,
		    const struct kprof_copy_ops *ops, void *ctx, struct kprof_copy **to)
{
	struct kprof_copy *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	*c = (struct kprof_copy){
		.ops = ops,
		.ctx = ctx,
		.out = out,
		.next = numbers,
		.numbers = {.number = number_in_copy,
			    .time = ops->time ? time_in_copy : NULL,
			    .ctx = c},
		.spans.same = !ops->begin && !ops->event && !ops->process && !ops->task,
	};
	err = store_reader__open(path, &c->in);
	if (err) {
		kprof_copy__free(c);
		return err;
	}
	*to = c;
	return 0;
}

void kprof_copy__free(struct kprof_copy *c)
{
	if (!c)
		return;
	store_reader__close(c->in);
	store_reader__close(c->args.in);
	kprof_spans__free(&c->spans);
	for (size_t i = 0; i < STORE_REFS; i++)
		free(c->ids[i].data);
	free(c);
}
