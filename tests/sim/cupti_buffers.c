/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: CUPTI's buffers: asked for when there is something to write, handed
 * back full, or at a flush, by a thread of CUPTI's own or by the one that flushes. Calls and device
 * work are written to different ones, so that they come in no order of time; more disorder can be
 * ordered (README.md).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti.h"

#define MAX_RECORD 256
#define MAX_THREADS 256 /* that have buffers of their own */
/* From this version on no buffer is an answer. */
#define VERSION_NO_BUFFER 27

struct buffer {
	uint8_t *data;
	size_t size, used, nr, max;
	unsigned incomplete; /* records */
	size_t work;         /* records of kernels, copies and sets that are complete */
	uint64_t ready_ns;   /* it comes late */
	bool gone;           /* handed over; freed when nothing refers to it any more */
	struct buffer *next;
};

struct cupti_slot {
	struct buffer *buffer;
	size_t offset;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, delivered = PTHREAD_COND_INITIALIZER;
static cupti_request_fn request;
static cupti_complete_fn complete;
static struct buffer *open_buffers[CUPTI_CLASSES][MAX_THREADS], *full;
static bool per_thread, asked;
static uint64_t flushes;
static unsigned delivering; /* threads that do */
static size_t dropped;
static uint32_t period_ms;
static uint64_t random_state;
static pthread_t worker;
static bool worker_runs, worker_stops;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

/* ---- writing. With the lock. ---- */

static struct buffer *new_buffer(void)
{
	uint64_t limit = cupti_settings.buffer_records, start = sim->now_ns();
	struct buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	request(&b->data, &b->size, &b->max);
	asked = true;
	if (!b->data && cupti_settings.version < VERSION_NO_BUFFER) {
		cupti_misuse("no buffer is given to a CUPTI that needs one");
		abort();
	}
	if ((uintptr_t)b->data & 7)
		cupti_misuse("a buffer is not aligned to 8 bytes");
	if (limit && (!b->max || b->max > limit))
		b->max = limit;
	if (!b->data || b->size < MAX_RECORD) {
		free(b);
		return NULL;
	}
	sim->say("{\"t\":\"buffer\",\"size\":%zu,\"start\":%lu,\"end\":%lu}", b->size, start,
		 sim->now_ns());
	return b;
}

/* With disorder asked for, anywhere in the list. */
static void close_buffer(struct buffer **open)
{
	struct buffer *b = *open, **p = &full;

	if (!b)
		return;
	*open = NULL;
	while (*p && !(random_state && next_random() % 2))
		p = &(*p)->next;
	b->next = *p;
	*p = b;
	pthread_cond_signal(&wake);
}

static bool fits(const struct buffer *b, size_t bytes)
{
	return b->used + bytes <= b->size && (!b->max || b->nr < b->max);
}

static unsigned thread_number(void)
{
	static unsigned nr;
	static _Thread_local unsigned number;

	if (!number)
		number = __atomic_add_fetch(&nr, 1, __ATOMIC_RELAXED);
	return per_thread ? number % MAX_THREADS : 0;
}

static struct buffer *write_record(enum cupti_class c, const void *record, size_t *offset)
{
	struct buffer **open = &open_buffers[c][thread_number()], *b = *open;
	uint32_t kind;
	size_t bytes;

