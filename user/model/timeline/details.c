// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams what a capture has beside spans: activities of devices, calls as the devices' tool
 * interfaces saw them, instants, counters, samples.
 */
#include "model/timeline/impl.h"

#include <errno.h>

#include "util/error.h"

/* Times and references are numbers from a file: puts them in order, or refuses the record. */
static bool settle_wait(const struct kprof_capture *t, struct store_record *r)
{
	if (t->fitted.nr)
		tl_wait_fit__apply(&t->fitted, r);
	if (r->wait.end_ns < r->wait.start_ns)
		r->wait.end_ns = r->wait.start_ns;
	if (r->wait.wake_ns < r->wait.start_ns)
		r->wait.wake_ns = r->wait.start_ns;
	if (r->wait.wake_ns > r->wait.end_ns)
		r->wait.wake_ns = r->wait.end_ns;
	return r->wait.thread < t->threads.nr && r->wait.stack <= timeline__nr_stacks(t) &&
	       r->wait.waker_stack <= timeline__nr_stacks(t) && r->wait.object < t->strings.nr &&
	       r->wait.waker_comm < t->strings.nr;
}

/*
 * Checks that what the record refers to exists (records may have been added to the file since the
 * tables were read), and puts its begin and end in order.
 */
static bool settle(const struct kprof_capture *t, struct store_record *r)
{
	switch (r->type) {
	case STORE_ACTIVITY:
		if (r->activity.end_ns < r->activity.start_ns)
			r->activity.end_ns = r->activity.start_ns;
		return r->activity.name < t->strings.nr;
	case STORE_API:
		if (r->api.end_ns < r->api.start_ns)
			r->api.end_ns = r->api.start_ns;
		return r->api.thread < t->threads.nr && r->api.name < t->strings.nr;
	case STORE_INSTANT:
		return r->instant.thread < t->threads.nr &&
		       r->instant.description - 1 < t->descriptions.nr;
	case STORE_COUNTER:
		return r->counter.name < t->strings.nr;
	case STORE_SAMPLE:
		r->sample.reason = NULL;
		return r->sample.thread < t->threads.nr &&
		       r->sample.stack <= timeline__nr_stacks(t);
	case STORE_WAIT:
		return settle_wait(t, r);
	default:
		return true;
	}
}

static bool is_detail(enum store_type type)
{
	return type == STORE_ACTIVITY || type == STORE_API || type == STORE_INSTANT ||
	       type == STORE_COUNTER || type == STORE_SAMPLE || type == STORE_WAIT;
}

/*
 * After a pass through the whole file: a damaged chunk that was skipped when the tables were read
 * may be found only now.
 */
static void streamed(struct kprof_capture *t, uint64_t samples)
{
	struct store_reader_info info;

	store_reader__info(t->reader, &info);
	t->info.nr_samples = samples;
	if (t->info.complete && !info.complete) {
		t->info.complete = false;
		t->info.lost_bytes = info.lost_bytes;
	}
}

/* The process that a record is about. */
static pid_t pid_of(const struct kprof_capture *t, const struct store_record *r)
{
	switch (r->type) {
	case STORE_ACTIVITY:
		return (pid_t)r->activity.pid;
	case STORE_COUNTER:
		return (pid_t)r->counter.pid;
	case STORE_API:
		return tl_pid(t, r->api.thread);
	case STORE_INSTANT:
		return tl_pid(t, r->instant.thread);
	case STORE_WAIT:
		return tl_pid(t, r->wait.thread);
	default:
		return tl_pid(t, r->sample.thread);
	}
}

/* Whether the record is of the selected range. */
static bool selected(const struct kprof_capture *t, const struct store_record *r)
{
	uint64_t ns;

	if (!t->range.set)
		return true;
	switch (r->type) {
	case STORE_ACTIVITY:
		return t->range.cut || tl_overlaps(t, r->activity.start_ns, r->activity.end_ns);
	case STORE_API:
		return t->range.cut || tl_overlaps(t, r->api.start_ns, r->api.end_ns);
	case STORE_WAIT:
		return tl_overlaps(t, r->wait.start_ns, r->wait.end_ns);
	case STORE_COUNTER:
		ns = r->counter.time_ns;
		break;
	case STORE_INSTANT:
		ns = r->instant.time_ns;
		break;
	default:
		ns = r->sample.time_ns;
		break;
	}
	return tl_overlaps(t, ns, ns);
}

