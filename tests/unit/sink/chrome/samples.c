// SPDX-License-Identifier: BSD-2-Clause
#include "sink/write/write.h"
#include "stacks_fixture.h"
#include "util/json_valid.h"

#define NOON_US 43200000000ull

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The n-th event of this name and thread. */
static const cJSON *event(const cJSON *trace, const char *name, int tid, int n)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, at(trace, "traceEvents"))
	{
		const char *its = cJSON_GetStringValue(at(e, "name"));

		if (its && !strcmp(its, name) && at(e, "tid")->valueint == tid && !n--)
			return e;
	}
	return NULL;
}

static bool same(const cJSON *value, const char *json)
{
	char *text = value ? cJSON_PrintUnformatted(value) : NULL;
	bool is = text && !strcmp(text, json);

	if (!is)
		printf("# %s, not %s\n", text ? text : "nothing", json);
	cJSON_free(text);
	return is;
}

static void samples(void)
{
	const cJSON *e, *data, *nodes, *node;
	cJSON *trace;

	known_capture(in_scratch("a.kprof"));
	free(exported_as("a.kprof", "a.json"));
	trace = trace_of(in_scratch("a.json"));
	e = event(trace, "Profile", 7, 0);
	CHECK_STR(cJSON_GetStringValue(at(e, "ph")), "P");
	CHECK_STR(cJSON_GetStringValue(at(e, "cat")), "disabled-by-default-v8.cpu_profiler");
	CHECK_EQ(at(at(at(e, "args"), "data"), "startTime")->valuedouble, NOON_US);
	CHECK(!event(trace, "Profile", 7, 1));
	CHECK(strcmp(cJSON_GetStringValue(at(e, "id")),
		     cJSON_GetStringValue(at(event(trace, "Profile", 8, 0), "id"))) != 0);
	e = event(trace, "ProfileChunk", 7, 0);
	data = at(at(e, "args"), "data");
	CHECK(same(at(data, "timeDeltas"), "[0,10000,10000,10000,10000,10000]"));
	nodes = at(at(data, "cpuProfile"), "nodes");
	CHECK_EQ(cJSON_GetArraySize(nodes), 6);
	node = cJSON_GetArrayItem(nodes, 1);
	CHECK_STR(cJSON_GetStringValue(at(at(node, "callFrame"), "functionName")), "train");
	CHECK_STR(cJSON_GetStringValue(at(at(node, "callFrame"), "url")), "/app/train.py");
	CHECK_EQ(at(at(node, "callFrame"), "lineNumber")->valueint, 11); /* V8 counts from 0 */
	CHECK_EQ(at(at(cJSON_GetArrayItem(nodes, 0), "callFrame"), "lineNumber")->valueint, -1);
	CHECK_EQ(cJSON_GetArraySize(at(data, "lines")), 6);
	CHECK(!at(data, "gil"));
	CHECK_EQ(at(node, "parent")->valueint, at(cJSON_GetArrayItem(nodes, 0), "id")->valueint);
	CHECK(!at(cJSON_GetArrayItem(nodes, 0), "parent"));
	/* In the order of time: four of the deepest but the kernel's, its caller, the kernel's. */
	CHECK(same(at(at(data, "cpuProfile"), "samples"), "[6,6,6,6,3,7]"));
	/* The other thread's profile knows nothing of the first one's nodes. */
	data = at(at(event(trace, "ProfileChunk", 8, 0), "args"), "data");
	CHECK_EQ(cJSON_GetArraySize(at(at(data, "cpuProfile"), "nodes")), 6);
	CHECK(same(at(at(data, "cpuProfile"), "samples"), "[6,2,2,1,2]"));
	CHECK(!at(trace, "with_stack"));
	cJSON_Delete(trace);
}

/* Chunks of one thread, out of order among themselves: times come out as they were. */
static void chunks(void)
{
	struct made_stacks s;
	cJSON *trace;
	const cJSON *e, *delta;
	double us = NOON_US;
	int nr = 0, nodes = 0;

	known_tables(&s, in_scratch("c.kprof"));
	for (uint64_t i = 0; i < 1000; i++)
		made__sample(&s, (i ^ 1) * 1000, 0, 1 + i / 500, PERIOD_NS, WHOLE);
	made__finish(&s.m);
	free(exported_as("c.kprof", "c.json"));
	trace = trace_of(in_scratch("c.json"));
	for (int n = 0; (e = event(trace, "ProfileChunk", 7, n)); n++) {
		const cJSON *data = at(at(e, "args"), "data");

		nodes += cJSON_GetArraySize(at(at(data, "cpuProfile"), "nodes"));
		CHECK_EQ(cJSON_GetArraySize(at(data, "timeDeltas")),
			 cJSON_GetArraySize(at(at(data, "cpuProfile"), "samples")));
		cJSON_ArrayForEach(delta, at(data, "timeDeltas"))
		{
			us += delta->valuedouble;
			CHECK_EQ(us, NOON_US + nr);
			nr++;
		}
	}
	CHECK_EQ(nr, 1000);
	CHECK_EQ(nodes, 2);
	cJSON_Delete(trace);
}

