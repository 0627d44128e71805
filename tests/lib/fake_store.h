/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture made of records in memory, in the place of user/store's reader: defines
 * store_reader__*() itself, so that a test that includes this says to the record what is "in the
 * file", also what no writer would write. Include it once, in the test's one file.
 */
#ifndef KPROF_TESTS_FAKE_STORE_H
#define KPROF_TESTS_FAKE_STORE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/activity.h"
#include "kprof.h"
#include "model/timeline/timeline.h"
#include "store/records.h"
#include "store/store.h"
#include "unit.h"
#include "util/error.h"

static struct {
	struct store_record *records;
	size_t nr, cap;
	uint32_t nr_strings, nr_whats, nr_sources;
	size_t cut_at;  /* events from this record on are damaged; 0: none */
	size_t fail_at; /* reading this record is an I/O error; 0: none */
	/* More records, after the others: fills in number at, from 0; false: no more. Or NULL. */
	bool (*generate)(size_t at, struct store_record *out);
	bool late_damage; /* tables are read past cut_at (as if it lay in a chunk of events) */
} fake;

struct store_reader {
	size_t at;
	enum store_read_mode mode;
	bool complete;
	uint64_t begins, samples;
};

static inline void fake_reset(void)
{
	free(fake.records);
	memset(&fake, 0, sizeof(fake));
}

static inline struct store_record *fake_add(enum store_type type)
{
	if (fake.nr == fake.cap) {
		fake.cap = fake.cap ? fake.cap * 2 : 64;
		fake.records = reallocarray(fake.records, fake.cap, sizeof(*fake.records));
		if (!fake.records)
			abort();
	}
	memset(&fake.records[fake.nr], 0, sizeof(*fake.records));
	fake.records[fake.nr].type = type;
	return &fake.records[fake.nr++];
}

/* Texts are literals in tests: they are not copied. */
static inline uint32_t fake_string(const char *text)
{
	struct store_record *r = fake_add(STORE_STRING);

	r->string.id = ++fake.nr_strings;
	r->string.bytes = text;
	r->string.len = (uint32_t)strlen(text);
	return r->string.id;
}

static inline void fake_meta(const char *key, const char *json)
{
	struct store_record *r = fake_add(STORE_META);

	r->meta.key = key;
	r->meta.json = json;
}

static inline struct store_record *fake_source(uint32_t index, const char *name)
{
	uint32_t id = fake_string(name);
	struct store_record *r = fake_add(STORE_SOURCE);

	r->source.index = index;
	r->source.name = id;
	if (index >= fake.nr_sources)
		fake.nr_sources = index + 1;
	return r;
}

static inline uint32_t fake_what_of(const char *name, const char *overload, const char *category,
				    uint32_t source)
{
	uint32_t n = fake_string(name), o = fake_string(overload), c = fake_string(category);
	struct store_record *r = fake_add(STORE_DESCRIPTION);

	r->description.id = ++fake.nr_whats;
	r->description.name = n;
	r->description.overload = o;
	r->description.category = c;
	r->description.source = source;
	return r->description.id;
}

static inline uint32_t fake_what(const char *name)
{
	if (!fake.nr_sources)
		fake_source(0, "operators");
	return fake_what_of(name, "", "cpu_op", 0);
}

static inline struct store_record *fake_thread(uint32_t index, uint32_t pid, uint32_t tid,
					       const char *name)
{
	uint32_t id = fake_string(name);
	struct store_record *r = fake_add(STORE_THREAD);

	r->thread.index = index;
	r->thread.pid = pid;
	r->thread.tid = tid;
	r->thread.name = id;
	return r;
}

static inline void fake_clock(uint64_t mono_ns, uint64_t real_ns)
{
	struct store_record *r = fake_add(STORE_CLOCK);

	r->clock.mono_ns = mono_ns;
	r->clock.real_ns = real_ns;
}

static inline void fake_begin(uint64_t ns, uint32_t thread, uint32_t description)
{
	struct store_record *r = fake_add(STORE_BEGIN);

	r->begin.time_ns = ns;
	r->begin.thread = thread;
	r->begin.description = description;
}

static inline void fake_end_flags(uint64_t ns, uint32_t thread, uint32_t flags)
{
	struct store_record *r = fake_add(STORE_END);

	r->end.time_ns = ns;
	r->end.thread = thread;
	r->end.flags = flags;
}

static inline void fake_end(uint64_t ns, uint32_t thread)
{
	fake_end_flags(ns, thread, 0);
}

/* Attributes are not copied either. */
static inline void fake_args(uint64_t span, const struct store_attr *attrs, uint32_t nr)
{
	struct store_record *r = fake_add(STORE_ARGS);

	r->args.span = span;
	r->attrs = attrs;
	r->nr_attrs = nr;
}

