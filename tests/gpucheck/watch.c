// SPDX-License-Identifier: BSD-2-Clause
/*
 * A libcupti that passes every call on to the real one and keeps what came of it: results, kinds
 * and sizes of records, buffers, and which clock it tells. KPROF_CUPTI_PATH gives it to the agent.
 *
 *   GPUCHECK_CUPTI    path of the real libcupti
 *   GPUCHECK_WATCH    file in which its object of JSON is written when the agent has unsubscribed
 *
 * Its name may not begin as that of the real library does, by which the agent finds that one.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/cupti/abi.h"
#include "watch.h"

#define EXPORT __attribute__((visibility("default")))
#define NOT_THERE 27 /* CUPTI_ERROR_NOT_SUPPORTED */
#define MOST 512

/* On x86-64, four words pass on whatever a function's parameters are, since none is a float. */
typedef long (*any_function)(long, long, long, long);

#define AT(member, symbol, parameters) AT_##member,
enum function { CUPTI_FUNCTIONS(AT) CUPTI_OPTIONAL_FUNCTIONS(AT) FUNCTIONS };
#define NAME(member, symbol, parameters) #symbol,
static const char *const names[] = {CUPTI_FUNCTIONS(NAME) CUPTI_OPTIONAL_FUNCTIONS(NAME)};

static any_function real[FUNCTIONS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum domain { NO_TIME, MONOTONIC, REALTIME, OTHER_TIME, DOMAINS };
static const char *const domain_names[] = {"none", "monotonic", "realtime", "other"};

static struct {
	pthread_mutex_t lock;
	struct watch_result {
		enum function function;
		long of; /* the kind, attribute or flags that it was called with; -1: nothing */
		int last;
		uint64_t calls, failed;
		int failures; /* the last result that was none */
	} result[MOST];
	struct watch_record {
		uint32_t kind;
		size_t bytes;
		uint64_t nr;
	} record[MOST];
	struct watch_driver_call {
		uint32_t cbid;
		uint64_t nr;
	} call[MOST];
	uint64_t times[DOMAINS];
	uint64_t asked, refused, completed, empty, now, most;
	size_t least_bytes, most_bytes;
	struct {
		const char *when;
		enum domain domain;
	} clock[8];
	size_t results, records, calls, clocks;
	uint64_t left_out; /* there was no place for it in these tables */
	uint32_t agent;    /* the thread that has subscribed */
	cupti_requested_fn requested;
	cupti_completed_fn done;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void open_real(void)
{
	const char *path = getenv("GPUCHECK_CUPTI");
	void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!handle)
		fprintf(stderr, "gpucheck: %s\n", path ? dlerror() : "no GPUCHECK_CUPTI");
	for (size_t i = 0; handle && i < FUNCTIONS; i++)
		*(void **)&real[i] = dlsym(handle, names[i]);
}

static void keep_result(enum function f, long of, int result)
{
	struct watch_result *r = w.result;

	while (r < w.result + w.results && (r->function != f || r->of != of))
		r++;
	if (r == w.result + MOST) {
		w.left_out++;
		return;
	}
	if (r == w.result + w.results) {
		w.results++;
		r->function = f;
		r->of = of;
	}
	r->last = result;
	r->calls++;
	if (result) {
		r->failed++;
		r->failures = result;
	}
}

/* Which first parameter tells what the call is about. */
static long about(enum function f, long a)
{
	return f == AT_enable || f == AT_disable || f == AT_enable_and_dump ||
			       f == AT_set_attribute || f == AT_flush_all || f == AT_finalize
		       ? (long)(int)a
		       : -1;
}

/* ---- clocks ---- */

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of a time of the last ten minutes. */
static enum domain domain_of(uint64_t time)
{
	const uint64_t ago_ns = UINT64_C(600000000000), ahead_ns = UINT64_C(1000000000);
	uint64_t mono = read_clock(CLOCK_MONOTONIC), realtime = read_clock(CLOCK_REALTIME);

	if (!time)
		return NO_TIME;
	if (time + ago_ns > mono && time < mono + ahead_ns)
		return MONOTONIC;
	if (time + ago_ns > realtime && time < realtime + ahead_ns)
		return REALTIME;
	return OTHER_TIME;
}

EXPORT void watch_clock(const char *when)
{
	uint64_t time = 0;

	if (!real[AT_timestamp] || real[AT_timestamp]((long)&time, 0, 0, 0))
		time = 0;
	pthread_mutex_lock(&w.lock);
	if (w.clocks < sizeof(w.clock) / sizeof(w.clock[0])) {
		w.clock[w.clocks].when = when;
		w.clock[w.clocks++].domain = domain_of(time);
	}
	pthread_mutex_unlock(&w.lock);
}

/* ---- buffers and records ---- */

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	w.requested(buffer, bytes, max_records);
	pthread_mutex_lock(&w.lock);
	w.asked++;
	if (!*buffer) {
		w.refused++;
	} else {
		w.now++;
		if (w.now > w.most)
			w.most = w.now;
		if (*bytes > w.most_bytes)
			w.most_bytes = *bytes;
		if (!w.least_bytes || *bytes < w.least_bytes)
			w.least_bytes = *bytes;
	}
	pthread_mutex_unlock(&w.lock);
}

