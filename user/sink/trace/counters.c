// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters of each device, and of each stream if the device has several: how much work waits or
 * runs, how many kernels run, how fast memory is copied. They are computed from the activities,
 * sorted by when they are queued, start and end, one row at a time.
 */
#include "sink/trace/trace.h"

#include <errno.h>

#include "util/error.h"
#include "util/order.h"

/*
 * Each track has at most one value in 10 us, and at most 2^17 values, so that a counter is not
 * larger than what it counts.
 */
#define MIN_STEP_NS 10000
#define MAX_STEPS (1u << 17)

/* One counter, as it changes over time. */
struct track {
	trace_counter_fn *fn;
	void *ctx;
	int err; /* the first error of fn */
	const struct trace_device *device;
	int64_t stream; /* -1: all streams of the device */
	const char *name;
	uint64_t step_ns;
	uint64_t at_ns; /* time of the last change */
	int64_t value, written;
	bool changed, any;
};

static void report(struct track *t)
{
	if (!t->err)
		t->err = t->fn(t->ctx, t->device, t->stream, t->name, t->at_ns, t->value);
	t->written = t->value;
	t->any = true;
}

/* Adds a change. Only the last value within a step is written. */
static void track_add(struct track *t, uint64_t ns, int64_t by)
{
	if (!by)
		return;
	if (t->changed && ns / t->step_ns != t->at_ns / t->step_ns &&
	    (t->value != t->written || !t->any))
		report(t);
	t->value += by;
	t->at_ns = ns;
	t->changed = true;
}

static void track_end(struct track *t)
{
	if (t->changed && (t->value != t->written || !t->any))
		report(t);
}

static uint64_t queued_at(const struct trace *tr, const struct corr_act *act)
{
	const struct corr_call *call = correlate__call(tr->corr, act->call);

	return call && call->start_ns < act->start_ns ? call->start_ns : act->start_ns;
}

static int by_queued(const void *a, const void *b, void *ctx)
{
	const struct trace *tr = ctx;

	return order_u64(queued_at(tr, correlate__act(tr->corr, *(const uint32_t *)a)),
			 queued_at(tr, correlate__act(tr->corr, *(const uint32_t *)b)));
}

static int by_end(const void *a, const void *b, void *ctx)
{
	const struct trace *tr = ctx;

	return order_u64(correlate__act(tr->corr, *(const uint32_t *)a)->end_ns,
			 correlate__act(tr->corr, *(const uint32_t *)b)->end_ns);
}

static int64_t bandwidth_of(const struct corr_act *act)
{
	uint64_t dur_ns = act->end_ns - act->start_ns;
	unsigned __int128 mb_s;

	if (act->type != KPROF_ACTIVITY_GPU_MEMCPY || !dur_ns)
		return 0;
	mb_s = (unsigned __int128)act->bytes * 1000 / dur_ns;
	return mb_s > INT32_MAX ? INT32_MAX : (int64_t)mb_s;
}

/*
 * Merges the three orders, each of numbers of activities. At equal times, ends come first, since
 * they make room, and work is queued before it starts.
 */
struct merge {
	struct bulk ends, queued, starts;
	size_t end, queue, start;
};

static const struct corr_act *act_at(const struct trace *tr, const struct bulk *order, size_t i)
{
	return correlate__act(tr->corr, *(const uint32_t *)bulk__at(order, i));
}

static void merge_step(struct trace *tr, struct merge *m, struct track *queue,
		       struct track *kernels, struct track *bandwidth)
{
	const struct corr_act *ended = act_at(tr, &m->ends, m->end);
	const struct corr_act *queued = NULL, *started = NULL;
	uint64_t queued_ns = UINT64_MAX, started_ns = UINT64_MAX;

