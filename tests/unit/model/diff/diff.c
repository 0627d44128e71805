// SPDX-License-Identifier: BSD-2-Clause
/* user/model/diff/: captures that are read, of which every number is known. */
#include <math.h>

#include "stacks_fixture.h"

#include "kprof/diff.h"

#define STEP_NS 10000000ull
#define STEPS 100

/*
 * A training of so many steps, each of 10 ms: an operator of op_ns, in which another takes
 * inner_ns. PyTorch marks its optimizer's step at the end of each.
 */
static void training(const char *name, uint32_t steps, uint64_t op_ns, uint64_t inner_ns)
{
	uint32_t thread, other, outer, inner, mark, rare;
	struct made m;

	made__start(&m, in_scratch(name));
	made__process(&m, 7, 1, "python3");
	thread = made__thread(&m, 7, 7, "main");
	other = made__thread(&m, 7, 8, "other");
	outer = made__what(&m, "aten::linear", "", "cpu_op", 0);
	inner = made__what(&m, "aten::addmm", "", "cpu_op", 0);
	mark = made__what(&m, "Optimizer.step#SGD.step", "", "user_annotation", 0);
	rare = made__what(&m, "Optimizer.step#Adam.step", "", "user_annotation", 0);
	for (uint32_t i = 0; i < steps; i++) {
		uint64_t at = i * STEP_NS;

		made__begin(&m, at + 1000, thread, outer);
		made__begin(&m, at + 2000, thread, inner);
		made__end(&m, at + 2000 + inner_ns, thread, 0);
		made__end(&m, at + 1000 + op_ns, thread, 0);
		/* Marks that come less often, and on another thread, are not the steps. */
		if (i % 3 == 0) {
			made__begin(&m, at + 8000000, other, rare);
			made__end(&m, at + 8001000, other, 0);
		}
		made__begin(&m, at + 9000000, thread, mark);
		made__end(&m, at + 9500000, thread, 0);
	}
	made__finish(&m);
}

static struct kprof_diff *compare(const char *before, const char *after,
				  struct kprof_diff_opts opts)
{
	const char *paths[2] = {in_scratch(before), in_scratch(after)};
	const struct kprof_diff_set sets[2] = {{&paths[0], 1}, {&paths[1], 1}};
	struct kprof_diff *d = NULL;

	opts.sz = sizeof(opts);
	if (kprof_diff_new(&sets[0], &sets[1], &opts, &d))
		printf("# %s\n", kprof_error_cause());
	return d;
}

static struct kprof_diff_row row_of(const struct kprof_diff *d, const char *name)
{
	for (size_t i = 0; i < kprof_diff_nr_rows(d); i++)
		if (!strcmp(kprof_diff_row(d, i)->name, name))
			return *kprof_diff_row(d, i);
	printf("# no row %s\n", name);
	CHECK(!"row");
	return (struct kprof_diff_row){.name = name};
}

static void operators_by_step(void)
{
	struct kprof_diff *d;
	struct kprof_diff_row row;

	training("before.kprof", STEPS, 5000000, 2000000);
	training("after.kprof", 2 * STEPS, 6000000, 3000000);
	d = compare("before.kprof", "after.kprof", (struct kprof_diff_opts){0});
	CHECK(d);
	if (!d)
		return;
	CHECK_EQ(kprof_diff_info(d)->by, KPROF_DIFF_BY_OP);
	CHECK_EQ(kprof_diff_info(d)->per, KPROF_DIFF_PER_STEP);
	CHECK(!kprof_diff_info(d)->of_samples);
	/* 99 steps between 100 marks are 49 blocks of two; 199 are 49 of four. */
	CHECK_EQ(kprof_diff_info(d)->units_before, 98);
	CHECK_EQ(kprof_diff_info(d)->units_after, 196);
	row = row_of(d, "aten::addmm");
	CHECK_EQ(row.time.before, 2000000);
	CHECK_EQ(row.time.after, 3000000);
	CHECK_EQ(row.calls_before, 1);
	CHECK_EQ(row.calls_after, 1);
	CHECK_EQ(row.time.verdict, KPROF_DIFF_MORE);
	row = row_of(d, "aten::linear");
	CHECK_EQ(row.time.change, 0);
	CHECK_EQ(row.self_before, 3000000);
	CHECK_EQ(row.total_before, 5000000);
	CHECK_EQ(row.total_after, 6000000);
	CHECK_EQ(row.time.verdict, KPROF_DIFF_NONE);
	CHECK_EQ(kprof_diff_info(d)->step.before, STEP_NS);
	CHECK_EQ(kprof_diff_info(d)->step.verdict, KPROF_DIFF_NONE);
	CHECK(kprof_diff_above(d, 0.49));
	CHECK(!kprof_diff_above(d, 0.51));
	kprof_diff_free(d);
}

static void steps_of_another_name(void)
{
	struct kprof_diff *d = compare("before.kprof", "before.kprof",
				       (struct kprof_diff_opts){.step = "*Adam*", .total = true});

	CHECK(d);
	if (!d)
		return;
	/* Every third step: 34 marks. */
	CHECK_EQ(kprof_diff_info(d)->units_before, 33);
	CHECK_EQ(row_of(d, "aten::linear").time.before, 15000000);
	CHECK_EQ(kprof_diff_info(d)->step.before, 3 * STEP_NS);
	kprof_diff_free(d);
	CHECK(!compare("before.kprof", "before.kprof",
		       (struct kprof_diff_opts){.step = "none", .per = KPROF_DIFF_PER_STEP}));
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_FAILED);
	CHECK(kprof_error_hint());
}