static void keep_record(uint32_t kind, size_t bytes)
{
	struct watch_record *r = w.record;

	while (r < w.record + w.records && (r->kind != kind || r->bytes != bytes))
		r++;
	if (r == w.record + MOST) {
		w.left_out++;
		return;
	}
	if (r == w.record + w.records)
		w.records++;
	r->kind = kind;
	r->bytes = bytes;
	r->nr++;
}

static void keep_driver_call(const struct cupti_call *call)
{
	struct watch_driver_call *c = w.call;

	if (call->thread == w.agent)
		return;
	while (c < w.call + w.calls && c->cbid != call->cbid)
		c++;
	if (c == w.call + MOST) {
		w.left_out++;
		return;
	}
	if (c == w.call + w.calls)
		w.calls++;
	c->cbid = call->cbid;
	c->nr++;
}

static void look_at(const void *record, size_t bytes)
{
	uint32_t kind = *(const uint32_t *)record;

	keep_record(kind, bytes);
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
	case CUPTI_KIND_KERNEL:
		w.times[domain_of(((const struct cupti_kernel *)record)->start)]++;
		break;
	case CUPTI_KIND_MEMCPY:
		w.times[domain_of(((const struct cupti_memcpy *)record)->start)]++;
		break;
	case CUPTI_KIND_MEMSET:
		w.times[domain_of(((const struct cupti_memset *)record)->start)]++;
		break;
	case CUPTI_KIND_DRIVER:
		keep_driver_call(record);
		w.times[domain_of(((const struct cupti_call *)record)->start)]++;
		break;
	}
}

/* A record's size follows from where the next one begins. */
static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
		      size_t valid_bytes)
{
	const uint8_t *record = NULL;
	void *next = NULL;
	int result = CUPTI_OK;

	pthread_mutex_lock(&w.lock);
	w.completed++;
	w.empty += !valid_bytes;
	w.now -= w.now > 0;
	while (valid_bytes && result == CUPTI_OK) {
		result = (int)real[AT_next_record]((long)buffer, (long)valid_bytes, (long)&next, 0);
		if (record)
			look_at(record, (size_t)((result == CUPTI_OK ? (uint8_t *)next
								     : buffer + valid_bytes) -
						 record));
		record = next;
	}
	pthread_mutex_unlock(&w.lock);
	w.done(context, stream, buffer, bytes, valid_bytes);
}

/* ---- calls ---- */

static void write_file(void)
{
	const char *path = getenv("GPUCHECK_WATCH");
	FILE *out = path ? fopen(path, "w") : NULL;

	if (!out)
		return;
	watch_print(out);
	fclose(out);
}

