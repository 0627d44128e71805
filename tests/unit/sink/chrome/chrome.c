// SPDX-License-Identifier: BSD-2-Clause
/* user/sink/chrome/chrome.c: what a capture looks like as a Chrome trace, to the last character. */
#include "sink_fixture.h"

#include <zlib.h>

#include "sink/chrome/impl.h"

/* Microseconds of the window's start in the trace: half a day after its base. */
#define T0 "43200000000.000"

/* One process, one thread, spans of every sort. */
static void write_spans(const char *path)
{
	struct made m;
	uint32_t thread, add, linear, step, odd;

	made__start(&m, path);
	made__meta(&m, "host", "\"box\"");
	made__meta(&m, "version", "\"0.1.0\"");
	made__meta(&m, "kernel", "\"6.18\"");
	made__meta(&m, "command", "\"kprof attach -p 7\"");
	made__meta(&m, "overhead", "{\"probes\": 5}");
	made__meta(&m, "note", "{\"mine\": [1, 2]}");
	made__process(&m, 7, 1, "python3");
	thread = made__thread(&m, 7, 8, "worker \"1\"");
	made__own_name(&m, thread, "own");
	add = made__what(&m, "aten::add", "Tensor", "cpu_op", 0);
	linear = made__what(&m, "aten::linear", "", "cpu_op", 0);
	step = made__what(&m, "ProfilerStep#2", "", "user_annotation", 0);
	odd = made__what(&m, "a\"\n\xff", "", "cpu_op", KPROF_EVENT_UNNAMED);
	made__put(&m, (struct store_record){STORE_GAP, .gap = {7, made__string(&m, "lib\\x.so"),
							       made__string(&m, "not mapped yet"),
							       MONO_NS, MONO_NS + 1500}});
	made__begin(&m, 1, thread, linear);
	made__begin(&m, 1001, thread, add);
	made__end(&m, 2000, thread, KPROF_EVENT_CLOSED);
	made__begin(&m, 2000, thread, odd);
	made__end(&m, 2000, thread, 0);
	made__end(&m, 1000000, thread, 0);
	made__begin(&m, 2 * SEC_NS, thread, step);
	made__finish(&m);
}

static bool has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (at && at[-1] == '\n')
		return true;
	printf("# no such line: %s\n", line);
	return false;
}

static void events_to_the_letter(void)
{
	char *text;

	write_spans(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json")}),
		 0);
	text = text_of(in_scratch("a.json"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":7,"
			     "\"tid\":8,\"ts\":43200000001.001,\"dur\":0.999,\"args\":{"
			     "\"External id\":2,\"Ev Idx\":1,\"Overload\":\"Tensor\","
			     "\"end\":\"closed\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":7,"
			     "\"tid\":8,\"ts\":43200000000.001,\"dur\":999.999,\"args\":{"
			     "\"External id\":1,\"Ev Idx\":0}},\n"));
	/* No length, a name that is none. */
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\\\"\\u000a\\\\xff\","
			     "\"pid\":7,\"tid\":8,\"ts\":43200000002.000,\"dur\":0.000,\"args\":{"
			     "\"External id\":3,\"Ev Idx\":2,\"unnamed\":true}},\n"));
	/* Open when the recording ended: drawn to the edge. */
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"user_annotation\","
			     "\"name\":\"ProfilerStep#2\",\"pid\":7,\"tid\":8,"
			     "\"ts\":43202000000.000,\"dur\":8000000.000,\"args\":{"
			     "\"External id\":4,\"Ev Idx\":3,\"finished\":false}},\n"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\","
			     "\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"ts\":" T0
			     ",\"dur\":10000000.000,\"args\":{\"Op count\":4}},\n"));
	CHECK(has_line(text,
		       "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\","
		       "\"tid\":\"\",\"ts\":43210000000.000}\n]\n}\n"));
	CHECK(has_line(text,
		       "{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":" T0 ",\"pid\":7,"
		       "\"tid\":8,\"args\":{\"name\":\"thread 8 (worker \\\"1\\\") own\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"M\",\"name\":\"process_labels\",\"ts\":" T0 ",\"pid\":7,"
			     "\"tid\":0,\"args\":{\"labels\":\"CPU\"}},\n"));
	free(text);
}

