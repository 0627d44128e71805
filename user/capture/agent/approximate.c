// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/approximate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "kprof/activity.h"
#include "util/util.h"

/*
 * Programs create and destroy events all the time: if there are more than this, the oldest is
 * forgotten.
 */
#define MAX_EVENTS 65536
#define MAX_STREAMS 65536

/*
 * Handle of the default stream, besides 0 (cudaStreamLegacy). Handle 2, the default stream of a
 * thread, is a different stream.
 */
#define STREAM_LEGACY 1

enum { LAUNCHES, COPIES, SETS, NR_KINDS };

struct stream {
	UT_hash_handle hh;
	uint64_t handle;
	uint32_t number; /* in traces, from 1 for each process */
	/* begin of the first call that was not waited for yet; 0: none */
	uint64_t start_ns;
	uint64_t launched[NR_KINDS]; /* number of calls so far, by kind */
	uint64_t reported[NR_KINDS]; /* how many of these were waited for */
	uint64_t recorded_ns;        /* when the latest event was recorded */
	uint64_t after_record_ns;    /* begin of the first call after that; 0: none */
};

struct event {
	UT_hash_handle hh;
	uint64_t handle;
	uint64_t stream;             /* its handle */
	uint64_t launched[NR_KINDS]; /* the stream's .launched when the event was recorded */
	uint64_t time_ns;
};

struct approximate {
	struct store_writer *store;
	uint32_t pid;
	struct stream *streams;
	struct event *events;
	uint32_t name, kinds[NR_KINDS], handle, reason; /* string ids */
};

static uint32_t string(struct approximate *a, const char *text)
{
	return store_writer__string(a->store, text, strlen(text));
}

int approximate__new(struct store_writer *store, uint32_t pid, struct approximate **out)
{
	struct approximate *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->store = store;
	a->pid = pid;
	a->name = string(a, "device work (approximate)");
	a->kinds[LAUNCHES] = string(a, "launches");
	a->kinds[COPIES] = string(a, "copies");
	a->kinds[SETS] = string(a, "sets");
	a->handle = string(a, "stream handle");
	a->reason = string(a, "reason");
	*out = a;
	return 0;
}

static void remove_event(struct approximate *a, struct event *e)
{
	HASH_DEL(a->events, e);
	free(e);
}

void approximate__free(struct approximate *a)
{
	struct stream *s, *next_s;
	struct event *e, *next_e;

	if (!a)
		return;
	HASH_ITER (hh, a->streams, s, next_s) {
		HASH_DEL(a->streams, s);
		free(s);
	}
	HASH_ITER (hh, a->events, e, next_e)
		remove_event(a, e);
	free(a);
}

/* The default stream has two handles. */
static uint64_t stream_handle(uint64_t handle)
{
	return handle == STREAM_LEGACY ? 0 : handle;
}

static struct stream *find_stream(struct approximate *a, uint64_t handle)
{
	struct stream *s;

	HASH_FIND(hh, a->streams, &handle, sizeof(handle), s);
	return s;
}

/* Finds or adds a stream. NULL: no memory, or too many streams. */
static struct stream *stream_at(struct approximate *a, uint64_t handle)
{
	struct stream *s = find_stream(a, handle);