static int pass_on(enum function f, long a, long b, long c, long d)
{
	int result = NOT_THERE;

	pthread_once(&once, open_real);
	if (f == AT_register_callbacks) {
		w.requested = (cupti_requested_fn)a;
		w.done = (cupti_completed_fn)b;
		a = (long)requested;
		b = (long)completed;
	}
	if (real[f])
		result = (int)real[f](a, b, c, d);
	/* The end of a buffer's records is no failure. */
	if (f == AT_next_record && result == CUPTI_MAX_LIMIT_REACHED)
		return result;
	pthread_mutex_lock(&w.lock);
	keep_result(f, about(f, a), real[f] ? result : -1);
	if (f == AT_subscribe && result == CUPTI_OK)
		w.agent = (uint32_t)syscall(SYS_gettid);
	pthread_mutex_unlock(&w.lock);
	if (result != CUPTI_OK && real[f])
		fprintf(stderr, "gpucheck: %s(%ld) = %d\n", names[f], about(f, a), result);
	if (f == AT_register_timestamp)
		watch_clock("set");
	if (f == AT_unsubscribe)
		write_file();
	return result;
}

#define PASS_ON(member, symbol, parameters)                \
	EXPORT int symbol(long a, long b, long c, long d); \
	EXPORT int symbol(long a, long b, long c, long d)  \
	{                                                  \
		return pass_on(AT_##member, a, b, c, d);   \
	}
CUPTI_FUNCTIONS(PASS_ON)
CUPTI_OPTIONAL_FUNCTIONS(PASS_ON)

/* ---- what it has seen ---- */

static const char *words_for(int result)
{
	const char *words = NULL;

	if (result < 0)
		return "this CUPTI has no such function";
	if (!real[AT_result_string] ||
	    real[AT_result_string]((long)result, (long)&words, 0, 0) != CUPTI_OK || !words)
		return "";
	return words;
}

static void print_results(FILE *out)
{
	for (size_t i = 0; i < w.results; i++) {
		const struct watch_result *r = &w.result[i];

		fprintf(out,
			"%s{\"call\": \"%s\", \"of\": %ld, \"calls\": %" PRIu64
			", \"failed\": %" PRIu64
			", \"last\": %d, \"failure\": %d, \"words\": \"%s\"}",
			i ? ", " : "", names[r->function], r->of, r->calls, r->failed, r->last,
			r->failures, r->failed ? words_for(r->failures) : "");
	}
}

static void print_driver_calls(FILE *out)
{
	const char *name;

	for (size_t i = 0; i < w.calls; i++) {
		name = NULL;
		if (real[AT_callback_name](CUPTI_DRIVER_API, (long)w.call[i].cbid, (long)&name, 0))
			name = NULL;
		fprintf(out, "%s{\"cbid\": %u, \"name\": \"%s\", \"nr\": %" PRIu64 "}",
			i ? ", " : "", w.call[i].cbid, name ? name : "", w.call[i].nr);
	}
}

EXPORT void watch_print(FILE *out)
{
	pthread_mutex_lock(&w.lock);
	fprintf(out, "{\"results\": [");
	print_results(out);
	fprintf(out, "], \"records\": [");
	for (size_t i = 0; i < w.records; i++)
		fprintf(out, "%s{\"kind\": %u, \"bytes\": %zu, \"nr\": %" PRIu64 "}", i ? ", " : "",
			w.record[i].kind, w.record[i].bytes, w.record[i].nr);
	fprintf(out, "], \"driver\": [");
	print_driver_calls(out);
	fprintf(out, "], \"times\": {");
	for (int i = 0; i < DOMAINS; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", domain_names[i], w.times[i]);
	fprintf(out, "}, \"clock\": {");
	for (size_t i = 0; i < w.clocks; i++)
		fprintf(out, "%s\"%zu %s\": \"%s\"", i ? ", " : "", i, w.clock[i].when,
			domain_names[w.clock[i].domain]);
	fprintf(out,
		"}, \"buffers\": {\"asked\": %" PRIu64 ", \"refused\": %" PRIu64
		", \"completed\": %" PRIu64 ", \"empty\": %" PRIu64 ", \"most\": %" PRIu64
		", \"left\": %" PRIu64 ", \"least_bytes\": %zu, \"most_bytes\": %zu}",
		w.asked, w.refused, w.completed, w.empty, w.most, w.now, w.least_bytes,
		w.most_bytes);
	fprintf(out, ", \"left_out\": %" PRIu64 "}", w.left_out);
	pthread_mutex_unlock(&w.lock);
}