static void head(void)
{
	static const char *const order[] = {
		"schemaVersion", "deviceProperties", "distributedInfo",     "host_name",
		"trace_id",      "displayTimeUnit",  "baseTimeNanoseconds", "traceName",
		"kprof",         "traceEvents",
	};
	cJSON *trace, *kprof, *source, *gap;
	const cJSON *item;
	size_t i = 0;
	char *text;

	write_spans(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json")}),
		 0);
	text = text_of(in_scratch("a.json"));
	CHECK(strstr(text, "\n  \"distributedInfo\": {\"backend\": \"\", \"rank\": 0, "
			   "\"world_size\": 1},\n"));
	CHECK(strstr(text, "\n  \"baseTimeNanoseconds\": 1728000000000000000,\n"));
	CHECK(strstr(text, "\n    \"exact_end_share\": 0.666666,\n"));
	free(text);
	trace = trace_of(in_scratch("a.json"));
	cJSON_ArrayForEach(item, trace)
	{
		CHECK(i < ARRAY_SIZE(order));
		if (i < ARRAY_SIZE(order))
			CHECK_STR(item->string, order[i++]);
	}
	CHECK_EQ(i, ARRAY_SIZE(order));
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(trace, "host_name")), "box");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(trace, "traceName")), "a.json");
	kprof = cJSON_GetObjectItem(trace, "kprof");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(kprof, "kernel")), "6.18");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(kprof, "command")), "kprof attach -p 7");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(kprof, "complete")));
	source = cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "sources"), "operators");
	CHECK_EQ(cJSON_GetNumberValue(cJSON_GetObjectItem(source, "fired")), 9);
	CHECK_EQ(cJSON_GetNumberValue(cJSON_GetObjectItem(source, "dropped")), 2);
	CHECK_EQ(cJSON_GetNumberValue(cJSON_GetObjectItem(source, "missed")), 3);
	gap = cJSON_GetArrayItem(cJSON_GetObjectItem(kprof, "gaps"), 0);
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(gap, "what")), "lib\\x.so");
	item = cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "meta"), "note");
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetObjectItem(item, "mine")), 2);
	CHECK_EQ(cJSON_GetNumberValue(
			 cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "overhead"), "probes")),
		 5);
	CHECK(!cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "meta"), "kernel"));
	CHECK(!cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "meta"), "overhead"));
	cJSON_Delete(trace);
}

/* The same capture gives the same file, byte for byte. */
static void repeatable(void)
{
	char *a, *b;

	write_spans(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json")}),
		 0);
	a = text_of(in_scratch("a.json"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json")}),
		 0);
	b = text_of(in_scratch("a.json"));
	CHECK_STR(a, b);
	free(a);
	free(b);
}

static void compressed(void)
{
	static const char name[] = "\"traceName\": \"a.json";
	static char text[1 << 16];
	char *plain, *a, *b;
	gzFile file;
	int bytes;

	write_spans(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json")}),
		 0);
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("a.json.gz")}),
		 0);
	file = gzopen(in_scratch("a.json.gz"), "rb");
	CHECK(!gzdirect(file));
	bytes = gzread(file, text, sizeof(text) - 1);
	CHECK(bytes > 0);
	text[bytes > 0 ? bytes : 0] = '\0';
	CHECK_EQ(gzclose(file), Z_OK); /* the checksum is right, nothing was cut */
	plain = text_of(in_scratch("a.json"));
	a = strstr(plain, name);
	b = strstr(text, name);
	CHECK(a && b);
	if (a && b) /* but for its own name the same */
		CHECK_STR(a + sizeof(name) - 1, b + sizeof(name) - 1 + strlen(".gz"));
	free(plain);
}

static void check_distributed(const char *meta, const char *expected)
{
	struct made m;
	char *text;

	made__start(&m, in_scratch("d.kprof"));
	if (meta)
		made__meta(&m, "distributed", meta);
	made__meta(&m, "a", "{\"rank\": 99}");
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("d.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("d.json")}),
		 0);
	text = text_of(in_scratch("d.json"));
	if (!strstr(text, expected)) {
		printf("# %.400s\n", text);
		CHECK(!"distributedInfo as expected");
	}
	CHECK(strstr(text, "\"rank\": ") < strstr(text, "\"rank\": 99"));
	cJSON_Delete(trace_of(in_scratch("d.json")));
	free(text);
}

static void distributed(void)
{
	check_distributed(NULL, "\"distributedInfo\": {\"backend\": \"\", \"rank\": 0, "
				"\"world_size\": 1},");
	check_distributed(
		"{\"world_size\":8,\"rank\":3,\"backend\":\"nccl\",\"pg_config\":[{\"a\":1}]}",
		"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, "
		"\"world_size\": 8, \"pg_config\": [{\"a\":1}]},");
	check_distributed("{\"rank\":-1,\"world_size\":\"x\"}",
			  "{\"backend\": \"\", \"rank\": 0, \"world_size\": 1},");
	check_distributed("[1]", "{\"backend\": \"\", \"rank\": 0, \"world_size\": 1},");
	check_distributed("{oops", "{\"backend\": \"\", \"rank\": 0, \"world_size\": 1},");
}

