/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of user/sink share: small captures written through the store, and their exports.
 */
#ifndef KPROF_TESTS_SINK_FIXTURE_H
#define KPROF_TESTS_SINK_FIXTURE_H

#include <cjson/cJSON.h>

#include "store_fixture.h"

#define SEC_NS 1000000000ull
#define DAY_NS (86400 * SEC_NS)
/* The window: 10 s after boot, noon of a day, ten seconds long. */
#define MONO_NS (10 * SEC_NS)
#define REAL_NS (20000 * DAY_NS + DAY_NS / 2)
#define END_NS (20 * SEC_NS)

/* A capture being written; ids of strings and whats as the store hands them out. */
struct made {
	struct store_writer *w;
	uint32_t descriptions, threads;
};

static inline void made__put(struct made *m, struct store_record r)
{
	CHECK_EQ(store_writer__put(m->w, &r), 0);
}

static inline uint32_t made__string(struct made *m, const char *text)
{
	return store_writer__string(m->w, text, strlen(text));
}

static inline void made__meta(struct made *m, const char *key, const char *json)
{
	made__put(m, (struct store_record){STORE_META, .meta = {key, json}});
}

static inline void made__process_at(struct made *m, uint64_t ns, uint32_t pid, uint32_t ppid,
				    const char *comm)
{
	made__put(m, (struct store_record){STORE_PROCESS, .process = {.pid = pid,
								      .ppid = ppid,
								      .comm = made__string(m, comm),
								      .start_ns = MONO_NS + ns}});
}

static inline void made__process(struct made *m, uint32_t pid, uint32_t ppid, const char *comm)
{
	made__process_at(m, 0, pid, ppid, comm);
}

static inline uint32_t made__thread(struct made *m, uint32_t pid, uint32_t tid, const char *name)
{
	made__put(m, (struct store_record){STORE_THREAD, .thread = {.index = m->threads,
								    .pid = pid,
								    .tid = tid,
								    .name = made__string(m, name),
								    .start_ns = MONO_NS}});
	return m->threads++;
}

static inline void made__own_name(struct made *m, uint32_t thread, const char *name)
{
	made__put(m, (struct store_record){STORE_THREAD_NAME,
					   .thread_name = {thread, made__string(m, name)}});
}

static inline uint32_t made__what(struct made *m, const char *name, const char *overload,
				  const char *category, uint32_t flags)
{
	made__put(m, (struct store_record){STORE_DESCRIPTION,
					   .description = {.id = ++m->descriptions,
							   .name = made__string(m, name),
							   .overload = made__string(m, overload),
							   .category = made__string(m, category),
							   .flags = flags}});
	return m->descriptions;
}

static inline void made__begin(struct made *m, uint64_t ns, uint32_t thread, uint32_t description)
{
	made__put(m,
		  (struct store_record){STORE_BEGIN, .begin = {MONO_NS + ns, thread, description}});
}

static inline void made__end(struct made *m, uint64_t ns, uint32_t thread, uint32_t flags)
{
	made__put(m, (struct store_record){STORE_END, .end = {MONO_NS + ns, thread, flags}});
}

static inline void made__clock(struct made *m, uint64_t mono_ns, uint64_t real_ns)
{
	made__put(m, (struct store_record){STORE_CLOCK, .clock = {mono_ns, real_ns}});
}

/* A file with a clock reading and one source; its counters are what tests expect to read. */
static inline void made__start(struct made *m, const char *path)
{
	*m = (struct made){0};
	CHECK_EQ(store_writer__open(path, &(struct outfile_opts){0}, &m->w), 0);
	if (!m->w)
		abort();
	made__clock(m, MONO_NS, REAL_NS);
	made__put(m, (struct store_record){STORE_SOURCE,
					   .source = {.name = made__string(m, "operators"),
						      .fired = 9,
						      .captured = 7,
						      .dropped = 2,
						      .missed = 3,
						      .begins = 4,
						      .ends_exact = 2,
						      .ends_closed = 1,
						      .orphan_ends = 5}});
}

static inline void made__finish(struct made *m)
{
	CHECK_EQ(store_writer__finish(m->w, END_NS), 0);
}

static inline int export_as(const char *capture, struct kprof_export_opts opts)
{
	struct kprof_capture *c = NULL;
	int err = kprof_capture_open(capture, &c);

	if (err) {
		printf("# %s: %s\n", capture, kprof_error_cause());
		CHECK(!"opened");
		return err;
	}
	opts.sz = sizeof(opts);
	err = kprof_capture_export(c, &opts);
	kprof_capture_close(c);
	return err;
}

static inline char *text_of(const char *path)
{
	char *text = NULL;

	CHECK_EQ(read_file(path, 64 << 20, &text, NULL), 0);
	return text ? text : strdup("");
}

/* The exported trace, parsed; deleted by the caller. */
static inline cJSON *trace_of(const char *path)
{
	char *text = text_of(path);
	cJSON *trace = cJSON_ParseWithOpts(text, NULL, 1);

	CHECK(trace);
	free(text);
	return trace;
}

static inline bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

#endif
