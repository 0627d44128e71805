// SPDX-License-Identifier: BSD-2-Clause
/* What dyno asks Kineto for: the options that do it, and what is said of keys that none does. */
#include "unit.h"

#include "cmd/daemon/translate.h"
#include "kprof.h"

#define NOW_MS 1700000000250ull

static struct translation t;
static char words[2048], notes[2048];

/* As one text each, "|" between. */
static void translate(const char *text)
{
	struct kprof_dynolog_config *c;

	t = (struct translation){.nr = 0};
	words[0] = notes[0] = '\0';
	CHECK_EQ(kprof_dynolog_config_parse(text, &c), 0);
	translate_config(c, NOW_MS, &t);
	kprof_dynolog_config_free(c);
	for (size_t i = 0; i < t.nr; i++)
		strcat(strcat(words, i ? "|" : ""), t.words[i]);
	for (size_t i = 0; i < t.nr_notes; i++)
		strcat(strcat(notes, i ? "|" : ""), t.notes[i]);
}

static void durations(void)
{
	translate(
		"ACTIVITIES_LOG_FILE=/tmp/a.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=250\n"
		"PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=true\n"
		"PROFILE_WITH_MODULES=false");
	CHECK_STR(words, "--duration=250ms|--shapes|--flops");
	CHECK_STR(notes, "");
	translate("PROFILE_START_TIME=1700000100005\nACTIVITIES_WARMUP_PERIOD_SECS=3");
	CHECK_STR(words, "--duration=500ms|--start-at=1700000100.005");
	CHECK_STR(notes, "");
}

/* Kineto's warm-up begins with the request. One that nobody asked for is none of kprof's. */
static void warm_up_puts_the_start_off(void)
{
	translate("ACTIVITIES_WARMUP_PERIOD_SECS=3");
	CHECK_STR(words, "--duration=500ms|--start-at=1700000003.250");
	translate("ACTIVITIES_WARMUP_PERIOD_SECS=0");
	CHECK_STR(words, "--duration=500ms");
	translate("ACTIVITIES_WARMUP_PERIOD_SECS=3\nACTIVITIES_ITERATIONS=2");
	CHECK_STR(words, "--steps=2");
	CHECK_STR(notes, "ACTIVITIES_WARMUP_PERIOD_SECS: is not for iterations");
}

static void iterations(void)
{
	translate(
		"PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=3");
	CHECK_STR(words, "--steps=3");
	CHECK_STR(notes, "");
	translate(
		"PROFILE_START_ITERATION=7\nPROFILE_START_ITERATION_ROUNDUP=100\nACTIVITIES_ITERATIONS=3\n"
		"ACTIVITIES_WARMUP_ITERATIONS=2");
	CHECK_STR(words, "--steps=3|--warm-up=2steps|--step-multiple=100");
	CHECK(strstr(notes, "PROFILE_START_ITERATION_ROUNDUP: "));
	CHECK(strstr(notes, "|PROFILE_START_ITERATION: "));
	translate("PROFILE_START_ITERATION_ROUNDUP=100");
	CHECK_STR(words, "--duration=500ms");
	CHECK(strstr(notes, "without ACTIVITIES_ITERATIONS"));
}

static void types(void)
{
	translate("ACTIVITY_TYPES=CPU_OP, cuda_runtime,cpu_op,,");
	CHECK_STR(words, "--duration=500ms|--types=cpu_op,cuda_runtime|--no-agent");
	CHECK_STR(notes, "");
	translate("ACTIVITY_TYPES=cpu_op,kernel,gpu_memcpy,glow,x\x1b[2J");
	CHECK_STR(words, "--duration=500ms|--types=cpu_op|--no-agent");
	CHECK_STR(
		notes,
		"ACTIVITY_TYPES: nothing here records glow, x?[2J|"
		"ACTIVITY_TYPES: not recorded, since nothing is put into a process: kernel, gpu_memcpy");
	translate("ACTIVITY_TYPES=kernel");
	CHECK_STR(words, "--duration=500ms");
	CHECK(strstr(notes, "the usual types are recorded"));
	translate("ACTIVITY_TYPES=cpu_op\nACTIVITIES_ITERATIONS=1");
	CHECK_STR(words, "--steps=1|--types=cpu_op,user_annotation|--no-agent");
	CHECK(strstr(notes, "user_annotation, too"));
}

static void all_types(void)
{
	char text[2048] = "ACTIVITY_TYPES=";
	const char *name;
	struct kprof_session_opts opts = {.sz = sizeof(opts)}, cpu = {.sz = sizeof(cpu)};

	for (size_t i = 0; (name = kprof_activity_name(i)); i++)
		strcat(strcat(text, name), ",");
	translate(text);
	CHECK_EQ(t.nr, 3);
	CHECK_EQ(kprof_session_opts_activities(&opts, NULL, t.words[1] + strlen("--types=")), 0);
	CHECK_EQ(kprof_session_opts_activities(&cpu, "cpu", NULL), 0);
	CHECK_EQ(opts.types & ~cpu.types, 0);
	CHECK(opts.types);
}

static void unknown_keys(void)
{
	char text[4096] = "VERBOSE_LOG_LEVEL=1\nCUSTOM_CONFIG=x\n";

	translate(text);
	CHECK_STR(notes, "kprof does nothing for VERBOSE_LOG_LEVEL, CUSTOM_CONFIG");
	for (int i = 0; i < 200; i++)
		sprintf(text + strlen(text), "KEY_%d=\n", i);
	translate(text);
	CHECK_EQ(t.nr_notes, 1);
	CHECK(!strcmp(notes + strlen(notes) - strlen("…"), "…"));
}

UNIT_MAIN(TEST(durations), TEST(warm_up_puts_the_start_off), TEST(iterations), TEST(types),
	  TEST(all_types), TEST(unknown_keys))
