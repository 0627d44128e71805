/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: libcuda's streams and events. */
#include <stdlib.h>

#include "driver.h"
#include "truth.h"

static struct sim_event *events;
static uint64_t next_sync = 1;

/* ---- streams ---- */

struct sim_stream *sim_stream__new(struct sim_context *c, unsigned flags, int priority)
{
	struct sim_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->id = sim_next_id();
	s->context = c;
	s->flags = flags;
	s->priority = priority;
	return s;
}

static void add_stream(struct sim_stream *s)
{
	const struct sim_hooks *hooks = sim_engine__hooks();

	pthread_mutex_lock(&sim_lock);
	s->next = s->context->streams;
	s->context->streams = s;
	pthread_mutex_unlock(&sim_lock);
	truth__say("{\"t\":\"stream\",\"id\":%u,\"context\":%u,\"flags\":%u,\"priority\":%d}",
		   s->id, s->context->id, s->flags, s->priority);
	if (hooks)
		hooks->stream(s->context->id, s->id, (uint32_t)s->priority,
			      s->flags & SIM_STREAM_NON_BLOCKING ? 2 : 1);
}

/* One per thread and context. */
static struct sim_stream *per_thread_stream(struct sim_context *c)
{
	static _Thread_local struct sim_stream *own[16];

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (own[i] && own[i]->context == c)
			return own[i];
		if (own[i])
			continue;
		own[i] = sim_stream__new(c, 0, 0);
		if (own[i])
			add_stream(own[i]);
		return own[i];
	}
	return NULL;
}

struct sim_stream *sim_stream__find(CUstream handle, bool per_thread)
{
	struct sim_context *c = sim_context__current(), *o;
	struct sim_stream *s = NULL;

	if (!c)
		return NULL;
	if (handle == SIM_STREAM_PER_THREAD || (!handle && per_thread))
		return per_thread_stream(c);
	if (!handle || handle == SIM_STREAM_LEGACY)
		return c->legacy;
	pthread_mutex_lock(&sim_lock);
	for (o = sim_contexts; o && !s; o = o->next)
		for (s = o->streams; s && s != handle;)
			s = s->next;
	pthread_mutex_unlock(&sim_lock);
	return s && !s->dead ? s : NULL;
}

/* Begins a call on a stream. */
static int begin(struct sim_call *call, const struct sim_api *api, CUstream handle,
		 struct sim_stream **s)
{
	int err = sim_begin(call, api);

	*s = NULL;
	if (err)
		return err;
	if (!sim_context__current())
		return SIM_INVALID_CONTEXT;
	*s = sim_stream__find(handle, api->per_thread);
	return *s ? 0 : SIM_INVALID_HANDLE;
}

int sim_stream__run(struct sim_stream *s, struct sim_work *w)
{
	w->a.correlation = sim_correlation();
	if (s->capture)
		return sim_capture__add(s, w);
	if (s == s->context->legacy && sim_capture__any(s->context))
		return SIM_CAPTURE_IMPLICIT;
	sim_stream__throttle(s);
	sim_stream__submit(s, w, 0);
	return 0;
}

