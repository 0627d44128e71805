// SPDX-License-Identifier: BSD-2-Clause
/* user/sink/export.c, registry.c and kprof/: which format, which files, which processes. */
#include "sink_fixture.h"

#include "sink/sink.h"

/* Two unrelated targets (7 with a child 70, and 9 without spans), and a child 71 without spans. */
static void write_processes(const char *path)
{
	struct made m;
	uint32_t t7, t70;

	made__start(&m, path);
	made__process(&m, 7, 1, "first");
	made__process(&m, 70, 7, "child");
	made__process(&m, 71, 7, "idle");
	made__process(&m, 9, 2, "second");
	t7 = made__thread(&m, 7, 7, "main");
	made__thread(&m, 71, 71, "idle");
	t70 = made__thread(&m, 70, 70, "main");
	made__what(&m, "in 7", "", "cpu_op", 0);
	made__what(&m, "in 70", "over", "cpu_op", 0);
	made__put(&m, (struct store_record){STORE_GAP, .gap = {70, made__string(&m, "fork"),
							       made__string(&m, "late"), MONO_NS,
							       MONO_NS + 5}});
	made__begin(&m, 100, t7, 1);
	made__begin(&m, 150, t70, 2);
	made__begin(&m, 160, t70, 2);
	made__end(&m, 170, t70, KPROF_EVENT_CLOSED);
	made__end(&m, 200, t70, 0);
	made__end(&m, 300, t7, 0);
	made__finish(&m);
}

static int count(const char *path, const char *description)
{
	char *text = text_of(path);
	int n = 0;

	for (const char *at = text; (at = strstr(at, description)); at++)
		n++;
	free(text);
	return n;
}

static void formats_by_suffix(void)
{
	CHECK(sink_find("a.json", NULL) == &sink_chrome);
	CHECK(sink_find("x.pt.trace.json.gz", NULL) == &sink_chrome);
	CHECK(sink_find("dir.json/a.kprof", NULL) == &sink_kprof);
	CHECK(sink_find("-", NULL) == &sink_chrome);
	CHECK(sink_find("anything", "kprof") == &sink_kprof);
	CHECK(sink_find("a.b.svg", NULL) == &sink_flame);
	CHECK(sink_find("a.folded", NULL) == &sink_folded);
	CHECK(sink_find("a.speedscope.json", NULL) == &sink_speedscope); /* no Chrome trace */
	CHECK(sink_find("a.pb.gz", NULL) == &sink_pprof);
	CHECK(!sink_find("a.json", "vtune"));
	CHECK(strstr(kprof_error_cause(), "'vtune'"));
	CHECK_EQ(kprof_export_check_path("a.json.gz"), 0);
	CHECK_STR(kprof_error_cause(), "");
	CHECK_EQ(kprof_export_check_path("a.gz"), -EINVAL);
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK(strstr(kprof_error_cause(), "'a.gz'"));
	CHECK(strstr(kprof_error_hint(), ".json, .json.gz (chrome)"));
	CHECK(strstr(kprof_error_hint(), ".kprof, "));
	CHECK(strstr(kprof_error_hint(), ".svg (flame)"));
	CHECK(strstr(kprof_error_hint(), ".pb.gz (pprof)")); /* the last one: nothing is cut off */
	CHECK(strlen(kprof_error_hint()) < 180);
	CHECK_EQ(kprof_export_check_path("folder/"), -EISDIR);
	CHECK(strstr(kprof_error_cause(), "folder/ is a directory"));
	CHECK_EQ(kprof_export_check_path("/"), -EISDIR);
	CHECK_EQ(kprof_export_check_path("."), -EISDIR);
	CHECK_EQ(kprof_export_check_path(""), -EINVAL);
	CHECK_EQ(kprof_export_check_path("json"), -EINVAL);
	CHECK(kprof_export_of_samples("a.svg") && kprof_export_of_samples("a.pb.gz"));
	CHECK(!kprof_export_of_samples("a.json") && !kprof_export_of_samples("a.kprof"));
	CHECK(!kprof_export_of_samples("a.txt") && !kprof_export_of_samples(NULL));
}

static void refused(void)
{
	const char *in = in_scratch("p.kprof");

	write_processes(in);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){0}), -EINVAL);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = in_scratch("x.txt")}), -EINVAL);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = in_scratch("x.json"),
							  .gzip_level = 10}),
		 -EINVAL);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = in_scratch("x.json"), .pid = 8}),
		 -ESRCH);
	CHECK(strstr(kprof_error_cause(), "process 8 "));
	CHECK(!file_exists(in_scratch("x.json")));
	CHECK(!file_exists(in_scratch("x.txt")));
	CHECK(export_as(in, (struct kprof_export_opts){.path = in_scratch("none/x.json")}) < 0);
	CHECK(kprof_error_hint());
}

