// SPDX-License-Identifier: BSD-2-Clause
/* Implements kprof_capture_events(): spans in the type of the public library. */
#include "model/timeline/timeline.h"

#include "util/error.h"

struct events {
	const struct kprof_capture *capture;
	int (*fn)(void *ctx, const struct kprof_event *e);
	void *ctx;
};

static int on_span(void *ctx, const struct tl_span *s)
{
	const struct events *events = ctx;
	const struct tl_thread *thread = timeline__thread(events->capture, s->thread);
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
	struct events events = {.capture = c, .fn = fn, .ctx = ctx};

	error_clear();
	return timeline__spans(c, on_span, &events);
}