enum details { SAMPLES, WAITS, OTHERS };

static enum details kind_of(const struct store_record *r)
{
	return r->type == STORE_SAMPLE ? SAMPLES : r->type == STORE_WAIT ? WAITS : OTHERS;
}

static uint64_t within(const struct kprof_selection *s, uint64_t ns)
{
	return ns < s->from_mono_ns ? s->from_mono_ns : ns > s->to_mono_ns ? s->to_mono_ns : ns;
}

/* Of a wait, what counts is the part of it in the selected range; a trace has it whole. */
static void clip(const struct kprof_capture *t, struct store_record *r)
{
	const struct kprof_selection *s = &t->range.selection;

	if (r->type != STORE_WAIT || !t->range.set || (!t->range.cut && !timeline__shows_waits(t)))
		return;
	r->wait.start_ns = within(s, r->wait.start_ns);
	r->wait.wake_ns = within(s, r->wait.wake_ns);
	r->wait.end_ns = within(s, r->wait.end_ns);
}

/* Streams one kind of details. */
static int stream(struct kprof_capture *t, enum details wanted, pid_t pid,
		  int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	struct store_record r;
	uint64_t nr_samples = 0;
	int err = tl_pass__start(t, STORE_READ_DETAILS);

	if (err)
		return err;
	while ((err = store_reader__next(t->reader, &r)) > 0) {
		if (!is_detail(r.type))
			continue;
		err = settle(t, &r) ? 0 : tl_changed(t);
		nr_samples += r.type == STORE_SAMPLE;
		if (!err && kind_of(&r) == wanted && (!pid || pid_of(t, &r) == pid) &&
		    selected(t, &r)) {
			clip(t, &r);
			err = fn(ctx, &r);
		}
		if (err)
			break;
	}
	t->walking = false;
	if (!err)
		streamed(t, nr_samples);
	return err;
}

int timeline__details(struct kprof_capture *t, pid_t pid,
		      int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	return stream(t, OTHERS, pid, fn, ctx);
}

int timeline__waits(struct kprof_capture *t, pid_t pid,
		    int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	int err = 0;

	if (!kprof_capture_meta(t, "waits"))
		return 0;
	if (!t->is_fitted && timeline__waits_number(t, "switches_not_seen"))
		err = tl_wait_fit__make(t, &t->fitted);
	t->is_fitted = !err;
	return err ? err : stream(t, WAITS, pid, fn, ctx);
}

struct as_samples {
	struct kprof_capture *t;
	int (*fn)(void *ctx, const struct store_record *r);
	void *ctx;
};

static int on_wait(void *ctx, const struct store_record *r)
{
	const struct as_samples *w = ctx;

	return tl_waits__hand_out(w->t, r, w->fn, w->ctx);
}

static int on_block(void *ctx, const struct store_record *r)
{
	const struct as_samples *b = ctx;

	return tl_block__hand_out(b->t, r, b->fn, b->ctx);
}

int timeline__samples(struct kprof_capture *t, pid_t pid,
		      int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	struct as_samples to = {t, fn, ctx};

	if (timeline__has_blocks(t))
		return stream(t, OTHERS, pid, on_block, &to);
	if (timeline__shows_waits(t))
		return timeline__waits(t, pid, on_wait, &to);
	return t->info.nr_samples ? stream(t, SAMPLES, pid, fn, ctx) : 0;
}

void timeline__watch(struct kprof_capture *t, int (*fn)(void *ctx, uint64_t done, uint64_t total),
		     void *ctx)
{
	store_reader__watch(t->reader, fn, ctx);
}
