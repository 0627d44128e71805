// SPDX-License-Identifier: BSD-2-Clause
/* user/dynolog/config.c: texts as dyno sends them, and those that libkineto would ignore. */
#include "unit.h"

#include <errno.h>

#include "kprof.h"
#include "kprof/dynolog.h"

static struct kprof_dynolog_config *c;

static int parse(const char *text)
{
	kprof_dynolog_config_free(c);
	c = NULL;
	return kprof_dynolog_config_parse(text, &c);
}

static void of_dyno(void)
{
	CHECK_EQ(parse("ACTIVITIES_LOG_FILE=/tmp/a.json\nPROFILE_START_TIME=1700000000123\n"
		       "ACTIVITIES_DURATION_MSECS=250\nPROFILE_REPORT_INPUT_SHAPES=true\n"
		       "PROFILE_PROFILE_MEMORY=true\nPROFILE_MEMORY=true\n"
		       "PROFILE_MEMORY_DURATION_MSECS=250\nPROFILE_WITH_STACK=true\n"
		       "PROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=true"),
		 0);
	CHECK_STR(c->log_file, "/tmp/a.json");
	CHECK_EQ(c->start_time_ms, 1700000000123);
	CHECK_EQ(c->duration_ms, 250);
	CHECK_EQ(c->memory_duration_ms, 250);
	CHECK_EQ(c->iterations, 0);
	CHECK(c->shapes && c->memory && c->stacks && !c->flops && c->modules);
	CHECK(c->memory_snapshot && !c->warmup_given);
	CHECK_EQ(c->nr_other, 0);
}

static void others(void)
{
	CHECK_EQ(
		parse("PROFILE_MEMORY=false\nVERBOSE_LOG_LEVEL = 3\nACTIVITIES_WARMUP_PERIOD_SECS=5"),
		0);
	CHECK(!c->memory_snapshot && c->warmup_given);
	CHECK_EQ(c->nr_other, 1);
	CHECK_STR(c->other[0].name, "VERBOSE_LOG_LEVEL");
	CHECK_STR(c->other[0].value, "3");
}

static void iterations(void)
{
	CHECK_EQ(parse("PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=100\n"
		       "ACTIVITIES_ITERATIONS=3\nACTIVITIES_WARMUP_ITERATIONS=2"),
		 0);
	CHECK_EQ(c->iterations, 3);
	CHECK_EQ(c->roundup, 100);
	CHECK_EQ(c->start_iteration, 0);
	CHECK_EQ(c->warmup_iterations, 2);
}

static void defaults(void)
{
	CHECK_EQ(parse(""), 0);
	CHECK(!c->log_file && !c->activity_types && !c->shapes && !c->nr_other);
	CHECK_EQ(c->duration_ms, 500);
	CHECK_EQ(c->warmup_ms, 5000);
}

static void blanks_and_comments(void)
{
	CHECK_EQ(
		parse("\n # a comment, with = and =\n  ACTIVITY_TYPES\t= cpu_op, kernel  # more\r\n"
		      "\n ACTIVITIES_DURATION_SECS = 2 \nACTIVITIES_WARMUP_PERIOD_SECS=0\n  \n"),
		0);
	CHECK_STR(c->activity_types, "cpu_op, kernel");
	CHECK_EQ(c->duration_ms, 2000);
	CHECK_EQ(c->warmup_ms, 0);
}

static void later_ones_win(void)
{
	CHECK_EQ(parse("PROFILE_WITH_STACK=y\nPROFILE_WITH_STACK=NO\nACTIVITIES_DURATION_SECS=9\n"
		       "ACTIVITIES_DURATION_MSECS=7\nPROFILE_WITH_FLOPS=0\nPROFILE_WITH_FLOPS=T"),
		 0);
	CHECK(!c->stacks && c->flops);
	CHECK_EQ(c->duration_ms, 7);
}

/* libkineto ignores the whole text for each of these. */
static void ignored_as_a_whole(void)
{
	static const char *const texts[] = {
		"ACTIVITIES_LOG_FILE",
		"PROFILE_WITH_STACK=true\nnothing",
		"CUSTOM_CONFIG=a=b",
		"PROFILE_WITH_STACK=maybe",
		"PROFILE_WITH_STACK=",
		"ACTIVITIES_DURATION_MSECS=-1",
		"ACTIVITIES_DURATION_MSECS=5 0",
		"ACTIVITIES_DURATION_MSECS=0x10",
		"ACTIVITIES_DURATION_MSECS=99999999999999999999999",
		"ACTIVITIES_DURATION_SECS=9223372036854775807",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_EQ(parse(texts[i]), -EINVAL);
		CHECK(kprof_error_cause()[0]);
		CHECK(!c);
	}
}

static void end(void)
{
	CHECK_EQ(parse("X=1"), 0);
	kprof_dynolog_config_free(c);
	kprof_dynolog_config_free(NULL);
	c = NULL;
}

UNIT_MAIN(TEST(of_dyno), TEST(others), TEST(iterations), TEST(defaults), TEST(blanks_and_comments),
	  TEST(later_ones_win), TEST(ignored_as_a_whole), TEST(end))