static void one_process(void)
{
	const char *out = in_scratch("one.json");

	write_processes(in_scratch("p.kprof"));
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = out, .pid = 70}),
		 0);
	CHECK_EQ(count(out, "\"in 70\""), 2);
	CHECK_EQ(count(out, "\"in 7\""), 0);
	CHECK_EQ(count(out, "\"pid\":7,"), 0);
	CHECK_EQ(count(out, "\"Op count\":2"), 1);
	CHECK_EQ(count(out, "\"reason\": \"late\""), 1);
	CHECK_EQ(
		export_as(in_scratch("p.kprof"), (struct kprof_export_opts){.path = out, .pid = 7}),
		0);
	CHECK_EQ(count(out, "\"in 70\""), 0);
	CHECK_EQ(count(out, "\"in 7\""), 1);
	CHECK_EQ(count(out, "\"reason\": \"late\""), 0);
}

struct told {
	int wrote, calls, cancel_at;
	uint64_t last, total;
	bool backwards;
	char paths[512];
};

static void on_wrote(void *ctx, const char *path)
{
	struct told *told = ctx;
	size_t at = strlen(told->paths);

	told->wrote++;
	snprintf(told->paths + at, sizeof(told->paths) - at, "%s ", strrchr(path, '/') + 1);
}

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct told *told = ctx;

	told->calls++;
	told->backwards |= done > total;
	if (told->total == total) /* more passes than thought: then it is a smaller share */
		told->backwards |= done < told->last;
	told->last = done;
	told->total = total;
	return told->calls == told->cancel_at;
}

static void file_per_process(void)
{
	struct told told = {0};

	write_processes(in_scratch("p.kprof"));
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a%p.%p.json"),
						      .wrote = on_wrote,
						      .ctx = &told}),
		 0);
	CHECK_STR(told.paths, "a7.7.json a70.70.json a9.9.json ");
	CHECK(!file_exists(in_scratch("a71.71.json")));
	CHECK_EQ(count(in_scratch("a70.70.json"), "\"in 70\""), 2);
	CHECK_EQ(count(in_scratch("a7.7.json"), "\"ph\":\"X\""), 2); /* its span and the window */
	CHECK_EQ(count(in_scratch("a9.9.json"), "\"ph\":\"X\""), 1);
}

static void standard_output(void)
{
	const char *out = in_scratch("stdout.json");
	int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), saved = dup(STDOUT_FILENO);
	struct told told = {0};

	write_processes(in_scratch("p.kprof"));
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	CHECK_EQ(
		export_as(in_scratch("p.kprof"),
			  (struct kprof_export_opts){.path = "-", .wrote = on_wrote, .ctx = &told}),
		0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	CHECK_EQ(told.wrote, 0);
	CHECK_EQ(count(out, "\"in 70\""), 2);
	cJSON_Delete(trace_of(out));
}

struct event_sum {
	uint64_t n, hash;
};

static int sum_event(void *ctx, const struct kprof_event *e)
{
	struct event_sum *sum = ctx;
	uint64_t h = hash64(e->start_mono_ns);

	h = hash64(h ^ e->end_mono_ns);
	h = hash64(h ^ e->self_ns);
	h = hash64(h ^ ((uint64_t)e->pid << 32 | (uint32_t)e->tid));
	h = hash64(h ^ e->flags);
	h = hash64(h ^ e->parent_id);
	for (const char *p = e->name; *p; p++)
		h = hash64(h ^ (uint8_t)*p);
	for (const char *p = e->overload; *p; p++)
		h = hash64(h ^ (uint8_t)*p);
	sum->n++;
	sum->hash ^= hash64(h ^ e->id);
	return 0;
}

static struct event_sum sum_of(const char *path, struct kprof_capture_info *info)
{
	struct event_sum sum = {0};
	struct kprof_capture *c = NULL;

	CHECK_EQ(kprof_capture_open(path, &c), 0);
	if (!c)
		return sum;
	CHECK_EQ(kprof_capture_events(c, sum_event, &sum), 0);
	*info = *kprof_capture_info(c);
	kprof_capture_close(c);
	return sum;
}

static void capture_copied(void)
{
	struct kprof_capture_info a_info = {0}, b_info = {0};
	struct event_sum a, b;

	write_processes(in_scratch("p.kprof"));
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("q.kprof")}),
		 0);
	a = sum_of(in_scratch("p.kprof"), &a_info);
	b = sum_of(in_scratch("q.kprof"), &b_info);
	CHECK_EQ(a.n, 3);
	CHECK_EQ(a.n, b.n);
	CHECK(a.hash == b.hash);
	CHECK(b_info.complete);
	CHECK_EQ(a_info.start_real_ns, b_info.start_real_ns);
	CHECK_EQ(a_info.end_mono_ns, b_info.end_mono_ns);
	CHECK_EQ(a_info.nr_processes, b_info.nr_processes);
	CHECK_EQ(a_info.nr_gaps, b_info.nr_gaps);
	/* And over itself. */
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("p.kprof")}),
		 0);
	CHECK(sum_of(in_scratch("p.kprof"), &a_info).hash == b.hash);
}