static int create(const struct sim_api *api, CUstream *stream, unsigned flags, int priority)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_context *c = sim_context__current();
	struct sim_stream *s = NULL;

	if (!err)
		err = !stream || flags & ~SIM_STREAM_NON_BLOCKING ? SIM_INVALID_VALUE
		      : c                                         ? 0
								  : SIM_INVALID_CONTEXT;
	if (!err) {
		s = sim_stream__new(c, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
		err = s ? 0 : SIM_OUT_OF_MEMORY;
	}
	if (!err) {
		add_stream(s);
		*stream = s;
	}
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API(cuStreamCreate, (CUstream * stream, unsigned int flags), create(&api, stream, flags, 0))
SIM_API(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
	create(&api, stream, flags, priority))

static int destroy(const struct sim_api *api, CUstream handle)
{
	struct sim_stream *s;
	struct sim_call call;
	int err = begin(&call, api, handle, &s);

	if (!err && s == s->context->legacy)
		err = SIM_INVALID_HANDLE;
	if (!err)
		s->dead = true; /* what is queued goes on */
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API(cuStreamDestroy_v2, (CUstream stream), destroy(&api, stream))

/* ---- waiting ---- */

static void tell_sync(const struct sim_call *call, struct sim_context *c, struct sim_activity *a)
{
	a->type = SIM_SYNC;
	a->correlation = sim_correlation();
	a->start_ns = call->start_ns;
	a->end_ns = sim_now();
	a->context = c->id;
	a->device = (uint32_t)c->device->ordinal;
	sim_tell(a);
}

static int synchronize(const struct sim_api *api, CUstream handle)
{
	struct sim_stream *s;
	struct sim_call call;
	int err = begin(&call, api, handle, &s);

	if (!err && s->capture)
		err = sim_capture__forbid(s);
	if (!err) {
		sim_stream__wait(s);
		tell_sync(&call, s->context,
			  &(struct sim_activity){.sync_kind = SIM_SYNC_STREAM, .stream = s->id});
	}
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API2(cuStreamSynchronize, _ptsz, (CUstream stream), synchronize(&api, stream))

static void wait_all(struct sim_context *c)
{
	struct sim_stream *s;

	sim_stream__wait(c->legacy);
	pthread_mutex_lock(&sim_lock);
	s = c->streams;
	pthread_mutex_unlock(&sim_lock);
	for (; s; s = s->next)
		sim_stream__wait(s);
}

static int synchronize_context(const struct sim_api *api)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_context *c = sim_context__current();

	if (!err)
		err = c ? 0 : SIM_INVALID_CONTEXT;
	if (!err && sim_capture__any(c))
		err = SIM_CAPTURE_UNSUPPORTED;
	if (!err) {
		wait_all(c);
		tell_sync(&call, c,
			  &(struct sim_activity){.sync_kind = SIM_SYNC_CONTEXT,
						 .stream = UINT32_MAX});
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuCtxSynchronize, (void), synchronize_context(&api))

static int query(const struct sim_api *api, CUstream handle)
{
	struct sim_stream *s;
	struct sim_call call;
	int err = begin(&call, api, handle, &s);

	if (!err && s->capture)
		err = sim_capture__forbid(s);
	if (!err)
		err = sim_stream__tail(s) > sim_now() || s->host_fns ? SIM_NOT_READY : 0;
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API2(cuStreamQuery, _ptsz, (CUstream stream), query(&api, stream))

/* ---- events ---- */

struct sim_event *sim_event__valid(CUevent event)
{
	struct sim_event *e;

	pthread_mutex_lock(&sim_lock);
	for (e = events; e && e != event;)
		e = e->next;
	pthread_mutex_unlock(&sim_lock);
	return e;
}

static int create_event(const struct sim_api *api, CUevent *event, unsigned flags)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_context *c = sim_context__current();
	struct sim_event *e = NULL;

	if (!err)
		err = !event || flags & ~7u ? SIM_INVALID_VALUE : c ? 0 : SIM_INVALID_CONTEXT;
	if (!err) {
		e = calloc(1, sizeof(*e));
		err = e ? 0 : SIM_OUT_OF_MEMORY;
	}
	if (!err) {
		static uint32_t next_event = 1;

		e->id = __atomic_fetch_add(&next_event, 1, __ATOMIC_RELAXED);
		e->flags = flags;
		e->context = c;
		pthread_mutex_lock(&sim_lock);
		e->next = events;
		events = e;
		pthread_mutex_unlock(&sim_lock);
		*event = e;
	}
	return sim_leave(&call, err, "\"event\":%u", e ? e->id : 0);
}
SIM_API(cuEventCreate, (CUevent * event, unsigned int flags), create_event(&api, event, flags))

static int record(const struct sim_api *api, CUevent event, CUstream handle)
{
	struct sim_event *e = sim_event__valid(event);
	struct sim_stream *s;
	struct sim_call call;
	int err = begin(&call, api, handle, &s);

	if (!err)
		err = e ? 0 : SIM_INVALID_HANDLE;
	if (!err && s->capture) {
		sim_capture__record(s, e);
	} else if (!err) {
		uint64_t tail = sim_stream__tail(s), now = sim_now();
		struct sim_activity a = {.type = SIM_EVENT_RECORD};

		pthread_mutex_lock(&sim_lock);
		e->recorded = true;
		e->capture = NULL;
		e->end_ns = tail > now ? tail : now;
		e->stream = s->id;
		e->correlation = sim_correlation();
		e->sync_id = __atomic_add_fetch(&next_sync, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&sim_lock);
		a.correlation = e->correlation;
		a.start_ns = a.end_ns = e->end_ns;
		a.queued_ns = now;
		a.device = (uint32_t)s->context->device->ordinal;
		a.context = s->context->id;
		a.stream = s->id;
		a.event = e->id;
		a.event_sync = e->sync_id;
		sim_tell_later(&a);
	}
	return sim_leave(&call, err, "\"event\":%u,\"stream\":%u", e ? e->id : 0, s ? s->id : 0);
}
SIM_API2(cuEventRecord, _ptsz, (CUevent event, CUstream stream), record(&api, event, stream))
SIM_API2(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int flags),
	 record(&api, event, stream))

static int wait_event(const struct sim_api *api, CUstream handle, CUevent event)
{
	struct sim_event *e = sim_event__valid(event);
	struct sim_stream *s;
	struct sim_call call;
	int err = begin(&call, api, handle, &s);

	if (!err)
		err = e ? 0 : SIM_INVALID_HANDLE;
	if (!err && e->capture) {
		err = sim_capture__wait(s, e);
	} else if (!err) {
		pthread_mutex_lock(&sim_lock);
		if (e->recorded && e->end_ns > s->tail_ns)
			s->tail_ns = e->end_ns;
		pthread_mutex_unlock(&sim_lock);
		tell_sync(&call, s->context,
			  &(struct sim_activity){.sync_kind = SIM_SYNC_STREAM_WAIT_EVENT,
						 .stream = s->id,
						 .event = e->id});
	}
	return sim_leave(&call, err, "\"event\":%u,\"stream\":%u", e ? e->id : 0, s ? s->id : 0);
}
SIM_API2(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int flags),
	 wait_event(&api, stream, event))

static int query_event(const struct sim_api *api, CUevent event)
{
	struct sim_event *e = sim_event__valid(event);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = !e                                     ? SIM_INVALID_HANDLE
		      : e->recorded && e->end_ns > sim_now() ? SIM_NOT_READY
							     : 0;
	return sim_leave(&call, err, "\"event\":%u", e ? e->id : 0);
}
SIM_API(cuEventQuery, (CUevent event), query_event(&api, event))

static int synchronize_event(const struct sim_api *api, CUevent event)
{
	struct sim_event *e = sim_event__valid(event);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = e ? 0 : SIM_INVALID_HANDLE;
	if (!err) {
		sim_wait_until(e->recorded ? e->end_ns : 0);
		sim_engine__drain();
		tell_sync(&call, e->context,
			  &(struct sim_activity){.sync_kind = SIM_SYNC_EVENT,
						 .stream = e->stream,
						 .event = e->id});
	}
	return sim_leave(&call, err, "\"event\":%u", e ? e->id : 0);
}
SIM_API(cuEventSynchronize, (CUevent event), synchronize_event(&api, event))

static int destroy_event(const struct sim_api *api, CUevent event)
{
	struct sim_event *e = sim_event__valid(event);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = e ? 0 : SIM_INVALID_HANDLE;
	if (!err) {
		struct sim_event **p = &events;

		pthread_mutex_lock(&sim_lock);
		while (*p != e)
			p = &(*p)->next;
		*p = e->next; /* not freed: another thread may be about to find it no more */
		pthread_mutex_unlock(&sim_lock);
	}
	return sim_leave(&call, err, "\"event\":%u", e ? e->id : 0);
}
SIM_API(cuEventDestroy_v2, (CUevent event), destroy_event(&api, event))

static int elapsed(const struct sim_api *api, float *ms, CUevent start, CUevent end)
{
	struct sim_event *a = sim_event__valid(start), *b = sim_event__valid(end);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = !a || !b || !a->recorded || !b->recorded ||
				      (a->flags | b->flags) & SIM_EVENT_DISABLE_TIMING
			      ? SIM_INVALID_HANDLE
			      : 0;
	if (!err)
		err = a->end_ns > sim_now() || b->end_ns > sim_now() ? SIM_NOT_READY : 0;
	if (!err)
		*ms = (float)((double)((int64_t)(b->end_ns - a->end_ns)) / 1e6);
	return sim_leave(&call, err, NULL);
}
SIM_API(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), elapsed(&api, ms, start, end))
SIM_API(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end),
	elapsed(&api, ms, start, end))
