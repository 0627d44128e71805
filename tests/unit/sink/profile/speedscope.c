// SPDX-License-Identifier: BSD-2-Clause
#include "sink/write/write.h"
#include "stacks_fixture.h"
#include "util/json_valid.h"

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static bool same(const cJSON *value, const char *json)
{
	char *text = cJSON_PrintUnformatted(value);
	bool is = text && !strcmp(text, json);

	if (!is)
		printf("# %s, not %s\n", text ? text : "nothing", json);
	cJSON_free(text);
	return is;
}

static void known(void)
{
	cJSON *file;
	const cJSON *profile;

	known_capture(in_scratch("a.kprof"));
	free(exported_as("a.kprof", "a.speedscope.json"));
	file = trace_of(in_scratch("a.speedscope.json"));
	CHECK(same(at(at(file, "shared"), "frames"),
		   "[{\"name\":\"main\",\"file\":\"/lib/libx.so\"},"
		   "{\"name\":\"train\",\"file\":\"/app/train.py\"},"
		   "{\"name\":\"aten::add\"},"
		   "{\"name\":\"outer\",\"file\":\"/lib/libx.so\"},"
		   "{\"name\":\"inlined\",\"file\":\"add.h\"},"
		   "{\"name\":\"sys_read\",\"file\":\"[kernel]\"}]"));
	CHECK_EQ(cJSON_GetArraySize(at(file, "profiles")), 2);
	profile = cJSON_GetArrayItem(at(file, "profiles"), 0);
	CHECK_STR(cJSON_GetStringValue(at(profile, "name")), "main (7)");
	CHECK_STR(cJSON_GetStringValue(at(profile, "type")), "sampled");
	CHECK_STR(cJSON_GetStringValue(at(profile, "unit")), "nanoseconds");
	/* Four samples in a row that are alike are one. */
	CHECK(same(at(profile, "samples"), "[[0,1,2,3,4],[0,1],[0,1,2,3,4,5]]"));
	CHECK(same(at(profile, "weights"), "[40000000,10000000,10000000]"));
	CHECK(same(at(profile, "endValue"), "60000000"));
	profile = cJSON_GetArrayItem(at(file, "profiles"), 1);
	CHECK(same(at(profile, "samples"), "[[0,1,2,3,4],[0],[],[0]]"));
	CHECK(same(at(profile, "weights"), "[10000000,10001001,10000000,10000000]"));
	cJSON_Delete(file);
}

/* CPUs hand over their samples one after the other: threads mixed, times not in order. */
static void in_order_of_time(void)
{
	struct made_stacks s;
	const cJSON *profile;
	cJSON *file;

	known_tables(&s, in_scratch("t.kprof"));
	made__sample(&s, 5000, 0, 2, 1, WHOLE);
	made__sample(&s, 1000, 1, 1, 2, WHOLE);
	made__sample(&s, 3000, 0, 1, 3, WHOLE);
	made__sample(&s, 4000, 1, 2, 4, WHOLE);
	made__finish(&s.m);
	free(exported_as("t.kprof", "t.speedscope.json"));
	file = trace_of(in_scratch("t.speedscope.json"));
	profile = cJSON_GetArrayItem(at(file, "profiles"), 0);
	CHECK(same(at(profile, "weights"), "[3,1]"));
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetArrayItem(at(profile, "samples"), 0)), 1);
	profile = cJSON_GetArrayItem(at(file, "profiles"), 1);
	CHECK(same(at(profile, "weights"), "[2,4]"));
	CHECK_EQ(cJSON_GetArraySize(at(file, "profiles")), 2);
	cJSON_Delete(file);
}

static void one_process(void)
{
	known_capture(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("b-%p.speedscope.json")}),
		 0);
	CHECK(file_exists(in_scratch("b-7.speedscope.json")));
}

static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		cJSON *file;
		const cJSON *profile, *weight;
		double sum = 0;
		char *text;

		hostile_capture(in_scratch("h.kprof"), seed);
		text = exported_as("h.kprof", "h.speedscope.json");
		CHECK(json_valid(text)); /* stricter than cJSON: UTF-8, control characters */
		free(text);
		file = trace_of(in_scratch("h.speedscope.json"));
		cJSON_ArrayForEach(profile, at(file, "profiles"))
		{
			cJSON_ArrayForEach(weight, at(profile, "weights"))
			{
				sum += weight->valuedouble;
			}
		}
		CHECK_EQ(sum, HOSTILE_NAMES * PERIOD_NS);
		cJSON_Delete(file);
	}
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(in_order_of_time), TEST(one_process),
	  TEST(hostile), {"(clean-up)", scratch__remove})
