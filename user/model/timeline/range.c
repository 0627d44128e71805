// SPDX-License-Identifier: BSD-2-Clause
/*
 * A selected part of the recorded time: kprof_capture_select(). The passes over the file leave out
 * what has no part in it (spans.c, details.c), and the window is the range.
 */
#include "model/timeline/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/bulk.h"
#include "util/error.h"

#define TIME_BYTES 32

void timeline__cut(struct kprof_capture *t, bool cut)
{
	t->range.cut = cut;
}

bool timeline__part(const struct kprof_capture *t, uint64_t *start_ns, uint64_t *end_ns,
		    uint32_t *beyond)
{
	const struct kprof_selection *s = &t->range.selection;

	*beyond = tl_beyond(t, *start_ns, *end_ns);
	if (!tl_overlaps(t, *start_ns, *end_ns))
		return false;
	if (*beyond & TL_BEFORE)
		*start_ns = s->from_mono_ns;
	if (*beyond & TL_AFTER)
		*end_ns = s->to_mono_ns;
	return true;
}

uint64_t timeline__recorded_from(const struct kprof_capture *t)
{
	return t->start_ns;
}

void timeline__extent(const struct kprof_capture *t, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = t->range.set ? t->range.extent_start_ns : t->start_ns;
	*end_ns = t->range.set ? t->range.extent_end_ns : t->end_ns;
}

const struct kprof_selection *kprof_capture_selection(const struct kprof_capture *t)
{
	return t->range.set ? &t->range.selection : NULL;
}

/* ---- which range ---- */

static const char *seconds(char *out, uint64_t ns)
{
	snprintf(out, TIME_BYTES, "%" PRIu64 ".%06" PRIu64 "s", (uint64_t)(ns / NSEC_PER_SEC),
		 (uint64_t)(ns % NSEC_PER_SEC / 1000));
	return out;
}

/* A time since the begin of the recording, or before its end, as one of the clock. */
static uint64_t mono_of(const struct kprof_capture *t, int64_t ns)
{
	uint64_t window_ns = t->end_ns - t->start_ns;
	uint64_t back_ns = ns < 0 ? -(uint64_t)ns : 0;

	if (ns < 0)
		return back_ns < window_ns ? t->end_ns - back_ns : t->start_ns;
	return (uint64_t)ns < window_ns ? t->start_ns + (uint64_t)ns : t->end_ns;
}

static int take_times(const struct kprof_capture *t, const struct kprof_range *range,
		      struct kprof_selection *out)
{
	char from[TIME_BYTES], to[TIME_BYTES], hint[128], all[TIME_BYTES];

	out->from_mono_ns = range->has_from ? mono_of(t, range->from_ns) : t->start_ns;
	out->to_mono_ns = range->has_to ? mono_of(t, range->to_ns) : t->end_ns;
	if (out->from_mono_ns < out->to_mono_ns)
		return 0;
	snprintf(hint, sizeof(hint), "the recording goes from 0 to %s",
		 seconds(all, t->end_ns - t->start_ns));
	if (range->has_from && (!range->has_to || out->from_mono_ns == t->end_ns))
		return error_set_usage(-EINVAL, hint, "the range begins where %s has ended",
				       t->path);
	if (range->has_to && out->to_mono_ns == t->start_ns)
		return error_set_usage(-EINVAL, hint, "the range ends where %s begins", t->path);
	return error_set_usage(-EINVAL, hint,
			       "the range is empty: it begins at %s and ends at %s of %s",
			       seconds(from, out->from_mono_ns - t->start_ns),
			       seconds(to, out->to_mono_ns - t->start_ns), t->path);
}

static const struct tl_step *step_at(const struct bulk *steps, size_t i)
{
	return bulk__at(steps, i);
}

static int no_such_steps(const struct kprof_capture *t, const struct kprof_range *range,
			 const struct bulk *steps)
{
	uint64_t least = UINT64_MAX, most = 0;
	char hint[128];

	if (!steps->nr)
		return error_set_usage(
			-EINVAL,
			"a step is an annotation such as ProfilerStep#7, train_step or Optimizer.step#SGD.step",
			"%s has no steps", t->path);
	for (size_t i = 0; i < steps->nr; i++) {
		uint64_t number = step_at(steps, i)->number;

		least = number < least ? number : least;
		most = number > most ? number : most;
	}
	snprintf(hint, sizeof(hint), "it has steps %" PRIu64 " to %" PRIu64, least, most);
	return error_set_usage(-EINVAL, hint, "%s has no step from %" PRIu64 " to %" PRIu64,
			       t->path, range->first_step, range->last_step);
}

