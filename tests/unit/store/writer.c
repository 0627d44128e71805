// SPDX-License-Identifier: BSD-2-Clause
/* What is written comes back the same; what cannot be written is said, and nothing else is lost. */
#include <signal.h>
#include <sys/resource.h>

#include "store/records.h"
#include "store_fixture.h"

static void round_trip_of_every_record(void)
{
	const char *path = in_scratch("every.kprof");
	struct store_writer *w = new_writer(path);
	struct store_reader *r;
	struct store_record got, finish = {STORE_FINISH, .finish = {77}};
	struct store_reader_info info;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, ARRAY_SIZE(sample_events));
	put_all(w, sample_details, ARRAY_SIZE(sample_details));
	CHECK_EQ(store_writer__begins(w), 4);
	CHECK_EQ(store_writer__finish(w, 77), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	for (int pass = 0; pass < 2; pass++) { /* rewound, it all comes again */
		for (size_t i = 0; i < ARRAY_SIZE(sample_tables); i++) {
			CHECK_EQ(store_reader__next(r, &got), 1);
			CHECK(records_equal(&got, &sample_tables[i]));
		}
		for (size_t i = 0; i < ARRAY_SIZE(sample_details); i++) {
			CHECK_EQ(store_reader__next(r, &got), 1);
			CHECK(records_equal(&got, &sample_details[i]));
		}
		for (size_t i = 0; i < ARRAY_SIZE(sample_events); i++) {
			CHECK_EQ(store_reader__next(r, &got), 1);
			CHECK(records_equal(&got, &sample_events[i]));
		}
		CHECK_EQ(store_reader__next(r, &got), 1);
		CHECK(records_equal(&got, &finish));
		CHECK_EQ(store_reader__next(r, &got), 0);
		CHECK_EQ(store_reader__next(r, &got), 0);
		store_reader__info(r, &info);
		CHECK(info.complete);
		CHECK_EQ(info.lost_bytes, 0);
		CHECK_EQ(info.read_bytes, info.size_bytes);
		CHECK_EQ(info.major, STORE_FORMAT_MAJOR);
		CHECK_EQ(info.begins, 4);
		store_reader__rewind(r, STORE_READ_ALL);
	}
	store_reader__close(r);
}

