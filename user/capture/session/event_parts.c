// SPDX-License-Identifier: BSD-2-Clause
/* The parts that name events, and find what belongs to them (capture/event/event.h). */
#include "capture/session/session.h"

static const struct kprof_python *python_layout(void *ctx, const struct target *t, bool *known)
{
	const struct kprof_session *s = ctx;

	*known = stacks__looks_at(s->stacks, t);
	return stacks__python_layout(s->stacks, t);
}

static const struct kprof_python *any_layout(void *ctx, struct target *t)
{
	const struct kprof_session *s = ctx;

	return thread_names__layout(s->thread_names, t);
}

static int new_modules(struct kprof_session *s)
{
	struct modules_seen_opts opts = {
		.recorder = s->recorder,
		.targets = s->targets,
		.attacher = s->attacher,
		.spans = s->spans,
		.layout = any_layout,
		.ctx = s,
	};

	return s->opts.modules ? modules_seen__new(&opts, &s->modules) : 0;
}

static int new_inside(struct kprof_session *s)
{
	struct inside_opts opts = {
		.targets = s->targets,
		.attacher = s->attacher,
		.name = s->opts.within,
		.of = s->within_of,
		.layout = any_layout,
		.ctx = s,
	};

	if (s->within_of != KPROF_WITHIN_FUNCTIONS && s->within_of != KPROF_WITHIN_MODULES)
		return 0;
	return inside__new(&opts, &s->inside);
}

int event_parts__new(struct kprof_session *s)
{
	struct thread_names_opts names = {
		.recorder = s->recorder,
		.targets = s->targets,
		.threads = s->threads,
		.probes = s->probes,
		.layout = python_layout,
		.reading = &s->reading,
		.ctx = s,
	};
	int err = namer__new(s->recorder, s->targets, &s->filter, &s->namer);

	if (!err && (s->opts.shapes || s->opts.flow))
		err = inputs__new(s->recorder, s->targets, s->namer, s->opts.shapes, &s->inputs);
	if (!err)
		err = calls__new(s->recorder, s->targets, s->probes, &s->calls);
	if (!err)
		err = marks__new(s->recorder, s->spans, &s->filter, &s->marks);
	if (!err && s->opts.alive)
		err = alive__new(s->recorder, &s->alive);
	if (!err)
		err = memory__new(s->recorder, s->targets, s->alive, &s->memory);
	if (!err)
		err = collectives__new(s->recorder, s->targets, &s->rank_pid, &s->collectives);
	if (!err)
		err = thread_names__new(&names, &s->thread_names);
	if (!err)
		err = new_modules(s);
	return err ? err : new_inside(s);
}

void event_parts__free(struct kprof_session *s)
{
	inside__free(s->inside);
	modules_seen__free(s->modules);
	thread_names__free(s->thread_names);
	collectives__free(s->collectives);
	memory__free(s->memory);
	alive__free(s->alive);
	marks__free(s->marks);
	calls__free(s->calls);
	inputs__free(s->inputs);
	namer__free(s->namer);
}

/*
 * An allocation or a free: a moment with arguments. Calls that have returned unseen are ended
 * first, so that it is inside of those that go on.
 */
static int memory_event(struct kprof_session *s, struct thread *th, struct probe *p,
			const struct kprof_wire_begin_args *e)
{
	struct name_hit none = {0};
	struct name_result name;
	uint32_t op = s->alive ? spans__innermost(th->spans) : 0;
	int err = namer__resolve(s->namer, th->target, p, &none, &name);

	if (!err)
		err = memory__event(s->memory, th, p, name.description,
				    recorder__name_of(s->recorder, op), e);
	if (err || !s->alive)
		return err;
	return stacks__begun(s->stacks, th, &e->b.h, alive__latest(s->alive));
}

static bool is_queued(const struct probe *p)
{
	return p->row->collective && p->row->collective->role == CATALOG_COLLECTIVE_QUEUED;
}

bool event_parts__is_aside(const struct probe *p)
{
	return p->row->memory || is_queued(p);
}

int event_parts__aside(struct kprof_session *s, struct thread *th, struct probe *p,
		       const struct kprof_wire_begin_args *e)
{
	int err;

	overhead__hit(s->overhead, e->b.h.id, false, true);
	err = spans__passed(s->spans, th->spans, e->b.h.time_ns, e->b.h.sp);
	if (err)
		return err;
	if (!is_queued(p))
		return memory_event(s, th, p, e);
	recorder__source_at(s->recorder, p->source)->ignored++;
	return collectives__queued(s->collectives, th, e, spans__number(th->spans));
}