	if (m->queue < m->queued.nr) {
		queued = act_at(tr, &m->queued, m->queue);
		queued_ns = queued_at(tr, queued);
	}
	if (m->start < m->starts.nr) {
		started = act_at(tr, &m->starts, m->start);
		started_ns = started->start_ns;
	}
	/* Work must start before it ends, even if it takes no time at all. */
	if (ended->end_ns <= queued_ns && ended->end_ns <= started_ns && m->end < m->start) {
		track_add(queue, ended->end_ns, -1);
		track_add(kernels, ended->end_ns, -(ended->type == KPROF_ACTIVITY_KERNEL));
		track_add(bandwidth, ended->end_ns, -bandwidth_of(ended));
		m->end++;
	} else if (queued && queued_ns <= started_ns) {
		track_add(queue, queued_ns, 1);
		m->queue++;
	} else if (started) { /* always, as whatever has begun ends */
		track_add(kernels, started_ns, started->type == KPROF_ACTIVITY_KERNEL);
		track_add(bandwidth, started_ns, bandwidth_of(started));
		m->start++;
	}
}

/* The activities of a row, or, if there is none, of the device, by start time. */
static int collect(struct trace *tr, const struct trace_device *d, const struct corr_row *row,
		   struct bulk *acts)
{
	if (!row)
		return correlate__of_device(tr->corr, d->pid, d->ordinal, acts);
	if (bulk__resize(acts, row->nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < row->nr; i++)
		*(uint32_t *)bulk__at(acts, i) = correlate__of_row(tr->corr, row, i);
	return 0;
}

static int reorder(struct trace *tr, const struct bulk *acts,
		   int (*compare)(const void *a, const void *b, void *ctx), struct bulk *order)
{
	if (bulk__resize(order, acts->nr))
		return -ENOMEM;
	for (size_t i = 0; i < acts->nr; i++)
		*(uint32_t *)bulk__at(order, i) = *(const uint32_t *)bulk__at(acts, i);
	return bulk__sort(order, 0, order->nr, compare, tr);
}

static int put_tracks(struct trace *tr, const struct track *of, const struct corr_row *row)
{
	struct track queue = *of, kernels = *of, bandwidth = *of;
	struct merge m = {.ends = {.size = sizeof(uint32_t)},
			  .queued = {.size = sizeof(uint32_t)},
			  .starts = {.size = sizeof(uint32_t)}};
	int err = collect(tr, of->device, row, &m.starts);

	if (!err)
		err = reorder(tr, &m.starts, by_end, &m.ends);
	if (!err)
		err = reorder(tr, &m.starts, by_queued, &m.queued);
	if (err)
		error_set(err, NULL, "no memory for the trace's counters");
	queue.name = "Queue depth";
	kernels.name = "Kernels in flight";
	bandwidth.name = "Copy bandwidth (MB/s)";
	while (!err && m.end < m.ends.nr)
		merge_step(tr, &m, &queue, &kernels, &bandwidth);
	track_end(&queue);
	track_end(&kernels);
	track_end(&bandwidth);
	bulk__free(&m.ends);
	bulk__free(&m.queued);
	bulk__free(&m.starts);
	if (!err)
		err = queue.err ? queue.err : kernels.err;
	return err ? err : bandwidth.err;
}

/* Writes the counters of a whole device, then, if it has several streams, those of each stream. */
static int put_device(struct trace *tr, size_t index, struct track *of)
{
	const struct trace_device *d = &tr->devices[index];
	const struct corr_row *row;
	int err;

	of->device = d;
	of->stream = -1;
	err = put_tracks(tr, of, NULL);
	for (uint32_t i = 0; !err && d->streams > 1 && (row = correlate__row(tr->corr, i)); i++) {
		if (tr->device_of_row[i] != index || row->waits)
			continue;
		of->stream = trace__stream(tr, i);
		err = put_tracks(tr, of, row);
	}
	return err;
}

uint64_t trace__counter_step_ns(const struct trace *tr)
{
	const struct kprof_capture_info *info = kprof_capture_info(tr->t);
	uint64_t step_ns = (info->end_mono_ns - info->start_mono_ns) / MAX_STEPS;

	return step_ns < MIN_STEP_NS ? MIN_STEP_NS : step_ns;
}

int trace__counters(struct trace *tr, trace_counter_fn *fn, void *ctx)
{
	struct track track = {.fn = fn, .ctx = ctx, .step_ns = trace__counter_step_ns(tr)};
	int err = 0;

	for (size_t i = 0; i < tr->nr_devices && !err; i++)
		if (tr->devices[i].ordinal != UINT32_MAX)
			err = put_device(tr, i, &track);
	return err;
}