/* xorshift: the same numbers in writer and check. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct store_record random_event(uint64_t *state, uint64_t *time_ns, uint32_t descriptions)
{
	uint64_t x = random_next(state);
	struct store_record r = {0};

	*time_ns += x % 64 == 0 ? (x >> 8) % 10000000 : (x >> 8) % 5000;
	if (x % 97 == 0)
		*time_ns -= (x >> 20) % 1000;
	if (x & 1) {
		r.type = STORE_BEGIN;
		r.begin.time_ns = *time_ns;
		r.begin.thread = (x >> 40) % 2;
		r.begin.description = 1 + (uint32_t)((x >> 45) % descriptions);
	} else {
		r.type = STORE_END;
		r.end.time_ns = *time_ns;
		r.end.thread = (x >> 40) % 2;
		r.end.flags = x % 101 == 0 ? KPROF_EVENT_CLOSED : 0;
	}
	return r;
}

enum { MANY = 400000, TABLE_EVERY = 1000 };

static struct store_record extra_what(uint32_t id)
{
	return (struct store_record){STORE_DESCRIPTION, .description = {id, 1, 2, 3, 0, 0}};
}

/* Many chunks, with new table entries in between that the very next event may use. */
static void many_events_over_many_chunks(void)
{
	const char *path = in_scratch("many.kprof");
	struct store_writer *w = new_writer(path);
	uint64_t state = 88172645463325252ull, time_ns = 1ull << 50;
	struct store_record r, got;
	struct store_reader *reader;
	struct store_reader_info info, tables_info;
	struct seen seen, tables_seen;
	uint32_t descriptions = 2;
	size_t nr = 0;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	for (int i = 0; i < MANY; i++) {
		if (i % TABLE_EVERY == 0) {
			r = extra_what(++descriptions);
			CHECK_EQ(store_writer__put(w, &r), 0);
		}
		r = random_event(&state, &time_ns, descriptions);
		CHECK_EQ(store_writer__put(w, &r), 0);
	}
	CHECK(store_writer__bytes(w) > 4 * 100000); /* chunks went out on the way */
	CHECK_EQ(store_writer__finish(w, time_ns), 0);

	CHECK_EQ(store_reader__open(path, &reader), 0);
	state = 88172645463325252ull;
	time_ns = 1ull << 50;
	descriptions = 2;
	while (store_reader__next(reader, &got) == 1) {
		if (got.type != STORE_BEGIN && got.type != STORE_END)
			continue;
		if (nr % TABLE_EVERY == 0)
			descriptions++;
		nr++;
		r = random_event(&state, &time_ns, descriptions);
		CHECK(records_equal(&r, &got));
	}
	CHECK_EQ(nr, MANY);
	CHECK_EQ(read_all(reader, STORE_READ_ALL, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(read_all(reader, STORE_READ_TABLES, &tables_seen, &tables_info), 0);
	CHECK(tables_info.complete);
	CHECK_EQ(tables_info.begins, seen.begins);
	CHECK_EQ(tables_seen.begins, 0);
	CHECK_EQ(tables_seen.records, seen.records - MANY);
	store_reader__close(reader);
}

/*
 * Numbers and lists of keys that repeat, more lists than a chunk remembers, and chunks of details
 * only.
 */
static void make_detail(uint64_t *state, uint64_t begun, struct store_attr *attrs,
			struct store_record *r)
{
	uint64_t x = random_next(state);
	uint32_t list = x >> 8 & 7 ? x >> 11 & 15 : x >> 11 & 255; /* some lists are common */

	*r = sample_details[x % ARRAY_SIZE(sample_details)];
	if (r->type == STORE_ARGS)
		r->args.span = begun - (x >> 20) % (begun < 50 ? begun : 50);
	if (r->type == STORE_ACTIVITY)
		r->activity.correlation = x >> 30;
	r->attrs = attrs;
	r->nr_attrs = list % (STORE_MAX_ATTRS + 1);
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		attrs[i] = sample_attrs[(list + i) % ARRAY_SIZE(sample_attrs)];
		if (attrs[i].type == STORE_ATTR_U64)
			attrs[i].value = x >> 40;
	}
}

enum { MANY_DETAILS = 60000 };

static void many_details_over_many_chunks(void)
{
	const char *path = in_scratch("details.kprof");
	struct store_writer *w = new_writer(path);
	uint64_t state = 88172645463325252ull, begun = 0, nr = 0;
	struct store_attr attrs[STORE_MAX_ATTRS];
	struct store_record r, got;
	struct store_reader *reader;
	struct store_reader_info info;
	struct seen seen;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, 1);
	for (uint64_t i = 0; i < MANY_DETAILS; i++) {
		if (i % 7 == 0)
			put_all(w, sample_events, 1);
		make_detail(&state, store_writer__begins(w), attrs, &r);
		CHECK_EQ(store_writer__put(w, &r), 0);
	}
	CHECK_EQ(store_writer__finish(w, 1), 0);

	CHECK_EQ(store_reader__open(path, &reader), 0);
	store_reader__rewind(reader, STORE_READ_DETAILS);
	state = 88172645463325252ull;
	begun = 1;
	while (store_reader__next(reader, &got) == 1) {
		if (record_kinds[got.type].chunk != STORE_CHUNK_DETAILS)
			continue;
		begun += nr++ % 7 == 0;
		make_detail(&state, begun, attrs, &r);
		CHECK(records_equal(&r, &got));
	}
	CHECK_EQ(nr, MANY_DETAILS);
	store_reader__info(reader, &info);
	CHECK(info.complete);
	CHECK_EQ(info.begins, begun); /* passed over */
	CHECK_EQ(read_all(reader, STORE_READ_ALL, &seen, &info), 0);
	CHECK_EQ(seen.details, MANY_DETAILS);
	CHECK_EQ(seen.begins, begun);
	CHECK_EQ(read_all(reader, STORE_READ_TABLES, &seen, &info), 0);
	CHECK_EQ(seen.details, 0);
	CHECK_EQ(info.begins, begun);
	store_reader__close(reader);
}