static void other_units(void)
{
	struct kprof_diff *d = compare("before.kprof", "after.kprof",
				       (struct kprof_diff_opts){.per = KPROF_DIFF_PER_CALL});

	CHECK_EQ(row_of(d, "aten::addmm").time.before, 2000000);
	CHECK_EQ(row_of(d, "aten::addmm").time.after, 3000000);
	CHECK_EQ(kprof_diff_info(d)->whole.verdict, KPROF_DIFF_UNTESTED);
	kprof_diff_free(d);
	/* The recordings are both of ten seconds: a hundred steps, and two hundred. */
	d = compare("before.kprof", "after.kprof",
		    (struct kprof_diff_opts){.per = KPROF_DIFF_PER_SECOND});
	CHECK_EQ(lround(row_of(d, "aten::addmm").time.before), 20000000);
	CHECK_EQ(lround(row_of(d, "aten::addmm").time.after), 60000000);
	kprof_diff_free(d);
	d = compare("before.kprof", "after.kprof",
		    (struct kprof_diff_opts){.per = KPROF_DIFF_PER_RUN});
	CHECK_EQ(lround(row_of(d, "aten::addmm").time.before), 200000000);
	CHECK_EQ(lround(row_of(d, "aten::addmm").time.after), 600000000);
	kprof_diff_free(d);
}

/* f calls itself, and g, which is inlined twice into h; a sample has no stack at all. */
static void recursive(const char *name, uint64_t fs, uint64_t gs)
{
	uint32_t module, f, ff, g;
	struct made_stacks s = {0};
	uint64_t at = 0;

	made__start(&s.m, in_scratch(name));
	made__process(&s.m, 7, 1, "prog");
	made__thread(&s.m, 7, 7, "main");
	module = made__module(&s, STORE_MODULE_FILE, "/lib/libx.so", "c0ffee");
	f = made__frame(&s, STORE_FRAME_NATIVE, module, "", "f", "", 0, NULL);
	g = made__frame(&s, STORE_FRAME_NATIVE, module, "", "g", "", 0, "g");
	ff = made__stack(&s, made__stack(&s, 0, f), f);
	g = made__stack(&s, ff, g);
	for (uint64_t i = 0; i < 400; i++) {
		uint32_t stack = i % 10 < fs ? ff : i % 10 < fs + gs ? g : 0;

		made__sample(&s, at += PERIOD_NS, 0, stack, PERIOD_NS, WHOLE);
	}
	/* Outside of the window. */
	made__sample(&s, 11 * SEC_NS, 0, ff, PERIOD_NS, WHOLE);
	made__finish(&s.m);
}

static void recursion_counts_once(void)
{
	struct kprof_diff *d;
	struct kprof_diff_row row;

	recursive("r1.kprof", 5, 3);
	recursive("r2.kprof", 3, 5);
	d = compare("r1.kprof", "r2.kprof", (struct kprof_diff_opts){.per = KPROF_DIFF_PER_RUN});
	CHECK(d);
	if (!d)
		return;
	CHECK_EQ(kprof_diff_info(d)->by, KPROF_DIFF_BY_FUNCTION);
	row = row_of(d, "f");
	CHECK_EQ(lround(row.self_before), 200 * PERIOD_NS);
	CHECK_EQ(lround(row.self_after), 120 * PERIOD_NS);
	CHECK_EQ(lround(row.total_before), 320 * PERIOD_NS);
	CHECK_EQ(lround(row.total_after), 320 * PERIOD_NS);
	CHECK_EQ(row.calls_before, 320);
	CHECK_EQ(row.time.verdict, KPROF_DIFF_LESS);
	row = row_of(d, "g");
	CHECK_EQ(lround(row.self_before), 120 * PERIOD_NS);
	CHECK_EQ(lround(row.total_before), 120 * PERIOD_NS);
	CHECK_EQ(row.calls_before, 120);
	CHECK_EQ(row.time.verdict, KPROF_DIFF_MORE);
	row = row_of(d, "[no stack]");
	CHECK_EQ(lround(row.self_before), 80 * PERIOD_NS);
	CHECK_EQ(row.time.verdict, KPROF_DIFF_NONE);
	CHECK_EQ(lround(kprof_diff_info(d)->whole.before), 400 * PERIOD_NS);
	kprof_diff_free(d);
}

static void wrong_options(void)
{
	CHECK(!compare("r1.kprof", "r2.kprof", (struct kprof_diff_opts){.by = 99}));
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK(!compare("r1.kprof", "r2.kprof", (struct kprof_diff_opts){.per = 99}));
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK(!compare("r1.kprof", "r2.kprof", (struct kprof_diff_opts){.frames = 99}));
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK(!compare("r1.kprof", "r2.kprof",
		       (struct kprof_diff_opts){.by = KPROF_DIFF_BY_KERNEL}));
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_FAILED);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(operators_by_step), TEST(steps_of_another_name),
	  TEST(other_units), TEST(recursion_counts_once), TEST(wrong_options),
	  {"(clean-up)", scratch__remove})