/*
 * A Python function is a node for each line that was executed; what is native, one. Who had the
 * lock is said of each sample.
 */
static void lines_and_gil(void)
{
	struct made_stacks s;
	struct store_line line[2] = {0};
	uint32_t at_line[2],
		flags[] = {WHOLE | KPROF_SAMPLE_GIL, WHOLE, WHOLE | KPROF_SAMPLE_GIL_WAIT};
	const cJSON *data, *nodes;
	cJSON *trace;

	known_tables(&s, in_scratch("g.kprof"));
	for (uint32_t i = 0; i < 2; i++) {
		line[i].function = made__string(&s.m, "again");
		line[i].file = made__string(&s.m, "/app/again.py");
		line[i].line = 20 + i;
		made__put(&s.m, (struct store_record){STORE_FRAME,
						      .frame = {++s.frames, STORE_FRAME_PYTHON, 0,
								0, 0, 1, &line[i]}});
		at_line[i] = made__stack(&s, 0, s.frames);
	}
	for (uint32_t i = 0; i < 3; i++)
		made__sample(&s, i * 1000, 0, at_line[i & 1], PERIOD_NS, flags[i]);
	made__finish(&s.m);
	free(exported_as("g.kprof", "g.json"));
	trace = trace_of(in_scratch("g.json"));
	data = at(at(event(trace, "ProfileChunk", 7, 0), "args"), "data");
	nodes = at(at(data, "cpuProfile"), "nodes");
	CHECK_EQ(cJSON_GetArraySize(nodes), 2);
	for (int i = 0; i < 2; i++) {
		const cJSON *call = at(cJSON_GetArrayItem(nodes, i), "callFrame");

		CHECK_STR(cJSON_GetStringValue(at(call, "functionName")), "again");
		CHECK_EQ(at(call, "lineNumber")->valueint, 19 + i);
	}
	CHECK(same(at(data, "lines"), "[20,21,20]"));
	CHECK(same(at(data, "gil"), "[1,0,2]"));
	cJSON_Delete(trace);
}

static void call_stack(void)
{
	struct made_stacks s;
	struct store_attr attr = {0};
	uint32_t description;
	cJSON *trace;

	known_tables(&s, in_scratch("o.kprof"));
	description = made__what(&s.m, "aten::mul", "", "cpu_op", 0);
	attr = (struct store_attr){made__string(&s.m, "Call stack"), STORE_ATTR_STACK, 0};
	for (uint32_t i = 0; i < 3; i++) {
		made__begin(&s.m, i * 1000, 0, description);
		attr.value = i ? 4 : 0; /* the first has none */
		made__put(&s.m, (struct store_record){STORE_ARGS, .args = {i + 1}, .attrs = &attr,
						      .nr_attrs = 1});
		made__end(&s.m, i * 1000 + 500, 0, 0);
	}
	made__finish(&s.m);
	free(exported_as("o.kprof", "o.json"));
	trace = trace_of(in_scratch("o.json"));
	CHECK(!at(at(event(trace, "aten::mul", 7, 0), "args"), "Call stack"));
	for (int n = 1; n < 3; n++)
		CHECK_STR(cJSON_GetStringValue(
				  at(at(event(trace, "aten::mul", 7, n), "args"), "Call stack")),
			  "main;/app/train.py(12): train;outer;add.h(3): inlined;sys_read");
	CHECK(same(at(trace, "with_stack"), "1"));
	CHECK(!event(trace, "Profile", 7, 0));
	cJSON_Delete(trace);
}

static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *text;

		hostile_capture(in_scratch("h.kprof"), seed);
		text = exported_as("h.kprof", "h.json");
		CHECK(json_valid(text));
		free(text);
	}
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(samples), TEST(chunks), TEST(lines_and_gil),
	  TEST(call_stack), TEST(hostile), {"(clean-up)", scratch__remove})
