// SPDX-License-Identifier: BSD-2-Clause
/* user/util/step_name.c: which annotations are steps. */
#include "unit.h"

#include "util/step_name.h"

#define ANNOTATION "user_annotation"

static enum step_kind kind(const char *name)
{
	return step_name(ANNOTATION, name, NULL).kind;
}

static void known(void)
{
	CHECK_EQ(kind("ProfilerStep#12"), STEP_PROFILER);
	CHECK_EQ(step_name(ANNOTATION, "ProfilerStep#12", NULL).number, 12);
	CHECK_EQ(kind("ProfilerStep#"), STEP_NONE);
	CHECK_EQ(kind("ProfilerStep#1x"), STEP_NONE);
	CHECK_EQ(kind("train_step"), STEP_NAMED);
	CHECK(!step_name(ANNOTATION, "train_step", NULL).numbered);
	CHECK_EQ(kind("Iteration: 7"), STEP_NAMED);
	CHECK_EQ(kind("footstep"), STEP_NONE);
	CHECK_EQ(kind("steps"), STEP_NONE);
	CHECK_EQ(kind("Optimizer.step#SGD.step"), STEP_OPTIMIZER);
	CHECK_EQ(kind("7"), STEP_NONE);
	CHECK_EQ(kind(""), STEP_NONE);
	CHECK_EQ(step_name("cpu_op", "ProfilerStep#12", NULL).kind, STEP_NONE);
	/* no number that does not fit is made up */
	CHECK(!step_name(ANNOTATION, "step 12345678901234567890", NULL).numbered);
}

static bool chosen(const char *name, const char *as)
{
	return step_name(ANNOTATION, name, as).kind == STEP_CHOSEN;
}

static void given(void)
{
	CHECK(chosen("batch", "batch"));
	CHECK(chosen("batch 7", "batch"));
	CHECK(chosen("batch_#7", "batch"));
	CHECK(chosen("batch7", "batch"));
	CHECK(chosen("ProfilerStep#7", "ProfilerStep#"));
	CHECK(chosen("batch 7", "batch 7"));
	CHECK_EQ(step_name(ANNOTATION, "batch 7", "batch").number, 7);
	CHECK(!chosen("batch x", "batch"));
	CHECK(!chosen("batch ", "batch"));
	CHECK(!chosen("batches 7", "batch"));
	CHECK(!chosen("batch 77", "batch 7x"));
	CHECK(!chosen("bat", "batch"));
	CHECK(!chosen("ProfilerStep#7", "batch"));
	CHECK(!chosen("Optimizer.step#SGD.step", "batch"));
	CHECK(chosen("Optimizer.step#SGD.step", "Optimizer.step#SGD.step"));
}

UNIT_MAIN(TEST(known), TEST(given))
