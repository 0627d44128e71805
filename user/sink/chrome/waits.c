// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits: slices on their thread's own row, where they nest, since a thread that waits does nothing
 * else. In each is another one for the time after the thread was woken, to which an arrow leads
 * from who woke it, if that is a thread of the trace. An arrow has to begin in a slice, so there is
 * one of a nanosecond on the waker's row.
 */
#include "sink/chrome/impl.h"

#include <string.h>

#include "util/util.h"

struct waits {
	struct chrome *c;
	uint64_t arrows; /* so far, by which they are numbered */
};

static void put_args(struct chrome *c, const struct store_record *r, const char *reason)
{
	struct args args = {.w = &c->w};
	char waker[TRACE_WAKER_BYTES];

	args_string(&args, ",\"reason\":", reason);
	if (trace__waker(c->t, r, waker))
		args_string(&args, ",\"woken by\":", waker);
	args_u64(&args, ",\"run queue (ns)\":", r->wait.end_ns - r->wait.wake_ns);
	if (r->wait.flags & STORE_WAIT_FROM_START)
		args_raw(&args, ",\"started\":false", strlen(",\"started\":false"));
	if (r->wait.flags & STORE_WAIT_TO_END)
		args_raw(&args, ",\"finished\":false", strlen(",\"finished\":false"));
}

static void put_arrow(struct waits *w, const char *end, const struct fragment *row, int64_t at_ns)
{
	struct jsonw *to = &w->c->w;

	jsonw__text(to, ",\n{\"ph\":");
	jsonw__text(to, end);
	jsonw__text_u64(to, ",\"cat\":\"wake\",\"name\":\"wake\",\"id\":", w->arrows);
	jsonw__raw(to, row->text, row->head);
	jsonw__us(to, at_ns);
	jsonw__text(to, "}");
}

/* The begin of an arrow, on the row of who woke the thread. False: there is none. */
static bool put_waker(struct waits *w, const struct store_record *r, int *err)
{
	const struct tl_thread *waker = trace__waking_thread(&w->c->tr, r);
	const struct tl_thread *woken = timeline__thread(w->c->t, r->wait.thread);
	int64_t at_ns = chrome_time(w->c, r->wait.wake_ns);
	struct jsonw *to = &w->c->w;
	struct fragment *row;

	if (!waker)
		return false;
	*err = chrome_thread(w->c, waker->index, &row);
	if (*err)
		return false;
	w->arrows++;
	jsonw__text(to, ",\n{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"wakes\"");
	jsonw__raw(to, row->text, row->head);
	jsonw__us(to, at_ns);
	jsonw__text_us(to, ",\"dur\":", 1);
	chrome_cover(w->c, at_ns, at_ns + 1);
	jsonw__text_u64(to, ",\"args\":{\"thread\":", (uint64_t)woken->tid);
	jsonw__text(to, "}}");
	put_arrow(w, "\"s\"", row, at_ns);
	return true;
}

/* The part of a wait for which the thread could have gone on. */
static int put_runnable(struct waits *w, const struct store_record *r)
{
	int64_t wake_ns = chrome_time(w->c, r->wait.wake_ns);
	struct jsonw *to = &w->c->w;
	struct fragment *row;
	bool arrow;
	int err = 0;

	if (r->wait.wake_ns == r->wait.end_ns || r->wait.wake_ns == r->wait.start_ns)
		return 0;
	/* Perfetto takes an arrow to begin at the slice that is first, by time and in the file. */
	arrow = put_waker(w, r, &err);
	if (!err)
		err = chrome_thread(w->c, r->wait.thread, &row);
	if (err)
		return err;
	jsonw__text(to, ",\n{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"runnable\"");
	jsonw__raw(to, row->text, row->head);
	jsonw__us(to, wake_ns);
	jsonw__text_us(to, ",\"dur\":", (int64_t)(r->wait.end_ns - r->wait.wake_ns));
	jsonw__text(to, ",\"args\":{}}");
	chrome_cover(w->c, wake_ns, chrome_time(w->c, r->wait.end_ns));
	if (arrow)
		put_arrow(w, "\"f\",\"bp\":\"e\"", row, wake_ns);
	return 0;
}

static int put_slices(struct waits *w, const struct store_record *r)
{
	struct chrome *c = w->c;
	const char *reason = timeline__wait_reason(c->t, r);
	int64_t start_ns = chrome_time(c, r->wait.start_ns);
	struct jsonw *to = &c->w;
	struct fragment *row;
	char name[TRACE_WAIT_NAME_BYTES];
	int err = chrome_thread(c, r->wait.thread, &row);

	if (err)
		return err;
	trace__wait_name(reason, name);
	jsonw__text_string(to, ",\n{\"ph\":\"X\",\"cat\":\"wait\",\"name\":", name);
	jsonw__raw(to, row->text, row->head);
	jsonw__us(to, start_ns);
	jsonw__text_us(to, ",\"dur\":", (int64_t)(r->wait.end_ns - r->wait.start_ns));
	jsonw__text(to, ",\"args\":{");
	put_args(c, r, reason);
	if (r->wait.stack) {
		jsonw__text(to, ",\"stack\":");
		err = chrome_call_stack(c, r->wait.stack);
	}
	jsonw__text(to, "}}");
	chrome_cover(c, start_ns, chrome_time(c, r->wait.end_ns));
	if (!err)
		err = put_runnable(w, r);
	return err ? err : to->err;
}

static int put_wait(void *ctx, const struct store_record *whole)
{
	struct store_record r;
	struct waits *w = ctx;

	return trace__wait(w->c->t, whole, &r) ? put_slices(w, &r) : 0;
}

int chrome_waits(struct chrome *c)
{
	struct waits w = {.c = c};

	return timeline__waits(c->t, c->opts->pid, put_wait, &w);
}