static void capture_of_one_process(void)
{
	struct kprof_capture_info info = {0};
	struct kprof_capture *c = NULL;

	write_processes(in_scratch("p.kprof"));
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("%p.kprof"), .pid = 70}),
		 0);
	CHECK_EQ(sum_of(in_scratch("70.kprof"), &info).n, 2);
	CHECK_EQ(info.nr_processes, 1);
	CHECK_EQ(info.nr_threads, 1);
	CHECK_EQ(info.nr_gaps, 1);
	CHECK_EQ(kprof_capture_open(in_scratch("70.kprof"), &c), 0);
	CHECK_STR(kprof_capture_meta(c, "only_pid"), "70");
	CHECK_EQ(kprof_capture_source(c, 0)->fired, 9);
	kprof_capture_close(c);
	/* As a trace it is the same as the process out of the whole. */
	CHECK_EQ(export_as(in_scratch("70.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("70.json")}),
		 0);
	CHECK_EQ(count(in_scratch("70.json"), "\"in 70\""), 2);
	CHECK_EQ(count(in_scratch("70.json"), "\"Overload\":\"over\",\"end\":\"closed\""), 1);
}

static void copy_of_a_cut_capture(void)
{
	struct kprof_capture_info a_info = {0}, b_info = {0};
	struct event_sum a, b;
	size_t bytes;
	uint8_t *data;

	write_processes(in_scratch("p.kprof"));
	data = slurp(in_scratch("p.kprof"), &bytes);
	spit(in_scratch("cut.kprof"), data, bytes - 1);
	free(data);
	CHECK_EQ(export_as(in_scratch("cut.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("whole.kprof")}),
		 0);
	a = sum_of(in_scratch("cut.kprof"), &a_info);
	b = sum_of(in_scratch("whole.kprof"), &b_info);
	CHECK_EQ(a.n, b.n);
	CHECK(a.hash == b.hash);
	CHECK(!b_info.complete);
	CHECK_EQ(b_info.lost_bytes, 0);
}

static void progress(void)
{
	struct told told = {0};
	struct made m;
	uint32_t thread;

	made__start(&m, in_scratch("big.kprof"));
	made__process(&m, 7, 1, "p");
	thread = made__thread(&m, 7, 7, "t");
	made__what(&m, "op", "", "cpu_op", 0);
	for (uint64_t i = 0; i < 300000; i++) {
		made__begin(&m, i * 100, thread, 1);
		made__end(&m, i * 100 + hash64(i) % 90, thread, 0);
	}
	made__finish(&m);
	for (int i = 0; i < 3; i++) {
		static const char *const out[] = {"big.json", "big2.kprof", "big%p.json.gz"};

		told = (struct told){0};
		CHECK_EQ(export_as(in_scratch("big.kprof"),
				   (struct kprof_export_opts){.path = in_scratch(out[i]),
							      .gzip_level = 1,
							      .progress = on_progress,
							      .wrote = on_wrote,
							      .ctx = &told}),
			 0);
		CHECK(told.calls >= 3);
		CHECK(!told.backwards);
		CHECK_EQ(told.wrote, 1);
	}
	for (int i = 0; i < 4; i++) { /* in the first pass, and in the one that writes */
		static const char *const out[] = {"no.json", "no.kprof", "no%p.json", "no%p.json"};

		told = (struct told){.cancel_at = i == 3 ? 7 : 2};
		CHECK_EQ(export_as(in_scratch("big.kprof"),
				   (struct kprof_export_opts){.path = in_scratch(out[i]),
							      .progress = on_progress,
							      .wrote = on_wrote,
							      .ctx = &told}),
			 -ECANCELED);
		CHECK_EQ(told.calls, told.cancel_at);
		CHECK_EQ(told.wrote, 0);
	}
	CHECK(!file_exists(in_scratch("no.json")));
	CHECK(!file_exists(in_scratch("no.kprof")));
	CHECK(!file_exists(in_scratch("no7.json")));
}

/* A full disk: the error comes back, and no half of a file. */
static void disk_full(void)
{
	write_processes(in_scratch("p.kprof"));
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = "/dev/full", .format = "chrome"}),
		 -ENOSPC);
	CHECK(kprof_error_hint());
}

static void setup(void)
{
	scratch__make();
}

UNIT_MAIN(TEST(setup), TEST(formats_by_suffix), TEST(refused), TEST(one_process),
	  TEST(file_per_process), TEST(standard_output), TEST(capture_copied),
	  TEST(capture_of_one_process), TEST(copy_of_a_cut_capture), TEST(progress),
	  TEST(disk_full), TEST(scratch__remove))