	memcpy(&kind, record, sizeof(kind));
	bytes = cupti_record_bytes(kind);
	if (b && !fits(b, bytes)) {
		close_buffer(open);
		b = NULL;
	}
	if (!b)
		b = *open = request ? new_buffer() : NULL;
	if (!b) {
		dropped++;
		return NULL;
	}
	memcpy(b->data + b->used, record, bytes);
	*offset = b->used;
	b->used += bytes;
	b->nr++;
	return b;
}

bool cupti_put(enum cupti_class c, const void *record)
{
	struct buffer *b;
	size_t offset;

	pthread_mutex_lock(&lock);
	b = write_record(c, record, &offset);
	pthread_mutex_unlock(&lock);
	return b != NULL;
}

struct cupti_slot *cupti_reserve(const void *record)
{
	struct cupti_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	pthread_mutex_lock(&lock);
	slot->buffer = write_record(CUPTI_WORK, record, &slot->offset);
	if (slot->buffer)
		slot->buffer->incomplete++;
	pthread_mutex_unlock(&lock);
	if (slot->buffer)
		return slot;
	free(slot);
	return NULL;
}

static bool is_work(uint32_t kind)
{
	return kind == CUPTI_KIND_KERNEL || kind == CUPTI_KIND_CONCURRENT_KERNEL ||
	       kind == CUPTI_KIND_MEMCPY || kind == CUPTI_KIND_MEMCPY2 || kind == CUPTI_KIND_MEMSET;
}

bool cupti_fill(struct cupti_slot *slot, const void *record, uint64_t late_ns)
{
	struct buffer *b = slot->buffer;
	uint32_t kind;
	bool gone;

	memcpy(&kind, record, sizeof(kind));
	pthread_mutex_lock(&lock);
	gone = b->gone;
	if (!gone) {
		memcpy(b->data + slot->offset, record, cupti_record_bytes(kind));
		b->work += is_work(kind);
	}
	if (late_ns)
		b->ready_ns = sim->now_ns() + late_ns;
	if (!--b->incomplete && gone)
		free(b);
	else if (!b->incomplete)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	free(slot);
	return !gone;
}

/* Records of a buffer change places: their order says nothing. */
static void shuffle(struct buffer *b)
{
	size_t offsets[64], lengths[64], nr = 0, at = 0, begin = 0;
	uint8_t copy[64 * MAX_RECORD];

	while (at < b->used) {
		for (nr = 0, begin = at; at < b->used && nr < 64; nr++) {
			uint32_t kind;

			memcpy(&kind, b->data + at, sizeof(kind));
			offsets[nr] = at - begin;
			lengths[nr] = cupti_record_bytes(kind);
			at += lengths[nr];
		}
		memcpy(copy, b->data + begin, at - begin);
		for (size_t to = begin; nr; nr--) {
			size_t i = next_random() % nr;

			memcpy(b->data + to, copy + offsets[i], lengths[i]);
			to += lengths[i];
			offsets[i] = offsets[nr - 1];
			lengths[i] = lengths[nr - 1];
		}
	}
}

/* ---- handing over ---- */

/* Takes one that can be handed over out of the list. */
static struct buffer *next_full(bool forced)
{
	struct buffer **p, *b;

