// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/timeline/capture.c: the public library on a real file, whole, cut short, and no
 * capture at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "kprof.h"
#include "store/store.h"

#define ROUNDS 100000

static char path[] = "/tmp/kprof-model-XXXXXX/c.kprof";

static void make_dir(void)
{
	char *name = strrchr(path, '/');

	*name = '\0';
	if (!mkdtemp(path))
		abort();
	*name = '/';
}

static void remove_dir(void)
{
	char *name = strrchr(path, '/');

	unlink(path);
	*name = '\0';
	rmdir(path);
	strcpy(name - 6, "XXXXXX");
	*name = '/';
}

static void put(struct store_writer *w, struct store_record r)
{
	if (store_writer__put(w, &r)) {
		printf("# %s\n", kprof_error_cause());
		exit(1);
	}
}

static uint32_t string(struct store_writer *w, const char *text)
{
	return store_writer__string(w, text, strlen(text));
}

static void put_tables(struct store_writer *w)
{
	uint32_t ops = string(w, "operators"), main_name = string(w, "python3");
	uint32_t linear = string(w, "aten::linear"), addmm = string(w, "aten::addmm");
	uint32_t cpu_op = string(w, "cpu_op"), why = string(w, "not loaded yet");

	put(w, (struct store_record){.type = STORE_CLOCK, .clock = {1000, 7000001000}});
	put(w, (struct store_record){.type = STORE_META, .meta = {"host", "\"box\""}});
	put(w, (struct store_record){
		       .type = STORE_PROCESS,
		       .process = {.pid = 42, .ppid = 1, .comm = main_name, .start_ns = 1000}});
	put(w, (struct store_record){
		       .type = STORE_THREAD,
		       .thread = {.pid = 42, .tid = 43, .name = main_name, .start_ns = 1000}});
	put(w, (struct store_record){.type = STORE_SOURCE, .source = {.name = ops}});
	put(w, (struct store_record){.type = STORE_DESCRIPTION,
				     .description = {.id = 1, .name = linear, .category = cpu_op}});
	put(w, (struct store_record){.type = STORE_DESCRIPTION,
				     .description = {.id = 2, .name = addmm, .category = cpu_op}});
	put(w, (struct store_record){.type = STORE_GAP,
				     .gap = {.pid = 42,
					     .what = ops,
					     .reason = why,
					     .start_ns = 1000,
					     .end_ns = 1500}});
}

/* ROUNDS times linear (30 ns) around addmm (10 ns), one round every 100 ns from 2000 on. */
static void write_capture(void)
{
	struct store_writer *w;

	make_dir();
	if (store_writer__open(path, NULL, &w))
		exit(1);
	put_tables(w);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = 2000 + 100 * i;

		put(w, (struct store_record){.type = STORE_BEGIN, .begin = {at, 0, 1}});
		put(w, (struct store_record){.type = STORE_BEGIN, .begin = {at + 10, 0, 2}});
		put(w, (struct store_record){.type = STORE_END, .end = {at + 20, 0, 0}});
		put(w, (struct store_record){.type = STORE_END, .end = {at + 30, 0, 0}});
	}
	put(w, (struct store_record){.type = STORE_SOURCE,
				     .source = {.name = 1,
						.fired = 2 * ROUNDS + 5,
						.captured = 2 * ROUNDS,
						.dropped = 5,
						.begins = 2 * ROUNDS,
						.ends_exact = 2 * ROUNDS}});
	if (store_writer__finish(w, 2000 + 100 * ROUNDS))
		exit(1);
}

struct sums {
	uint64_t events, self_ns, outermost_ns, bad;
};

static int sum(void *ctx, const struct kprof_event *e)
{
	struct sums *s = ctx;

	s->events++;
	s->self_ns += e->self_ns;
	if (!e->parent_id)
		s->outermost_ns += e->end_mono_ns - e->start_mono_ns;
	else if (!e->parent_name || strcmp(e->parent_name, "aten::linear"))
		s->bad++;
	if (e->pid != 42 || e->tid != 43 || strcmp(e->category, "cpu_op") || *e->overload)
		s->bad++;
	return 0;
}

