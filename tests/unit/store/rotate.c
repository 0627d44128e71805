// SPDX-License-Identifier: BSD-2-Clause
/* A writer that goes on in another file: what both have, and what only one does. */
#include <signal.h>
#include <sys/resource.h>

#include "store_fixture.h"

#define PUT(...) CHECK_EQ(store_writer__put(w, &(struct store_record){__VA_ARGS__}), 0)

struct found { /* what a file has, by kind of record */
	uint32_t of[32];
	uint32_t strings, begins;
	bool complete;
	uint64_t args_span, source_captured;
	char meta[256];
};

static struct found look(const char *path)
{
	struct found s = {0};
	struct store_reader_info info;
	struct store_record got;
	struct store_reader *r;

	CHECK_EQ(store_reader__open(path, &r), 0);
	while (store_reader__next(r, &got) == 1) {
		s.of[got.type]++;
		if (got.type == STORE_META)
			strncat(s.meta, got.meta.key, 16);
		if (got.type == STORE_ARGS)
			s.args_span = got.args.span;
		if (got.type == STORE_SOURCE)
			s.source_captured = got.source.captured;
	}
	store_reader__info(r, &info);
	s.complete = info.complete && !info.lost_bytes;
	store_reader__close(r);
	return s;
}

static struct store_writer *begin(const char *path)
{
	struct store_writer *w;

	CHECK_EQ(store_writer__open(path, NULL, &w), 0);
	store_writer__may_rotate(w);
	PUT(STORE_CLOCK, .clock = {100, 1000});
	PUT(STORE_META, .meta = {"lasts", "1"});
	PUT(STORE_SOURCE, .source = {.index = 0, .name = store_writer__string(w, "ops", 3)});
	PUT(STORE_PROCESS, .process = {.pid = 1, .start_ns = 100});
	PUT(STORE_THREAD, .thread = {.index = 0, .pid = 1, .tid = 1});
	PUT(STORE_DESCRIPTION, .description = {.id = 1, .name = store_writer__string(w, "op", 2)});
	return w;
}

static void next_file(struct store_writer *w, const char *path, uint64_t end_ns)
{
	int why = -1;

	CHECK_EQ(store_writer__rotate_begin(w, path, NULL), 0);
	store_writer__closing(w, true);
	PUT(STORE_META, .meta = {"counts", "2"});
	PUT(STORE_SOURCE, .source = {.index = 0, .name = 1, .fired = 7, .captured = 7});
	PUT(STORE_GAP, .gap = {.what = 1, .reason = 2, .start_ns = 100, .end_ns = 150});
	CHECK_EQ(store_writer__rotate_end(w, end_ns, &why), 0);
	CHECK_EQ(why, 0);
	PUT(STORE_CLOCK, .clock = {end_ns, 2000});
}

static void what_is_carried(void)
{
	const char *first = in_scratch("first.kprof"), *second = in_scratch("second.kprof");
	struct store_writer *w = begin(first);
	struct found s;

	next_file(w, second, 200);
	CHECK(access(second, F_OK)); /* not before it is finished */
	/* what it refers to is in the file before, and in this one */
	PUT(STORE_BEGIN, .begin = {210, 0, 1});
	PUT(STORE_END, .end = {220, 0, 0});
	CHECK_EQ(store_writer__string(w, "op", 2), 2);
	CHECK_EQ(store_writer__finish(w, 300), 0);
	s = look(first);
	CHECK(s.complete);
	CHECK_EQ(s.of[STORE_GAP], 1);
	CHECK_EQ(s.source_captured, 7);
	CHECK_STR(s.meta, "lastscounts");
	s = look(second);
	CHECK(s.complete);
	CHECK_EQ(s.of[STORE_GAP] + s.of[STORE_PROCESS], 0);
	CHECK_EQ(s.of[STORE_CLOCK], 1);
	CHECK_EQ(s.of[STORE_STRING], 2);
	CHECK_EQ(s.of[STORE_THREAD] + s.of[STORE_DESCRIPTION] + s.of[STORE_SOURCE], 3);
	CHECK_EQ(s.source_captured, 0);
	CHECK_STR(s.meta, "lasts");
}

/* Spans are numbered over all files; in each, readers count from 1. */
static void spans_that_go_on(void)
{
	const char *second = in_scratch("goes_on.kprof");
	struct store_writer *w = begin(in_scratch("open.kprof"));
	struct store_attr attr = {.type = STORE_ATTR_U64, .value = 5};
	struct found s;

	attr.key = store_writer__string(w, "key", 3);
	PUT(STORE_BEGIN, .begin = {110, 0, 1});
	PUT(STORE_END, .end = {120, 0, 0});
	PUT(STORE_BEGIN, .begin = {130, 0, 1});
	CHECK_EQ(store_writer__begins(w), 2);
	next_file(w, second, 200);
	PUT(STORE_BEGIN, .begin = {200, 0, 1});
	CHECK_EQ(store_writer__continues(w, 2), 0);
	CHECK_EQ(store_writer__begins(w), 3);
	PUT(STORE_ARGS, .args = {2}, .attrs = &attr, .nr_attrs = 1);
	/* one that has ended in the file before: left out, and counted */
	PUT(STORE_ARGS, .args = {1}, .attrs = &attr, .nr_attrs = 1);
	CHECK_EQ(store_writer__late_args(w), 1);
	CHECK_EQ(store_writer__finish(w, 300), 0);
	s = look(second);
	CHECK_EQ(s.of[STORE_ARGS], 1);
	CHECK_EQ(s.args_span, 1);
	CHECK_EQ(s.of[STORE_BEGIN], 1);
}