static void strings_are_written_once(void)
{
	const char *path = in_scratch("strings.kprof");
	struct store_writer *w = new_writer(path);
	struct store_record direct = {STORE_STRING, .string = {3, 5, "three"}};
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;
	char *huge;

	CHECK_EQ(store_writer__string(w, "", 0), 0);
	CHECK_EQ(store_writer__string(w, "one", 3), 1);
	CHECK_EQ(store_writer__string(w, "one", 2), 2); /* "on" */
	CHECK_EQ(store_writer__put(w, &direct), 0);
	CHECK_EQ(store_writer__string(w, "three", 5), 3);
	CHECK_EQ(store_writer__string(w, "one\0two", 7), 1);
	for (int i = 0; i < 20000; i++) {
		char name[16];
		int len = snprintf(name, sizeof(name), "s%d", i % 10000);

		CHECK_EQ(store_writer__string(w, name, (size_t)len), 4 + i % 10000);
	}
	huge = malloc(1 << 21);
	memset(huge, 'x', 1 << 21);
	CHECK_EQ(store_writer__string(w, huge, 1 << 21), 0);
	CHECK(strstr(kprof_error_cause(), "does not fit"));
	CHECK_EQ(store_writer__string(w, huge, 1000000), 10004);
	free(huge);
	CHECK_EQ(store_writer__finish(w, 1), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(seen.strings, 10004);
	store_reader__close(r);
}

#define BAD_ATTR(...) .attrs = &(const struct store_attr){__VA_ARGS__}, .nr_attrs = 1

static void wrong_references_are_refused(void)
{
	const struct store_record bad[] = {
		{STORE_STRING, .string = {6, 1, "x"}}, /* 5 is next */
		{STORE_STRING, .string = {1, 1, "x"}}, /* defined */
		{STORE_STRING, .string = {5, 3, "a\0b"}},
		{STORE_META, .meta = {"", "1"}},
		{STORE_PROCESS, .process = {1, 1, 1, 5, 0, 0, 0}},
		{STORE_PROCESS, .process = {1, 1, 1, 0, 5, 0, 0}},
		{STORE_THREAD, .thread = {3, 1, 1, 0, 0, 0}},
		{STORE_THREAD, .thread = {UINT32_MAX, 1, 1, 0, 0, 0}},
		{STORE_THREAD, .thread = {0, 1, 1, 5, 0, 0}},
		{STORE_SOURCE, .source = {2, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{STORE_SOURCE, .source = {0, 5, 0, 0, 0, 0, 0, 0, 0, 0}},
		{STORE_DESCRIPTION, .description = {0, 1, 1, 1, 0, 0}},
		{STORE_DESCRIPTION, .description = {4, 1, 1, 1, 0, 0}},
		{STORE_DESCRIPTION, .description = {3, 5, 1, 1, 0, 0}},
		{STORE_DESCRIPTION, .description = {3, 1, 5, 1, 0, 0}},
		{STORE_DESCRIPTION, .description = {3, 1, 1, 5, 0, 0}},
		{STORE_DESCRIPTION, .description = {3, 1, 1, 1, 1, 0}},
		{STORE_BEGIN, .begin = {1, 2, 1}},
		{STORE_BEGIN, .begin = {1, 0, 0}},
		{STORE_BEGIN, .begin = {1, 0, 3}},
		{STORE_END, .end = {1, 2, 0}},
		{STORE_GAP, .gap = {1, 5, 0, 0, 0}},
		{STORE_GAP, .gap = {1, 0, 5, 0, 0}},
		{STORE_ARGS, .args = {0}},
		{STORE_ARGS, .args = {3}}, /* 2 have begun */
		{STORE_ACTIVITY, .activity = {.name = 5}},
		{STORE_ACTIVITY, .activity = {.start_ns = 1ull << 63}},
		{STORE_ACTIVITY, .activity = {.queued_ns = 1ull << 63}},
		{STORE_API, .api = {.thread = 2}},
		{STORE_API, .api = {.name = 5}},
		{STORE_INSTANT, .instant = {1, 2, 1}},
		{STORE_INSTANT, .instant = {1, 0, 0}},
		{STORE_INSTANT, .instant = {1, 0, 3}},
		{STORE_COUNTER, .counter = {.name = 5}},
		{STORE_ARGS, .args = {1}, BAD_ATTR(0, 1, 1)},
		{STORE_ARGS, .args = {1}, BAD_ATTR(5, 1, 1)},
		{STORE_ARGS, .args = {1}, BAD_ATTR(1, 0, 1)},
		{STORE_ARGS, .args = {1}, BAD_ATTR(1, STORE_ATTR_COUNT + 1, 1)},
		{STORE_ACTIVITY, .activity = {1}, BAD_ATTR(1, STORE_ATTR_STRING, 5)},
		{STORE_API, .api = {0}, BAD_ATTR(1, STORE_ATTR_JSON, 1ull << 32)},
		{STORE_COUNTER, .counter = {1}, BAD_ATTR(9, 1, 1)},
		{STORE_INSTANT, .instant = {1, 0, 1}, .attrs = sample_attrs, .nr_attrs = 33},
		{STORE_ARGS, .args = {1}, BAD_ATTR(1, STORE_ATTR_STACK, 4)},
		{STORE_ARGS, .args = {1}, BAD_ATTR(1, STORE_ATTR_STACK, 1ull << 32)},
		{STORE_MODULE, .module = {2, 0, 1, 0}}, /* 3 is next */
		{STORE_MODULE, .module = {4, 0, 1, 0}},
		{STORE_MODULE, .module = {3, 0, 5, 0}},
		{STORE_MODULE, .module = {3, 0, 1, 5}},
		{STORE_FRAME, .frame = {0, 1, 1, 0, 0, 0, NULL}},
		{STORE_FRAME, .frame = {5, 1, 1, 0, 0, 0, NULL}}, /* 4 is next */
		{STORE_FRAME, .frame = {4, 1, 3, 0, 0, 0, NULL}},
		{STORE_FRAME, .frame = {4, 1, 1, 0, 5, 0, NULL}},
		{STORE_FRAME, .frame = {4, 1, 1, 0, 0, 1, &(const struct store_line){5, 0, 0, 0}}},
		{STORE_FRAME, .frame = {1, 1, 1, 0, 0, 1, &(const struct store_line){0, 5, 0, 0}}},
		{STORE_FRAME, .frame = {4, 1, 1, 0, 0, STORE_MAX_LINES + 1, sample_lines}},
		{STORE_STACK, .stack = {3, 1, 1}}, /* 4 is next */
		{STORE_STACK, .stack = {5, 1, 1}},
		{STORE_STACK, .stack = {4, 4, 1}}, /* its own parent */
		{STORE_STACK, .stack = {4, 5, 1}},
		{STORE_STACK, .stack = {4, 1, 0}},
		{STORE_STACK, .stack = {4, 1, 4}},
		{STORE_THREAD_NAME, .thread_name = {2, 1}},
		{STORE_THREAD_NAME, .thread_name = {0, 5}},
		{STORE_SAMPLE, .sample = {1, 2, 1, 1, 0}},
		{STORE_SAMPLE, .sample = {1, 0, 4, 1, 0}},
		{STORE_SAMPLE, .sample = {1, 0, 1, 1, 0}, BAD_ATTR(9, 1, 1)},
		{STORE_FINISH, .finish = {1}},
		{(enum store_type)99, .finish = {1}},
	};
	const char *path = in_scratch("refused.kprof");
	struct store_writer *w = new_writer(path);
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, 2);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (store_writer__put(w, &bad[i]) != -EINVAL) {
			printf("# record %zu was not refused\n", i);
			CHECK(false);
		}
	}
	put_all(w, sample_events, ARRAY_SIZE(sample_events)); /* it goes on */
	CHECK_EQ(store_writer__finish(w, 1), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
	CHECK_EQ(seen.records, ARRAY_SIZE(sample_tables) + 2 + ARRAY_SIZE(sample_events) + 1);
	CHECK_EQ(seen.details, 0);
	CHECK_EQ(seen.stacks, 3);
	store_reader__close(r);
}

/* Times are stored as differences from the record before: a refused one must not be that. */
static void what_is_refused_leaves_no_trace(void)
{
	const struct store_record good = {STORE_ACTIVITY,
					  .activity = {.start_ns = 100, .end_ns = 200}};
	const struct store_record bad = {
		STORE_ACTIVITY, .activity = {.start_ns = 5000, .end_ns = 6000, .name = 99}};
	const char *path = in_scratch("no_trace.kprof");
	struct store_writer *w = new_writer(path);
	struct store_record got;
	struct store_reader *r;
	int activities = 0;

	put_all(w, &good, 1);
	CHECK_EQ(store_writer__put(w, &bad), -EINVAL);
	put_all(w, &good, 1);
	CHECK_EQ(store_writer__finish(w, 1), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	while (store_reader__next(r, &got) == 1) {
		if (got.type != STORE_ACTIVITY)
			continue;
		activities++;
		CHECK_EQ(got.activity.start_ns, 100);
		CHECK_EQ(got.activity.end_ns, 200);
	}
	CHECK_EQ(activities, 2);
	store_reader__close(r);
}

/* A reader refuses what would unpack to too much: it is stretched, not stored as it is. */
static void what_shrinks_very_much(void)
{
	static const struct store_attr zero = {1, STORE_ATTR_COUNT, 0};
	const char *path = in_scratch("shrinks.kprof");
	struct store_writer *w = new_writer(path);
	struct store_reader_info info;
	struct store_reader *r;
	struct store_record got;
	size_t counts = 0;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	for (uint64_t i = 0; i < MANY; i++) {
		const struct store_record records[] = {
			{STORE_BEGIN, .begin = {1000 + 20 * i, 1, 1}},
			{STORE_ARGS, .args = {i + 1}, .attrs = &zero, .nr_attrs = 1},
			{STORE_END, .end = {1010 + 20 * i, 1, 0}},
		};

		put_all(w, records, ARRAY_SIZE(records));
	}
	CHECK_EQ(store_writer__finish(w, 1 << 30), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	while (store_reader__next(r, &got) == 1)
		counts += got.type == STORE_ARGS && got.args.span == counts + 1 &&
			  got.nr_attrs == 1 && !got.attrs->value;
	CHECK_EQ(counts, MANY);
	store_reader__info(r, &info);
	CHECK(info.complete && !info.lost_bytes);
	CHECK(info.size_bytes < MANY / 8);
	store_reader__close(r);
}

static void flushed_is_readable_while_unfinished(void)
{
	const char *path = in_scratch("flushed.kprof");
	struct store_writer *w = new_writer(path);
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;
	struct stat st;
	char *temp;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, ARRAY_SIZE(sample_events));
	CHECK_EQ(store_writer__flush(w), 0);
	put_all(w, sample_events, ARRAY_SIZE(sample_events)); /* this is only buffered */
	CHECK(stat(path, &st) < 0);
	CHECK_EQ(store_reader__open(store_writer__temp_path(w), &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
	CHECK_EQ(seen.records, ARRAY_SIZE(sample_tables) + ARRAY_SIZE(sample_events));
	CHECK(!info.complete);
	CHECK_EQ(info.lost_bytes, 0);
	CHECK_EQ(info.size_bytes, store_writer__bytes(w));
	store_reader__close(r);
	temp = strdup(store_writer__temp_path(w));
	store_writer__discard(w);
	CHECK(stat(temp, &st) < 0 && stat(path, &st) < 0);
	free(temp);
	store_writer__discard(NULL);
}

/* Fills what can be filled. The error, and how many events were put without one. */
static int fill(struct store_writer *w, size_t *nr)
{
	uint64_t state = 88172645463325252ull, time_ns = 1000000;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	for (*nr = 0; *nr < 10 * MANY; (*nr)++) {
		struct store_record r = random_event(&state, &time_ns, 2);
		int err = store_writer__put(w, &r);

		if (err)
			return err;
	}
	return 0;
}

/* Records until the file cannot grow; what was written must read as an incomplete capture. */
static void check_full(const char *path, int want, bool finish)
{
	struct store_writer *w = new_writer(path);
	uint64_t state = 88172645463325252ull, time_ns = 1000000, bytes;
	struct store_record got, r;
	struct store_reader *reader;
	struct store_reader_info info;
	size_t nr, read = 0;

	CHECK_EQ(fill(w, &nr), want);
	CHECK(strstr(kprof_error_cause(), path));
	CHECK(kprof_error_hint());
	CHECK_EQ(store_writer__put(w, &sample_events[0]), want);
	CHECK_EQ(store_writer__flush(w), want);
	CHECK(strstr(kprof_error_cause(), strerror(-want)));
	bytes = store_writer__bytes(w);
	if (finish)
		CHECK_EQ(store_writer__finish(w, 1), want);
	else
		CHECK_EQ(store_writer__salvage(w), 0);

	CHECK_EQ(store_reader__open(path, &reader), 0);
	while (store_reader__next(reader, &got) == 1) {
		if (got.type != STORE_BEGIN && got.type != STORE_END)
			continue;
		r = random_event(&state, &time_ns, 2);
		CHECK(records_equal(&r, &got));
		read++;
	}
	store_reader__info(reader, &info);
	CHECK(!info.complete);
	CHECK_EQ(info.lost_bytes, 0); /* the chunk that did not fit was cut off */
	CHECK_EQ(info.size_bytes, bytes);
	CHECK(read > 0 && read < nr);
	store_reader__close(reader);
	unlink(path);
}

static void full_by_file_size_limit(void)
{
	struct rlimit before, limit;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 700000; /* in the middle of a chunk */
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	check_full(in_scratch("limit.kprof"), -EFBIG, false);
	check_full(in_scratch("limit2.kprof"), -EFBIG, true);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void full_disk(void)
{
	const char *disk = in_scratch("disk");

	if (!scratch__mount(disk, "size=600k"))
		return;
	check_full(in_scratch("disk/full.kprof"), -ENOSPC, false);
	check_full(in_scratch("disk/full2.kprof"), -ENOSPC, true);
	CHECK_EQ(umount(disk), 0);
}

static void salvage_keeps_what_is_buffered(void)
{
	const char *path = in_scratch("salvaged.kprof");
	struct store_writer *w = new_writer(path);
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;
	struct stat st;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, ARRAY_SIZE(sample_events));
	CHECK_EQ(store_writer__salvage(w), 0);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	CHECK_EQ(store_reader__open(path, &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
	CHECK(!info.complete);
	CHECK_EQ(seen.records, ARRAY_SIZE(sample_tables) + ARRAY_SIZE(sample_events));
	store_reader__close(r);
}

static void empty_capture(void)
{
	const char *path = in_scratch("empty.kprof");
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;

	CHECK_EQ(store_writer__finish(new_writer(path), 5), 0);
	CHECK_EQ(store_reader__open(path, &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_TABLES, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(seen.records, 1);
	store_reader__close(r);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(round_trip_of_every_record),
	  TEST(many_events_over_many_chunks), TEST(many_details_over_many_chunks),
	  TEST(strings_are_written_once), TEST(wrong_references_are_refused),
	  TEST(what_is_refused_leaves_no_trace), TEST(what_shrinks_very_much),
	  TEST(flushed_is_readable_while_unfinished), TEST(full_by_file_size_limit),
	  TEST(full_disk), TEST(salvage_keeps_what_is_buffered), TEST(empty_capture),
	  {"(clean-up)", scratch__remove})