/* From the first of the steps to the end of the last, of whichever process. */
static int take_steps(struct kprof_capture *t, const struct kprof_range *range,
		      struct kprof_selection *out)
{
	struct bulk steps = {0};
	int err = timeline__steps(t, &steps);

	out->from_mono_ns = UINT64_MAX;
	out->to_mono_ns = 0;
	for (size_t i = 0; !err && i < steps.nr; i++) {
		const struct tl_step *s = step_at(&steps, i);

		if (s->number < range->first_step || s->number > range->last_step)
			continue;
		if (s->start_ns < out->from_mono_ns)
			out->from_mono_ns = s->start_ns;
		if (s->end_ns > out->to_mono_ns)
			out->to_mono_ns = s->end_ns;
	}
	if (!err && out->from_mono_ns >= out->to_mono_ns)
		err = no_such_steps(t, range, &steps);
	bulk__free(&steps);
	return err;
}

/* ---- what is in it ---- */

static void stretch(struct tl_range *r, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < r->extent_start_ns)
		r->extent_start_ns = start_ns;
	if (end_ns > r->extent_end_ns)
		r->extent_end_ns = end_ns;
}

static int count_span(void *ctx, const struct tl_span *s, void *data)
{
	struct tl_range *r = ctx;

	r->selection.events++;
	stretch(r, s->whole_start_ns, s->whole_end_ns);
	return 0;
}

/* All of them come: see timeline__cut(). */
static int count_detail(void *ctx, const struct store_record *r)
{
	struct kprof_capture *t = ctx;
	struct kprof_selection *s = &t->range.selection;
	bool activity = r->type == STORE_ACTIVITY;
	uint64_t start_ns = activity ? r->activity.start_ns : r->api.start_ns;
	uint64_t end_ns = activity ? r->activity.end_ns : r->api.end_ns;

	if (!activity && r->type != STORE_API)
		return 0;
	if (!tl_overlaps(t, start_ns, end_ns)) {
		s->activities_outside += activity;
		return 0;
	}
	s->activities += activity;
	stretch(&t->range, start_ns, end_ns);
	return 0;
}

static int count_sample(void *ctx, const struct store_record *r)
{
	struct kprof_selection *s = ctx;

	s->samples++;
	return 0;
}

static int count(struct kprof_capture *t)
{
	static const struct tl_walker walker = {.end = count_span};
	struct kprof_selection *s = &t->range.selection;
	int err = timeline__walk(t, &walker, &t->range);

	if (!err) {
		t->range.cut = true;
		err = timeline__details(t, 0, count_detail, t);
		t->range.cut = false;
	}
	if (!err)
		err = timeline__samples(t, 0, count_sample, s);
	s->events_outside = t->info.events - s->events;
	s->samples_outside = t->info.nr_samples - s->samples;
	return err;
}

int kprof_capture_select(struct kprof_capture *t, const struct kprof_range *user)
{
	struct kprof_range range = {0};
	struct tl_range *r = &t->range;
	int err;

	error_clear();
	*r = (struct tl_range){0};
	tl_set_window(t);
	if (!user)
		return 0;
	memcpy(&range, user, user->sz < sizeof(range) ? user->sz : sizeof(range));
	err = range.steps ? take_steps(t, &range, &r->selection)
			  : take_times(t, &range, &r->selection);
	if (err)
		return err;
	r->set = true;
	r->extent_start_ns = r->selection.from_mono_ns;
	r->extent_end_ns = r->selection.to_mono_ns;
	r->from_ns = r->extent_start_ns > t->start_ns ? r->extent_start_ns : 0;
	r->upto_ns = r->extent_end_ns < t->end_ns ? r->extent_end_ns - 1 : UINT64_MAX;
	tl_set_window(t);
	err = count(t);
	if (!err)
		return 0;
	*r = (struct tl_range){0};
	tl_set_window(t);
	return err;
}