/* Neither the tables nor the chunks that they are in grow with the number of files. */
static void many_files(void)
{
	enum { FILES = 40, STRINGS = 20000 };
	struct store_writer *w = begin(in_scratch("0.kprof"));
	uint64_t bytes = 0;
	char text[64], name[32];
	struct found s;

	for (int i = 0; i < STRINGS; i++) { /* some chunks */
		int len = snprintf(text, sizeof(text), "%d a string of some length %d", i, i * 7);

		CHECK(store_writer__string(w, text, (size_t)len));
	}
	for (int i = 1; i <= FILES; i++) {
		snprintf(name, sizeof(name), "%d.kprof", i);
		next_file(w, in_scratch(name), (uint64_t)i * 1000);
		CHECK_EQ(store_writer__flush(w), 0);
		if (i == 3)
			bytes = store_writer__table_bytes(w);
		snprintf(text, sizeof(text), "one more %d", i);
		CHECK_EQ(store_writer__string(w, text, strlen(text)), STRINGS + 2 + i);
		CHECK_EQ(store_writer__flush(w), 0);
	}
	CHECK(bytes > 10000);
	CHECK(store_writer__table_bytes(w) < bytes + 2000);
	CHECK_EQ(store_writer__finish(w, FILES * 1000 + 1), 0);
	s = look(in_scratch("40.kprof"));
	CHECK(s.complete);
	CHECK_EQ(s.of[STORE_STRING], STRINGS + 2 + FILES);
}

static void a_path_that_is_none(void)
{
	const char *first = in_scratch("stays.kprof");
	struct store_writer *w = begin(first);

	CHECK_EQ(store_writer__rotate_begin(w, in_scratch("no/such/folder"), NULL), -ENOENT);
	PUT(STORE_BEGIN, .begin = {110, 0, 1});
	CHECK_EQ(store_writer__finish(w, 200), 0);
	CHECK(look(first).complete);
}

/* Nothing is stored any more, and nothing of what later records refer to is lost. */
static void a_full_disk(void)
{
	const char *disk = in_scratch("disk"), *second = in_scratch("after.kprof");
	struct store_attr attr = {.type = STORE_ATTR_U64};
	struct store_writer *w;
	struct found s;
	int why = 0;

	if (!scratch__mount(disk, "size=600k"))
		return;
	w = begin(in_scratch("disk/full.kprof"));
	for (uint32_t i = 0; i < 200000; i++) {
		PUT(STORE_BEGIN, .begin = {200 + hash64(i) % 77777777, 0, 1});
		PUT(STORE_END, .end = {201 + hash64(i) % 77777777, 0, 0});
	}
	CHECK_EQ(store_writer__flush(w), 0);
	CHECK_EQ(store_writer__error(w), -ENOSPC);
	attr.key = store_writer__string(w, "while it was full", 17);
	CHECK_EQ(attr.key, 3);
	CHECK(store_writer__unstored(w) > 1000);
	CHECK_EQ(store_writer__rotate_begin(w, second, NULL), 0);
	store_writer__closing(w, true);
	CHECK_EQ(store_writer__rotate_end(w, 90000000, &why), 0);
	CHECK_EQ(why, -ENOSPC);
	CHECK_EQ(store_writer__error(w), 0);
	PUT(STORE_CLOCK, .clock = {90000000, 2000});
	PUT(STORE_BEGIN, .begin = {90000001, 0, 1});
	PUT(STORE_ARGS, .args = {store_writer__begins(w)}, .attrs = &attr, .nr_attrs = 1);
	CHECK_EQ(store_writer__finish(w, 90000002), 0);
	s = look(in_scratch("disk/full.kprof"));
	CHECK(!s.complete && s.of[STORE_BEGIN] > 100);
	s = look(second);
	CHECK(s.complete);
	CHECK_EQ(s.of[STORE_STRING], 3);
	CHECK_EQ(s.of[STORE_BEGIN], 1);
	CHECK_EQ(s.args_span, 1);
	umount2(disk, MNT_DETACH);
}

/* What the old file has no room for at its end is in the next one once. */
static void a_disk_that_is_full_at_the_end(void)
{
	const char *first = in_scratch("first.kprof"), *second = in_scratch("second.kprof");
	struct store_writer *w = begin(first);
	struct rlimit before, limit;
	int why = 0;
	struct found s;

	CHECK_EQ(store_writer__rotate_begin(w, second, NULL), 0);
	CHECK_EQ(store_writer__string(w, "at the end", 10), 3);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = store_writer__bytes(w);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(store_writer__flush(w), 0);
	CHECK_EQ(store_writer__error(w), -EFBIG);
	CHECK_EQ(store_writer__string(w, "after that", 10), 4);
	CHECK_EQ(store_writer__rotate_end(w, 200, &why), 0);
	CHECK_EQ(why, -EFBIG);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	CHECK_EQ(store_writer__string(w, "in the next one", 15), 5);
	CHECK_EQ(store_writer__finish(w, 300), 0);
	s = look(second);
	CHECK(s.complete);
	CHECK_EQ(s.of[STORE_STRING], 5);
}

static void clean_up(void)
{
	scratch__remove();
}

UNIT_MAIN(TEST(scratch__make), TEST(what_is_carried), TEST(spans_that_go_on), TEST(many_files),
	  TEST(a_path_that_is_none), TEST(a_full_disk), TEST(a_disk_that_is_full_at_the_end),
	  TEST(clean_up))