static void whole(void)
{
	const struct kprof_capture_info *info;
	struct kprof_capture *c;
	struct kprof_result *r;
	struct kprof_tree *t;
	struct sums s = {0};

	write_capture();
	CHECK_EQ(kprof_capture_open(path, &c), 0);
	info = kprof_capture_info(c);
	CHECK(info->complete);
	CHECK_EQ(info->lost_bytes, 0);
	CHECK_EQ(info->events, 2 * ROUNDS);
	CHECK_EQ(info->start_mono_ns, 1000);
	CHECK_EQ(info->end_mono_ns, 2000 + 100 * ROUNDS);
	CHECK_EQ(info->start_real_ns, 7000001000);
	CHECK_EQ(info->nr_processes, 1);
	CHECK_EQ(info->nr_threads, 1);
	CHECK_STR(kprof_capture_meta(c, "host"), "\"box\"");
	CHECK(!kprof_capture_meta(c, "rank"));
	CHECK_EQ(kprof_capture_source(c, 0)->fired, 2 * ROUNDS + 5);
	CHECK(!kprof_capture_source(c, 1));
	CHECK_STR(kprof_capture_gap(c, 0)->reason, "not loaded yet");
	CHECK(!kprof_capture_gap(c, 1));

	CHECK_EQ(kprof_capture_events(c, sum, &s), 0);
	CHECK_EQ(s.events, 2 * ROUNDS);
	CHECK_EQ(s.self_ns, 30 * ROUNDS);
	CHECK_EQ(s.outermost_ns, 30 * ROUNDS);
	CHECK_EQ(s.bad, 0);

	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	CHECK_STR(kprof_result_row(r, 0)->name, "aten::linear");
	CHECK_EQ(kprof_result_row(r, 0)->self_ns, 20 * ROUNDS);
	CHECK_EQ(kprof_result_row(r, 1)->total_ns, 10 * ROUNDS);
	CHECK_EQ(kprof_tree_new(c, &t), 0);
	CHECK_EQ(kprof_tree_root(t)->first_child->first_child->calls, ROUNDS);
	kprof_tree_free(t);
	kprof_result_free(r);
	kprof_capture_close(c);
	remove_dir();
}

/* Cut anywhere: it opens, says so, and counts what is there. */
static void cut(void)
{
	struct stat st;
	uint64_t last = 2 * ROUNDS - 1;

	write_capture();
	if (stat(path, &st))
		abort();
	for (int i = 7; i > 0; i--) {
		struct kprof_capture *c;
		struct sums s = {0};

		if (truncate(path, st.st_size * i / 8))
			abort();
		CHECK_EQ(kprof_capture_open(path, &c), 0);
		CHECK(!kprof_capture_info(c)->complete);
		CHECK_EQ(kprof_capture_events(c, sum, &s), 0);
		CHECK(s.events <= last);
		CHECK(i < 7 || s.events);
		CHECK_EQ(s.events, kprof_capture_info(c)->events);
		CHECK_EQ(s.bad, 0);
		CHECK_EQ(s.self_ns, s.outermost_ns);
		if (s.events) {
			const struct kprof_source *src = kprof_capture_source(c, 0);

			CHECK_EQ(src->begins, s.events);
			CHECK_EQ(src->ends_exact + src->ends_window, s.events);
		}
		last = s.events;
		kprof_capture_close(c);
	}
	remove_dir();
}

static void refused(void)
{
	struct kprof_capture *c = (void *)1;
	int fd;

	CHECK_EQ(kprof_capture_open("/nonexistent/c.kprof", &c), -ENOENT);
	CHECK(!c);
	CHECK(*kprof_error_cause());
	make_dir();
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK_EQ(write(fd, "no capture, whatever its name", 29), 29);
	close(fd);
	CHECK_EQ(kprof_capture_open(path, &c), -EINVAL);
	CHECK(!c);
	CHECK(*kprof_error_cause());
	remove_dir();
	kprof_capture_close(NULL);
}

static void version(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", KPROF_VERSION_MAJOR, KPROF_VERSION_MINOR,
		 KPROF_VERSION_PATCH);
	CHECK_STR(kprof_version(), text);
}

UNIT_MAIN(TEST(whole), TEST(cut), TEST(refused), TEST(version))