static inline struct store_record *fake_api(uint32_t thread, const char *name, uint64_t start_ns,
					    uint64_t end_ns, uint64_t correlation)
{
	uint32_t id = fake_string(name);
	struct store_record *r = fake_add(STORE_API);

	r->api.thread = thread;
	r->api.type = strncmp(name, "cu", 2) || !strncmp(name, "cuda", 4)
			      ? KPROF_ACTIVITY_CUDA_RUNTIME
			      : KPROF_ACTIVITY_CUDA_DRIVER;
	r->api.name = id;
	r->api.start_ns = start_ns;
	r->api.end_ns = end_ns;
	r->api.correlation = correlation;
	return r;
}

/* On device 0, context 1. */
static inline struct store_record *fake_activity(uint32_t pid, uint32_t type, const char *name,
						 uint32_t stream, uint64_t start_ns,
						 uint64_t end_ns, uint64_t correlation)
{
	uint32_t id = fake_string(name);
	struct store_record *r = fake_add(STORE_ACTIVITY);

	r->activity.pid = pid;
	r->activity.type = type;
	r->activity.name = id;
	r->activity.context = 1;
	r->activity.stream = stream;
	r->activity.start_ns = start_ns;
	r->activity.end_ns = end_ns;
	r->activity.correlation = correlation;
	return r;
}

static inline void fake_finish(uint64_t ns)
{
	fake_add(STORE_FINISH)->finish.time_ns = ns;
}

/* A frame of one function in no module; the line is not copied. */
static inline struct store_record *fake_frame(uint32_t id, uint32_t kind,
					      const struct store_line *line)
{
	struct store_record *r = fake_add(STORE_FRAME);

	r->frame.id = id;
	r->frame.kind = kind;
	r->frame.nr_lines = line ? 1 : 0;
	r->frame.lines = line;
	return r;
}

static inline void fake_stack(uint32_t id, uint32_t parent, uint32_t frame)
{
	struct store_record *r = fake_add(STORE_STACK);

	r->stack.id = id;
	r->stack.parent = parent;
	r->stack.frame = frame;
}

static inline struct store_record *fake_sample(uint64_t ns, uint32_t thread, uint32_t stack,
					       uint64_t weight_ns)
{
	struct store_record *r = fake_add(STORE_SAMPLE);

	r->sample.time_ns = ns;
	r->sample.thread = thread;
	r->sample.stack = stack;
	r->sample.weight_ns = weight_ns;
	return r;
}

int store_reader__open(const char *path, struct store_reader **out)
{
	if (!strcmp(path, "absent"))
		return error_set(-ENOENT, "check the path", "%s: no such file", path);
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void store_reader__rewind(struct store_reader *r, enum store_read_mode mode)
{
	*r = (struct store_reader){.mode = mode};
}

void store_reader__watch(struct store_reader *r,
			 int (*fn)(void *ctx, uint64_t done, uint64_t total), void *ctx)
{
}

int store_reader__next(struct store_reader *r, struct store_record *out)
{
	bool passes = r->mode == STORE_READ_TABLES && fake.late_damage;

	for (;;) {
		if (r->at >= fake.nr && fake.generate && fake.generate(r->at - fake.nr, out)) {
			r->at++;
			r->begins += out->type == STORE_BEGIN;
			r->samples += out->type == STORE_SAMPLE;
			return 1;
		}
		if (r->at >= fake.nr || (fake.cut_at && r->at >= fake.cut_at && !passes))
			return 0;
		if (fake.fail_at && r->at >= fake.fail_at)
			return error_set(-EIO, NULL, "the disk is on fire");
		*out = fake.records[r->at++];
		if (out->type == STORE_FINISH)
			r->complete = true;
		if (out->type == STORE_BEGIN)
			r->begins++;
		r->samples += out->type == STORE_SAMPLE;
		if (record_kinds[out->type].chunk == STORE_CHUNK_TABLES ||
		    r->mode == STORE_READ_ALL)
			return 1;
		if (record_kinds[out->type].chunk == STORE_CHUNK_DETAILS &&
		    r->mode == STORE_READ_DETAILS)
			return 1;
	}
}

int store_reader__again(const struct store_reader *r, struct store_reader **out)
{
	return store_reader__open("fake", out);
}

void store_reader__info(const struct store_reader *r, struct store_reader_info *out)
{
	*out = (struct store_reader_info){
		.major = STORE_FORMAT_MAJOR,
		.minor = STORE_FORMAT_MINOR,
		.complete = r->complete,
		.lost_bytes = r->complete ? 0 : 7,
		.size_bytes = fake.nr * 10,
		.read_bytes = r->at * 10,
		.begins = r->begins,
		.samples = r->samples,
	};
}

void store_reader__close(struct store_reader *r)
{
	free(r);
}

static inline void fake_must_be_open(const void *opened)
{
	if (opened)
		return;
	printf("# %s\n", kprof_error_cause());
	exit(1);
}

static inline struct kprof_capture *fake_timeline(void)
{
	struct kprof_capture *t = NULL;

	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	fake_must_be_open(t);
	return t;
}

static inline struct kprof_capture *fake_capture(void)
{
	struct kprof_capture *c = NULL;

	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	fake_must_be_open(c);
	return c;
}

#endif