	if (s || HASH_COUNT(a->streams) >= MAX_STREAMS)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->handle = handle;
	s->number = HASH_COUNT(a->streams) + 1;
	HASH_ADD(hh, a->streams, handle, sizeof(s->handle), s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

void approximate__work(struct approximate *a, enum device_role role, uint64_t stream,
		       uint64_t time_ns)
{
	struct stream *s = stream_at(a, stream_handle(stream));

	if (!s)
		return;
	if (!s->start_ns)
		s->start_ns = time_ns;
	if (!s->after_record_ns)
		s->after_record_ns = time_ns;
	s->launched[role == DEVICE_ROLE_LAUNCH ? LAUNCHES
		    : role == DEVICE_ROLE_SET  ? SETS
					       : COPIES]++;
}

int approximate__record(struct approximate *a, uint64_t event, uint64_t stream, uint64_t time_ns)
{
	struct stream *s = find_stream(a, stream_handle(stream));
	struct event *e;

	HASH_FIND(hh, a->events, &event, sizeof(event), e);
	if (!e) {
		if (HASH_COUNT(a->events) >= MAX_EVENTS)
			remove_event(a, a->events);
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		e->handle = event;
		HASH_ADD(hh, a->events, handle, sizeof(e->handle), e);
		if (!e->hh.tbl) {
			free(e);
			return -ENOMEM;
		}
	}
	e->stream = stream_handle(stream);
	e->time_ns = time_ns;
	memset(e->launched, 0, sizeof(e->launched));
	if (s) {
		memcpy(e->launched, s->launched, sizeof(e->launched));
		s->recorded_ns = time_ns;
		s->after_record_ns = 0;
	}
	return 0;
}

/* Reports work: the calls of this stream up to these numbers were waited for. */
static int report(struct approximate *a, struct stream *s, const uint64_t *launched,
		  uint64_t end_ns, const char *reason)
{
	struct store_attr attrs[NR_KINDS + 2];
	struct store_record r = {
		.type = STORE_ACTIVITY,
		.activity =
			{
				.pid = a->pid,
				.type = KPROF_ACTIVITY_GPU_APPROXIMATE,
				.name = a->name,
				.stream = s->number,
				.start_ns = s->start_ns,
				.end_ns = end_ns > s->start_ns ? end_ns : s->start_ns,
			},
		.attrs = attrs,
	};

	for (size_t i = 0; i < NR_KINDS; i++)
		if (launched[i] > s->reported[i])
			attrs[r.nr_attrs++] = (struct store_attr){a->kinds[i], STORE_ATTR_U64,
								  launched[i] - s->reported[i]};
	if (!r.nr_attrs)
		return 0;
	attrs[r.nr_attrs++] = (struct store_attr){a->handle, STORE_ATTR_HEX, s->handle};
	attrs[r.nr_attrs++] = (struct store_attr){a->reason, STORE_ATTR_STRING, string(a, reason)};
	memcpy(s->reported, launched, sizeof(s->reported));
	return store_writer__put(a->store, &r);
}

static int waited_for_stream(struct approximate *a, struct stream *s, uint64_t time_ns,
			     const char *reason)
{
	int err = s->start_ns ? report(a, s, s->launched, time_ns, reason) : 0;

	s->start_ns = 0;
	return err;
}

static int waited_for_event(struct approximate *a, uint64_t event, uint64_t time_ns,
			    const char *reason)
{
	struct stream *s;
	struct event *e;
	int err;

	HASH_FIND(hh, a->events, &event, sizeof(event), e);
	s = e ? find_stream(a, e->stream) : NULL;
	/* Another wait has reported this work already, since the event was recorded. */
	if (!s || !s->start_ns || s->start_ns > e->time_ns)
		return 0;
	err = report(a, s, e->launched, time_ns, reason);
	if (!memcmp(s->launched, e->launched, sizeof(s->launched)))
		s->start_ns = 0;
	else /* Work queued after an older event began after that event, as far as is known. */
		s->start_ns = s->recorded_ns == e->time_ns ? s->after_record_ns : e->time_ns + 1;
	return err;
}

int approximate__waited(struct approximate *a, enum device_role role, uint64_t handle,
			uint64_t time_ns, const char *reason)
{
	struct stream *s;
	int err = 0;

	if (role == DEVICE_ROLE_WAIT_EVENT)
		return waited_for_event(a, handle, time_ns, reason);
	if (role != DEVICE_ROLE_WAIT_DEVICE) {
		s = find_stream(a, stream_handle(handle));
		return s ? waited_for_stream(a, s, time_ns, reason) : 0;
	}
	for (s = a->streams; s && !err; s = s->hh.next)
		err = waited_for_stream(a, s, time_ns, reason);
	return err;
}