/* A capture may come from anywhere: what is in it must not make the trace unreadable. */
static void hostile_metadata(void)
{
	struct made m;
	cJSON *trace, *kprof;

	made__start(&m, in_scratch("h.kprof"));
	made__meta(&m, "host", "box\", \"x\": \"");
	made__meta(&m, "kernel", "{\"a\":01}");
	made__meta(&m, "trace_id", "\"\xff\"");
	made__meta(&m, "k\"\x01", "[");
	made__process(&m, 7, 1, "\xe2\x82");
	made__thread(&m, 7, 7, "\"},{");
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("h.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("h.json")}),
		 0);
	trace = trace_of(in_scratch("h.json"));
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(trace, "host_name")),
		  "box\", \"x\": \"");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(trace, "trace_id")), "\"\\xff\"");
	kprof = cJSON_GetObjectItem(trace, "kprof");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(kprof, "kernel")), "{\"a\":01}");
	CHECK_STR(cJSON_GetStringValue(
			  cJSON_GetObjectItem(cJSON_GetObjectItem(kprof, "meta"), "k\"\x01")),
		  "[");
	cJSON_Delete(trace);
}

/* What whoever recorded said is at the top; what would spoil the trace there is not. */
static void given_metadata(void)
{
	struct made m;
	cJSON *trace, *meta;
	char *text;

	made__start(&m, in_scratch("g.kprof"));
	made__meta(&m, "trace_id", "\"mine\"");
	made__meta(&m, "trace_name", "\"my \\\"run\\\"\"");
	made__meta(&m, "trace.lr", "0.010");
	made__meta(&m, "trace.tags", "[\"a\", {\"rank\": 3}]");
	made__meta(&m, "trace.traceEvents", "[]");
	made__meta(&m, "trace.kprof", "1");
	made__meta(&m, "trace.bad", "{");
	made__meta(&m, "user.lr", "\"the program's\"");
	made__process(&m, 7, 1, "python3");
	made__thread(&m, 7, 7, "main");
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("g.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("g.json")}),
		 0);
	text = text_of(in_scratch("g.json"));
	CHECK(has_line(text, "  \"trace_id\": \"mine\",\n"));
	CHECK(has_line(text, "  \"lr\": 0.010,\n"));
	CHECK(has_line(text, "  \"tags\": [\"a\", {\"rank\": 3}],\n"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"my \\\"run\\\"\","
			     "\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","));
	CHECK(strstr(text, "\"rank\": 0") < strstr(text, "\"rank\": 3"));
	free(text);
	trace = trace_of(in_scratch("g.json"));
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(trace, "traceEvents")) > 0);
	CHECK(!cJSON_GetObjectItem(trace, "bad"));
	meta = cJSON_GetObjectItem(cJSON_GetObjectItem(trace, "kprof"), "meta");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(meta, "user.lr")), "the program's");
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(meta, "trace.bad")), "{");
	CHECK(!cJSON_GetObjectItem(meta, "trace.lr") && !cJSON_GetObjectItem(meta, "trace_name"));
	cJSON_Delete(trace);
}

/* Longer than the writer's buffer, and of two bytes a character. */
static void huge_name(void)
{
	size_t bytes = 300000;
	char *name = malloc(bytes + 1);
	const cJSON *event;
	struct made m;
	uint32_t thread;
	cJSON *trace;
	int found = 0;

	if (!name)
		abort();
	for (size_t i = 0; i < bytes; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[bytes] = '\0';
	made__start(&m, in_scratch("n.kprof"));
	made__process(&m, 7, 1, "p");
	thread = made__thread(&m, 7, 7, "t");
	made__what(&m, name, "o", "cpu_op", 0);
	for (uint64_t i = 0; i < 3; i++) {
		made__begin(&m, i * 10, thread, 1);
		made__end(&m, i * 10 + 5, thread, KPROF_EVENT_CLOSED);
	}
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("n.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("n.json")}),
		 0);
	trace = trace_of(in_scratch("n.json"));
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(trace, "traceEvents"))
	{
		const char *cat = cJSON_GetStringValue(cJSON_GetObjectItem(event, "cat"));

		if (!cat || strcmp(cat, "cpu_op"))
			continue;
		found++;
		CHECK(!strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(event, "name")), name));
		CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(
				  cJSON_GetObjectItem(event, "args"), "Overload")),
			  "o");
	}
	CHECK_EQ(found, 3);
	cJSON_Delete(trace);
	free(name);
}