	for (p = &full; (b = *p); p = &b->next) {
		if (!forced && (b->incomplete || b->ready_ns > sim->now_ns()))
			continue;
		*p = b->next;
		return b;
	}
	return NULL;
}

/* With the lock, which is let go while the client has its turn. */
static void deliver(bool forced)
{
	struct buffer *b;

	delivering++;
	while ((b = next_full(forced))) {
		uint8_t *data = b->data;
		size_t size = b->size, used = b->used, nr_work = b->work;

		if (random_state)
			shuffle(b);
		sim->say(
			"{\"t\":\"delivery\",\"records\":%zu,\"bytes\":%zu,\"size\":%zu,\"incomplete\":%u,\"time\":%lu}",
			b->nr, used, size, b->incomplete, sim->now_ns());
		b->gone = true;
		if (!b->incomplete)
			free(b);
		pthread_mutex_unlock(&lock);
		complete(NULL, 0, data, size, used);
		/* A process that is killed in the middle of it does not say so. */
		sim->say("{\"t\":\"delivered\",\"work\":%zu,\"time\":%lu}", nr_work, sim->now_ns());
		pthread_mutex_lock(&lock);
	}
	delivering--;
	pthread_cond_broadcast(&delivered);
}

/* Those whose records are complete, as far as they are full. */
static void close_buffers(bool forced)
{
	struct buffer **open = &open_buffers[0][0];

	for (size_t i = 0; i < CUPTI_CLASSES * MAX_THREADS; i++)
		if (open[i] &&
		    (forced || (!open[i]->incomplete && open[i]->ready_ns <= sim->now_ns())))
			close_buffer(&open[i]);
}

static void *work(void *arg)
{
	pthread_setname_np(pthread_self(), "cupti-worker");
	pthread_mutex_lock(&lock);
	while (!worker_stops) {
		struct timespec t;
		int timed_out;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += period_ms ? (long)(period_ms % 1000) * 1000000 : 500000000;
		t.tv_sec += period_ms / 1000 + t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		timed_out = pthread_cond_timedwait(&wake, &lock, &t);
		if (timed_out && period_ms)
			close_buffers(false);
		deliver(false);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

void cupti_start_worker(void)
{
	pthread_mutex_lock(&lock);
	random_state = cupti_settings.shuffle;
	if (!worker_runs) {
		worker_stops = false;
		worker_runs = !pthread_create(&worker, NULL, work, NULL);
	}
	pthread_mutex_unlock(&lock);
}

void cupti_stop_worker(void)
{
	size_t left = 0;
	bool join;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < CUPTI_CLASSES * MAX_THREADS; i++)
		left += (&open_buffers[0][0])[i] ? (&open_buffers[0][0])[i]->nr : 0;
	for (struct buffer *b = full; b; b = b->next)
		left += b->nr;
	join = worker_runs;
	worker_stops = true;
	worker_runs = false;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	if (join && !pthread_equal(worker, pthread_self()))
		pthread_join(worker, NULL);
	cupti_flush(true);
	if (left)
		sim->say("{\"t\":\"cupti\",\"call\":\"cuptiFinalize\",\"undelivered\":%zu}", left);
	pthread_mutex_lock(&lock);
	request = NULL;
	complete = NULL;
	period_ms = 0;
	dropped = 0;
	pthread_mutex_unlock(&lock);
}

int cupti_flush(bool forced)
{
	uint64_t start = sim->now_ns();

	sim->drain();
	pthread_mutex_lock(&lock);
	close_buffers(forced);
	deliver(forced);
	while (delivering)
		pthread_cond_wait(&delivered, &lock);
	pthread_mutex_unlock(&lock);
	cupti_record_overhead(1 << 16, start, sim->now_ns());
	return CUPTI_SUCCESS;
}

size_t cupti_take_dropped(void)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return n;
}

void cupti_count_dropped(void)
{
	pthread_mutex_lock(&lock);
	dropped++;
	pthread_mutex_unlock(&lock);
}

/* ---- the client's side ---- */

SIM_EXPORT int cuptiActivityRegisterCallbacks(cupti_request_fn r, cupti_complete_fn c)
{
	if (!r || !c)
		return CUPTI_ERROR_INVALID_PARAMETER;
	cupti_taken("another tool's buffer callbacks are replaced");
	pthread_mutex_lock(&lock);
	request = r;
	complete = c;
	asked = false;
	per_thread = cupti_attribute(9);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

/* The other tool's callbacks. */
static void request_other(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*buffer = calloc(1, 1 << 20);
	*bytes = 1 << 20;
	*max_records = 0;
}

static void complete_other(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			   size_t valid)
{
	if (bytes == 1 << 20 && valid)
		memset(buffer, 0, valid); /* ours or not: all that it gets is its own */
}

static void take_over(void)
{
	pthread_mutex_lock(&lock);
	request = request_other;
	complete = complete_other;
	pthread_mutex_unlock(&lock);
	cupti_take_clock();
	cupti_other_tool = true;
}

SIM_EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (!complete)
		return CUPTI_ERROR_INVALID_OPERATION;
	if (!asked)
		cupti_misuse("a flush before any buffer was asked for");
	flushes++;
	if (flushes == cupti_settings.clock_lost)
		cupti_lose_clock();
	if (flushes == cupti_settings.taken_over)
		take_over();
	return cupti_flush(flag & 1);
}

SIM_EXPORT int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag)
{
	return cuptiActivityFlushAll(flag);
}

SIM_EXPORT int cuptiActivityFlushPeriod(uint32_t ms)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	period_ms = ms;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at;
	uint32_t kind;
	size_t bytes;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	at = *record ? *record : buffer;
	if (*record) {
		memcpy(&kind, at, sizeof(kind));
		at += cupti_record_bytes(kind);
	}
	if (at + 8 > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, at, sizeof(kind));
	bytes = cupti_record_bytes(kind);
	if (cupti_settings.bad_record && *record && kind == cupti_settings.bad_record)
		return CUPTI_ERROR_INVALID_KIND;
	if (!bytes || at + bytes > buffer + valid)
		return CUPTI_ERROR_UNKNOWN;
	*record = at;
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *out)
{
	if (!out)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*out = cupti_take_dropped();
	return CUPTI_SUCCESS;
}
