// SPDX-License-Identifier: BSD-2-Clause
/*
 * Implements the functions of include/kprof.h for captures: a timeline, in the types of the public
 * library.
 */
#include "model/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"

struct kprof_capture {
	struct timeline *timeline;
};

int kprof_capture_open(const char *path, struct kprof_capture **out)
{
	struct kprof_capture *c;
	int err;

	error_clear();
	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(-ENOMEM, NULL, "%s: out of memory", path);
	err = timeline__open(path, &c->timeline);
	if (err) {
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void kprof_capture_close(struct kprof_capture *c)
{
	if (!c)
		return;
	timeline__close(c->timeline);
	free(c);
}

void kprof_capture_show_interpreter(struct kprof_capture *c, bool show)
{
	timeline__show_interpreter(c->timeline, show);
}

struct timeline *capture__timeline(struct kprof_capture *c)
{
	return c->timeline;
}

const struct kprof_capture_info *kprof_capture_info(const struct kprof_capture *c)
{
	return timeline__info(c->timeline);
}

const struct kprof_source *kprof_capture_source(const struct kprof_capture *c, size_t i)
{
	return timeline__source(c->timeline, i);
}

const char *kprof_capture_meta(const struct kprof_capture *c, const char *key)
{
	return timeline__meta(c->timeline, key);
}

const struct kprof_gap *kprof_capture_gap(const struct kprof_capture *c, size_t i)
{
	return timeline__gap(c->timeline, i);
}

struct events {
	const struct timeline *timeline;
	int (*fn)(void *ctx, const struct kprof_event *e);
	void *ctx;
};

static int on_span(void *ctx, const struct tl_span *s)
{
	const struct events *events = ctx;
	const struct tl_thread *thread = timeline__thread(events->timeline, s->thread);
	struct kprof_event e = {
		.start_mono_ns = s->start_ns,
		.end_mono_ns = s->end_ns,
		.self_ns = s->self_ns,
		.pid = thread->pid,
		.tid = thread->tid,
		.name = s->description->name,
		.overload = s->description->overload,
		.category = s->description->category,
		.source = s->description->source,
		.flags = s->flags,
		.depth = s->depth,
		.id = s->id,
		.parent_id = s->parent_id,
		.parent_name = s->parent_what ? s->parent_what->name : NULL,
	};

	return events->fn(events->ctx, &e);
}

int kprof_capture_events(struct kprof_capture *c, int (*fn)(void *ctx, const struct kprof_event *e),
			 void *ctx)
{
	struct events events = {.timeline = c->timeline, .fn = fn, .ctx = ctx};

	error_clear();
	return timeline__spans(c->timeline, on_span, &events);
}