/* A program that names each of its steps: texts that are kept make room for one another. */
static void more_names_than_are_kept(void)
{
	char name[32], *text;
	struct made m;
	uint32_t thread;

	made__start(&m, in_scratch("s.kprof"));
	made__process(&m, 7, 1, "p");
	thread = made__thread(&m, 7, 7, "t");
	for (uint32_t i = 1; i <= FRAGMENTS_KEPT + 1; i++) {
		snprintf(name, sizeof(name), "step %u", i);
		made__what(&m, name, "", "user_annotation", 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		made__begin(&m, i * 1000, thread, i % 2 ? FRAGMENTS_KEPT + 1 : 1);
		made__end(&m, i * 1000 + 1, thread, 0);
	}
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("s.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("s.json")}),
		 0);
	text = text_of(in_scratch("s.json"));
	CHECK(strstr(text, "\"step 1\",\"pid\":7,\"tid\":7,\"ts\":43200000000.000,"));
	CHECK(strstr(text, "\"step 65537\",\"pid\":7,\"tid\":7,\"ts\":43200000001.000,"));
	CHECK(strstr(text, "\"step 1\",\"pid\":7,\"tid\":7,\"ts\":43200000002.000,"));
	CHECK(strstr(text, "\"step 65537\",\"pid\":7,\"tid\":7,\"ts\":43200000003.000,"));
	free(text);
}

/* Somebody sets the clock back by an hour in the middle: slices keep their order and length. */
static void clock_set_meanwhile(void)
{
	struct made m;
	uint32_t thread;
	char *text;

	made__start(&m, in_scratch("c.kprof"));
	made__process(&m, 7, 1, "p");
	thread = made__thread(&m, 7, 7, "t");
	made__what(&m, "op", "", "cpu_op", 0);
	made__begin(&m, 0, thread, 1);
	made__begin(&m, SEC_NS, thread, 1);
	made__clock(&m, MONO_NS + 2 * SEC_NS, REAL_NS + 2 * SEC_NS - 3600 * SEC_NS);
	made__end(&m, 3 * SEC_NS, thread, 0);
	made__end(&m, 4 * SEC_NS, thread, 0);
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("c.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("c.json")}),
		 0);
	text = text_of(in_scratch("c.json"));
	CHECK(strstr(text, "\"ts\":43200000000.000,\"dur\":4000000.000"));
	CHECK(strstr(text, "\"ts\":43201000000.000,\"dur\":2000000.000"));
	CHECK(strstr(text, "\"real_step_ns\": -3600000000000}"));
	free(text);
}

/* The base stays the day in which the capture began. */
static void over_midnight(void)
{
	struct made m;
	uint32_t thread;
	char *text;

	m = (struct made){0};
	CHECK_EQ(store_writer__open(in_scratch("m.kprof"), &(struct outfile_opts){0}, &m.w), 0);
	made__clock(&m, MONO_NS, 20001 * DAY_NS - 1);
	made__put(&m, (struct store_record){.type = STORE_SOURCE});
	made__process(&m, 7, 1, "p");
	thread = made__thread(&m, 7, 7, "t");
	made__what(&m, "op", "", "cpu_op", 0);
	made__begin(&m, 1, thread, 1);
	made__end(&m, 2, thread, 0);
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("m.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("m.json")}),
		 0);
	text = text_of(in_scratch("m.json"));
	CHECK(strstr(text, "\"baseTimeNanoseconds\": 1728000000000000000,"));
	CHECK(strstr(text, "\"ts\":86400000000.000,\"dur\":0.001,"));
	free(text);
}

static void cut_short(void)
{
	size_t bytes;
	uint8_t *data;
	cJSON *trace;

	write_spans(in_scratch("a.kprof"));
	data = slurp(in_scratch("a.kprof"), &bytes);
	spit(in_scratch("cut.kprof"), data, bytes - 1);
	free(data);
	CHECK_EQ(export_as(in_scratch("cut.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("cut.json")}),
		 0);
	trace = trace_of(in_scratch("cut.json"));
	CHECK(cJSON_IsFalse(cJSON_GetObjectItem(cJSON_GetObjectItem(trace, "kprof"), "complete")));
	cJSON_Delete(trace);
}

static void without_anything(void)
{
	struct made m;
	cJSON *trace;

	made__start(&m, in_scratch("e.kprof"));
	made__finish(&m);
	CHECK_EQ(export_as(in_scratch("e.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("e.json")}),
		 0);
	trace = trace_of(in_scratch("e.json"));
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetObjectItem(trace, "traceEvents")), 3);
	cJSON_Delete(trace);
}

static void setup(void)
{
	scratch__make();
}

UNIT_MAIN(TEST(setup), TEST(events_to_the_letter), TEST(head), TEST(repeatable), TEST(compressed),
	  TEST(distributed), TEST(hostile_metadata), TEST(given_metadata), TEST(huge_name),
	  TEST(more_names_than_are_kept), TEST(clock_set_meanwhile), TEST(over_midnight),
	  TEST(cut_short), TEST(without_anything), TEST(scratch__remove))
