// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams what a capture has beside spans: activities of devices, calls as the devices' tool
 * interfaces saw them, instants, counters, samples.
 */
#include "model/timeline/impl.h"

#include <errno.h>

#include "util/error.h"

static int changed(const struct timeline *t)
{
	return error_set(-EIO, "read it again once nothing writes to it",
			 "%s: it changed while it was being read", t->path);
}

/*
 * Checks that what the record refers to exists (records may have been added to the file since the
 * tables were read), and puts its begin and end in order.
 */
static bool settle(const struct timeline *t, struct store_record *r)
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
		return r->sample.thread < t->threads.nr &&
		       r->sample.stack <= timeline__nr_stacks(t);
	default:
		return true;
	}
}

static bool is_detail(enum store_type type)
{
	return type == STORE_ACTIVITY || type == STORE_API || type == STORE_INSTANT ||
	       type == STORE_COUNTER || type == STORE_SAMPLE;
}

/*
 * After a pass through the whole file: a damaged chunk that was skipped when the tables were read
 * may be found only now.
 */
static void streamed(struct timeline *t, uint64_t samples)
{
	struct store_reader_info info;

	store_reader__info(t->reader, &info);
	t->info.nr_samples = samples;
	if (t->info.complete && !info.complete) {
		t->info.complete = false;
		t->info.lost_bytes = info.lost_bytes;
	}
}

static int stream(struct timeline *t, int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	struct store_record r;
	uint64_t samples = 0;
	int err;

	store_reader__rewind(t->reader, STORE_READ_DETAILS);
	while ((err = store_reader__next(t->reader, &r)) > 0) {
		if (!is_detail(r.type))
			continue;
		if (!settle(t, &r))
			return changed(t);
		samples += r.type == STORE_SAMPLE;
		err = fn(ctx, &r);
		if (err)
			return err;
	}
	if (!err)
		streamed(t, samples);
	return err;
}

static int stream_details(struct timeline *t, int (*fn)(void *ctx, const struct store_record *r),
			  void *ctx)
{
	int err;

	if (t->walking)
		return error_set(-EBUSY, "open the capture a second time",
				 "%s: its spans are being read already", t->path);
	t->walking = true;
	err = stream(t, fn, ctx);
	t->walking = false;
	return err;
}

/* The caller of a pass: one kind of pass streams samples, the other everything else. */
struct details {
	int (*fn)(void *ctx, const struct store_record *r);
	int (*on_sample)(void *ctx, const struct tl_sample *s);
	void *ctx;
};

static int beside_samples(void *ctx, const struct store_record *r)
{
	const struct details *d = ctx;

	return r->type == STORE_SAMPLE ? 0 : d->fn(d->ctx, r);
}

int timeline__details(struct timeline *t, int (*fn)(void *ctx, const struct store_record *r),
		      void *ctx)
{
	struct details d = {.fn = fn, .ctx = ctx};

	return stream_details(t, beside_samples, &d);
}

static int samples_alone(void *ctx, const struct store_record *r)
{
	const struct details *d = ctx;
	struct tl_sample s;

	if (r->type != STORE_SAMPLE)
		return 0;
	s = (struct tl_sample){
		.time_ns = r->sample.time_ns,
		.thread = r->sample.thread,
		.stack = r->sample.stack,
		.weight_ns = r->sample.weight_ns,
		.flags = r->sample.flags,
	};
	return d->on_sample(d->ctx, &s);
}

int timeline__samples(struct timeline *t, int (*fn)(void *ctx, const struct tl_sample *s),
		      void *ctx)
{
	struct details d = {.on_sample = fn, .ctx = ctx};

	return t->info.nr_samples ? stream_details(t, samples_alone, &d) : 0;
}
