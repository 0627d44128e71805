/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: the device model; see engine.h. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

/* Each stream has a channel of its own; the numbers of types are CUPTI's. */
enum { FIRST_CHANNEL = 8, CHANNEL_COMPUTE = 1, CHANNEL_COPY = 2 };

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
struct sim_device sim_devices[SIM_MAX_DEVICES];
int sim_nr_devices;
struct sim_context *sim_contexts;
struct sim_settings sim_settings;

/* What is queued, as a heap by the end of it. */
struct pending {
	uint64_t end_ns, order;
	struct sim_activity a;
	CUhostFn fn;
	void *arg;
	struct sim_stream *stream;
	struct pending *next;
};
static struct pending **heap;
static size_t nr_heap, max_heap;
static uint64_t next_order;
static struct pending *host_fns, **host_fns_tail = &host_fns; /* due */

static pthread_mutex_t emit_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before sim_lock */
static pthread_cond_t wake, host_fn_done;
static uint64_t sleeps_until_ns;
static const struct sim_hooks *hooks;
static bool started, stopped, forked;

uint64_t sim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sim_env(const char *name, uint64_t otherwise)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), "KPROF_SIM_%s", name);
	value = getenv(full);
	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

uint32_t sim_next_id(void)
{
	static uint32_t next = 13;

	return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

/* ---- the heap ---- */

static bool before(const struct pending *a, const struct pending *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->order < b->order;
}

static void push(struct pending *p)
{
	size_t i = nr_heap++;

	if (nr_heap > max_heap) {
		max_heap = max_heap ? max_heap * 2 : 1024;
		heap = realloc(heap, max_heap * sizeof(*heap));
		if (!heap)
			abort();
	}
	p->order = next_order++;
	for (; i && before(p, heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = p;
	if (p->end_ns < sleeps_until_ns)
		pthread_cond_signal(&wake);
}

static struct pending *pop(void)
{
	struct pending *top = heap[0], *last = heap[--nr_heap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < nr_heap) {
		if (child + 1 < nr_heap && before(heap[child + 1], heap[child]))
			child++;
		if (before(last, heap[child]))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return top;
}

/* ---- telling what is finished ---- */

static const char *const fates[] = {"off", "recorded", "dropped", "incomplete"};
static const char *const copy_kinds[] = {"?",    "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					 "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
static const char *const memories[] = {"?", "pageable", "pinned", "device", "array", "managed"};
static const char *const syncs[] = {"?", "event", "stream_wait_event", "stream", "context"};

/* What only kernels, copies and sets have: by which channel they came to the device. */
static const char *channel_of(const struct sim_activity *a, char *text, size_t bytes)
{
	snprintf(text, bytes, "\"channel\":%u,\"channel_type\":%u,\"priority\":%d", a->channel,
		 a->channel_type, a->priority);
	return text;
}

static void write_truth(const struct sim_activity *a, enum sim_fate fate)
{
	char head[512], name[1024], channel[96];

	if (!truth__on())
		return;
	snprintf(
		head, sizeof(head),
		"\"start\":%lu,\"end\":%lu,\"queued\":%lu,\"corr\":%u,\"device\":%u,\"context\":%u,"
		"\"stream\":%d,\"graph\":%u,\"node\":%lu,\"cupti\":\"%s\"",
		a->start_ns, a->end_ns, a->queued_ns, a->correlation, a->device, a->context,
		(int)a->stream, a->graph, a->node, fates[fate]);
	switch (a->type) {
	case SIM_KERNEL:
		truth__say(
			"{\"t\":\"kernel\",\"name\":\"%s\",%s,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
			"\"static_shared\":%u,\"dynamic_shared\":%u,\"registers\":%u,%s}",
			truth__escape(name, sizeof(name), a->name), head, a->grid[0], a->grid[1],
			a->grid[2], a->block[0], a->block[1], a->block[2], a->static_shared,
			a->dynamic_shared, a->registers, channel_of(a, channel, sizeof(channel)));
		break;
	case SIM_COPY:
		truth__say(
			"{\"t\":\"copy\",\"kind\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"bytes\":%lu,"
			"\"async\":%s,\"from_device\":%u,\"from_context\":%u,"
			"\"to_device\":%u,\"to_context\":%u,%s,%s}",
			copy_kinds[a->copy_kind], memories[a->from], memories[a->to], a->bytes,
			a->async ? "true" : "false", a->from_device, a->from_context, a->to_device,
			a->to_context, head, channel_of(a, channel, sizeof(channel)));
		break;
	case SIM_SET:
		truth__say("{\"t\":\"set\",\"to\":\"%s\",\"bytes\":%lu,\"value\":%u,%s,%s}",
			   memories[a->to], a->bytes, a->value, head,
			   channel_of(a, channel, sizeof(channel)));
		break;
	case SIM_SYNC:
		truth__say("{\"t\":\"sync\",\"kind\":\"%s\",\"event\":%u,%s}", syncs[a->sync_kind],
			   a->event, head);
		break;
	case SIM_EVENT_RECORD:
		truth__say("{\"t\":\"event\",\"event\":%u,%s}", a->event, head);
		break;
	case SIM_GRAPH:
		truth__say("{\"t\":\"graph\",%s}", head);
		break;
	case SIM_HOST_FN:
		truth__say("{\"t\":\"host_fn\",%s}", head);
		break;
	case SIM_NOTHING:
		break;
	}
}

static void emit(const struct sim_activity *a)
{
	const struct sim_hooks *h = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);

	write_truth(a, h ? h->finished(a) : SIM_FATE_OFF);
}

void sim_tell(const struct sim_activity *a)
{
	pthread_mutex_lock(&emit_lock);
	if (!stopped)
		emit(a);
	pthread_mutex_unlock(&emit_lock);
}

void sim_engine__drain(void)
{
	uint64_t now = sim_now();

	pthread_mutex_lock(&emit_lock);
	while (!stopped) {
		struct pending *p = NULL;

		pthread_mutex_lock(&sim_lock);
		if (nr_heap && heap[0]->end_ns <= now)
			p = pop();
		pthread_mutex_unlock(&sim_lock);
		if (!p)
			break;
		emit(&p->a);
		if (!p->fn) {
			free(p);
			continue;
		}
		pthread_mutex_lock(&sim_lock);
		p->next = NULL;
		*host_fns_tail = p;
		host_fns_tail = &p->next;
		pthread_cond_signal(&wake);
		pthread_mutex_unlock(&sim_lock);
	}
	pthread_mutex_unlock(&emit_lock);
}

/* Without locks: it may queue nothing (CUDA's rule), but it may take its time. */
static void run_host_fns(void)
{
	struct pending *p;

	pthread_mutex_lock(&sim_lock);
	while ((p = host_fns)) {
		host_fns = p->next;
		if (!host_fns)
			host_fns_tail = &host_fns;
		pthread_mutex_unlock(&sim_lock);
		p->fn(p->arg);
		pthread_mutex_lock(&sim_lock);
		p->stream->host_fns--;
		pthread_cond_broadcast(&host_fn_done);
		free(p);
	}
	pthread_mutex_unlock(&sim_lock);
}

static void *engine(void *arg)
{
	pthread_setname_np(pthread_self(), "cuda-EvtHandlr");
	for (;;) {
		uint64_t until;

		sim_engine__drain();
		run_host_fns();
		pthread_mutex_lock(&sim_lock);
		if (!host_fns && (!nr_heap || heap[0]->end_ns > sim_now())) {
			until = nr_heap ? heap[0]->end_ns : UINT64_MAX;
			sleeps_until_ns = until;
			if (until == UINT64_MAX) {
				pthread_cond_wait(&wake, &sim_lock);
			} else {
				struct timespec t = to_timespec(until);

				pthread_cond_timedwait(&wake, &sim_lock, &t);
			}
			sleeps_until_ns = 0;
		}
		pthread_mutex_unlock(&sim_lock);
		sim_wait_until(sim_now() + sim_settings.grain_ns);
	}
	return arg;
}

/* ---- life ---- */

void sim_engine__in_child(void)
{
	pthread_mutex_init(&sim_lock, NULL);
	pthread_mutex_init(&emit_lock, NULL);
	forked = started;
}

bool sim_engine__forked(void)
{
	return forked;
}

static unsigned at_most(uint64_t value, unsigned max)
{
	return !value ? 1 : value > max ? max : (unsigned)value;
}

void sim_read_settings(void)
{
	sim_settings = (struct sim_settings){
		.launch_ns = sim_env("LAUNCH_NS", 3000),
		.gap_ns = sim_env("GAP_NS", 400),
		/* Ends that lie closer together than this are told together. */
		.grain_ns = sim_env("GRAIN_NS", 200000),
		.api_ns = sim_env("API_NS", 0),
		.copy_ns = sim_env("COPY_NS", 1500),
		.copy_rate = sim_env("COPY_RATE", 0),
		.slots = at_most(sim_env("SLOTS", 16), SIM_MAX_SLOTS),
		.queue = at_most(sim_env("QUEUE", SIM_QUEUE), SIM_QUEUE),
		.own_correlation = sim_env("OWN_CORRELATION", 0),
	};
}

int sim_engine__start(void)
{
	pthread_condattr_t attr;
	pthread_attr_t detached;
	pthread_t thread;
	int err;

	if (started)
		return 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_cond_init(&host_fn_done, &attr);
	started = true;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &detached, engine, NULL);
	pthread_attr_destroy(&detached);
	return -err;
}

void sim_engine__stop(void)
{
	if (!started || forked)
		return;
	sim_engine__drain();
	pthread_mutex_lock(&emit_lock);
	stopped = true;
	pthread_mutex_unlock(&emit_lock);
}

void sim_engine__set_hooks(const struct sim_hooks *h)
{
	pthread_mutex_lock(&emit_lock); /* none runs in the middle of emit() any more */
	__atomic_store_n(&hooks, h, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&emit_lock);
}

const struct sim_hooks *sim_engine__hooks(void)
{
	return __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
}

/* ---- queueing ---- */

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * With sim_lock. The legacy stream waits for every blocking stream of its context, and they for it.
 */
static uint64_t tail_locked(const struct sim_stream *s)
{
	const struct sim_stream *legacy = s->context->legacy, *o;
	uint64_t tail = s->tail_ns;

	if (s == legacy) {
		for (o = s->context->streams; o; o = o->next)
			if (!(o->flags & SIM_STREAM_NON_BLOCKING))
				tail = max64(tail, o->tail_ns);
	} else if (!(s->flags & SIM_STREAM_NON_BLOCKING)) {
		tail = max64(tail, legacy->tail_ns);
	}
	return tail;
}

uint64_t sim_stream__tail(struct sim_stream *s)
{
	uint64_t tail;

	pthread_mutex_lock(&sim_lock);
	tail = tail_locked(s);
	pthread_mutex_unlock(&sim_lock);
	return tail;
}

/* Where on the device the work goes, and when that is free. */
static uint64_t *lane_of(struct sim_device *d, const struct sim_activity *a)
{
	uint64_t *best = &d->slot_ns[0];
	unsigned i;

	if (a->type == SIM_COPY)
		return &d->lane_ns[a->copy_kind == 1   ? SIM_LANE_HTOD
				   : a->copy_kind == 2 ? SIM_LANE_DTOH
						       : SIM_LANE_DTOD];
	if (a->type != SIM_KERNEL)
		return NULL;
	for (i = 1; i < sim_settings.slots; i++)
		if (d->slot_ns[i] < *best)
			best = &d->slot_ns[i];
	return best;
}

static void count_queued(struct sim_stream *s, uint64_t now)
{
	while (s->queued && s->ends[s->queued_first] <= now) {
		s->queued_first = (s->queued_first + 1) % SIM_QUEUE;
		s->queued--;
	}
}

void sim_stream__throttle(struct sim_stream *s)
{
	uint64_t until = 0;

	pthread_mutex_lock(&sim_lock);
	count_queued(s, sim_now());
	if (s->queued >= sim_settings.queue)
		until = s->ends[s->queued_first];
	pthread_mutex_unlock(&sim_lock);
	if (until)
		sim_wait_until(until);
}

static void queue(struct sim_stream *s, const struct sim_work *w)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->a = w->a;
	p->end_ns = w->a.end_ns;
	p->fn = w->fn;
	p->arg = w->arg;
	p->stream = s;
	if (w->fn)
		s->host_fns++;
	push(p);
	if (s->queued < SIM_QUEUE)
		s->ends[(s->queued_first + s->queued++) % SIM_QUEUE] = p->end_ns;
}

/* Without locks: CUPTI may ask its client for a buffer. */
static void announce(struct sim_activity *a)
{
	const struct sim_hooks *h = sim_engine__hooks();

	a->fate = SIM_FATE_OFF;
	a->slot = NULL;
	if (h)
		h->queued(a);
}

void sim_stream__submit(struct sim_stream *s, struct sim_work *w, uint64_t after_ns)
{
	uint64_t now, *lane;

	sim_work__do(w);
	w->a.device = (uint32_t)s->context->device->ordinal;
	w->a.context = s->context->id;
	w->a.stream = s->id;
	w->a.priority = s->priority;
	w->a.channel = FIRST_CHANNEL + s->id;
	w->a.channel_type = w->a.type == SIM_COPY ? CHANNEL_COPY : CHANNEL_COMPUTE;
	announce(&w->a);
	pthread_mutex_lock(&sim_lock);
	now = sim_now();
	count_queued(s, now);
	w->a.queued_ns = now;
	w->a.start_ns = max64(now + sim_settings.launch_ns, after_ns);
	if (!w->a.node)
		w->a.start_ns = max64(w->a.start_ns, tail_locked(s) + sim_settings.gap_ns);
	lane = lane_of(s->context->device, &w->a);
	if (lane)
		w->a.start_ns = max64(w->a.start_ns, *lane);
	w->a.end_ns = w->a.start_ns + w->duration_ns;
	if (lane)
		*lane = w->a.end_ns;
	s->tail_ns = max64(s->tail_ns, w->a.end_ns);
	queue(s, w);
	pthread_mutex_unlock(&sim_lock);
}

void sim_tell_later(struct sim_activity *a)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	announce(a);
	p->a = *a;
	p->end_ns = a->end_ns;
	pthread_mutex_lock(&sim_lock);
	push(p);
	pthread_mutex_unlock(&sim_lock);
}

/* ---- waiting ---- */

void sim_wait_until(uint64_t ns)
{
	struct timespec t = to_timespec(ns);

	while (sim_now() < ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

void sim_stream__wait(struct sim_stream *s)
{
	sim_wait_until(sim_stream__tail(s));
	sim_engine__drain();
	pthread_mutex_lock(&sim_lock);
	while (s->host_fns)
		pthread_cond_wait(&host_fn_done, &sim_lock);
	pthread_mutex_unlock(&sim_lock);
}

/* ---- what work does, and how long it takes ---- */

uint64_t sim_copy_ns(const struct sim_activity *a)
{
	/* Bytes per microsecond: pinned memory is faster, and the device's own by far. */
	uint64_t rate = a->copy_kind == 8 || a->copy_kind == 10 ? 1000000
			: a->from == 1 || a->to == 1            ? 6000
								: 24000;

	if (sim_settings.copy_rate)
		rate = sim_settings.copy_rate;
	return sim_settings.copy_ns + a->bytes * 1000 / rate;
}

void sim_work__do(const struct sim_work *w)
{
	size_t row;

	if (w->a.type == SIM_KERNEL && w->body)
		w->body(w->params, (struct sim_dim3){w->a.grid[0], w->a.grid[1], w->a.grid[2]},
			(struct sim_dim3){w->a.block[0], w->a.block[1], w->a.block[2]});
	for (row = 0; row < w->rows; row++) {
		char *dst = (char *)w->dst + row * w->dst_pitch;

		if (w->a.type == SIM_COPY)
			memmove(dst, (const char *)w->src + row * w->src_pitch, w->width);
		else if (w->a.type == SIM_SET && w->element_bytes == 4)
			for (size_t i = 0; i + 4 <= w->width; i += 4)
				memcpy(dst + i, &w->a.value, 4);
		else if (w->a.type == SIM_SET)
			memset(dst, (int)w->a.value, w->width);
	}
}
