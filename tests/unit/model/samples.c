// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/report/samples.c, timeline/samples.c: tables of known stacks, their errors, and stacks
 * as a C program sees them.
 */
#include <math.h>

#include "fake_store.h"
#include "unit.h"

#include "kprof.h"
#include "kprof/unwind.h"
#include "util/util.h"

enum { MAIN = 1, STEP, LEAF, ADD, ADD_OUT, SYSCALL, FIB };
enum { WHOLE = KPROF_UNWIND_WHOLE << KPROF_SAMPLE_END_SHIFT };

/*
 * main (libx) > step (train.py:7) > add (aten::add) > add_out (aten::add_out, inlined: leaf) > the
 * kernel.
 */
static void put_frames(void)
{
	static struct store_line main_line, step[2], add, add_out[2], syscall_line, fib;
	uint32_t path = fake_string("/lib/libx.so"), kernel = fake_string("[kernel]"), add_op,
		 out_op;
	struct store_record *r = fake_add(STORE_MODULE);

	r->module.id = 1;
	r->module.path = path;
	r = fake_add(STORE_MODULE);
	r->module.id = 2;
	r->module.kind = STORE_MODULE_KERNEL;
	r->module.path = kernel;
	main_line.function = fake_string("main");
	step[0] = (struct store_line){fake_string("step"), fake_string("/src/train.py"), 7, 0};
	step[1] = step[0];
	step[1].line = 9;
	add.function = fake_string("_ZN2at4_ops10add_Tensor4callEv");
	add_out[0] = (struct store_line){fake_string("leaf"), fake_string("/src/a.h"), 3, 0};
	add_out[1].function = fake_string("_ZN2at4loopIiEEvv");
	syscall_line.function = fake_string("do_syscall_64");
	fib = (struct store_line){fake_string("fib"), step[0].file, 1, 0};
	add_op = fake_string("aten::add");
	out_op = fake_string("aten::add_out");
	fake_frame(MAIN, STORE_FRAME_NATIVE, &main_line)->frame.module = 1;
	fake_frame(STEP, STORE_FRAME_PYTHON, step);
	fake_frame(LEAF, STORE_FRAME_PYTHON, step + 1); /* the same function, another line */
	fake_frame(ADD, STORE_FRAME_NATIVE, &add)->frame.op = add_op;
	r = fake_frame(ADD_OUT, STORE_FRAME_NATIVE, add_out);
	r->frame.nr_lines = 2;
	r->frame.op = out_op;
	fake_frame(SYSCALL, STORE_FRAME_KERNEL, &syscall_line);
	fake_frame(FIB, STORE_FRAME_PYTHON, &fib);
}

static void start(void)
{
	fake_reset();
	fake_clock(1000, 1000);
	fake_thread(0, 7, 7, "python3");
	fake_thread(1, 7, 8, "worker");
	fake_source(0, "samples")->source.dropped = 3;
	put_frames();
	fake_stack(1, 0, MAIN);
	fake_stack(2, 1, STEP);
	fake_stack(3, 2, ADD);
	fake_stack(4, 3, ADD_OUT);
	fake_stack(5, 4, SYSCALL);
	fake_stack(6, 1, LEAF); /* main > step, line 9 */
	fake_stack(7, 2, FIB);
	fake_stack(8, 7, FIB);
	fake_stack(9, 8, FIB);
}

static void put_samples(void)
{
	start();
	fake_sample(2000, 0, 5, 100)->sample.flags = KPROF_SAMPLE_KERNEL | WHOLE;
	fake_sample(2100, 0, 4, 200)->sample.flags = WHOLE;
	fake_sample(2200, 0, 3, 300)->sample.flags = WHOLE | KPROF_SAMPLE_CUT;
	fake_sample(2300, 0, 6, 400)->sample.flags = WHOLE | KPROF_SAMPLE_GIL;
	fake_sample(2400, 1, 9, 500)->sample.flags =
		KPROF_UNWIND_NO_TABLE << KPROF_SAMPLE_END_SHIFT | KPROF_SAMPLE_GIL_WAIT;
	fake_sample(2500, 1, 9, 500)->sample.flags = WHOLE;
	fake_sample(2600, 1, 0, 1000);
	fake_finish(5000);
}

static struct kprof_capture *c;
static struct kprof_result *r;

static void open_capture(void)
{
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	if (!c) {
		printf("# %s\n", kprof_error_cause());
		exit(1);
	}
}

static void table_of(enum kprof_by by, enum kprof_frames frames)
{
	struct kprof_result_opts opts = {
		.sz = sizeof(opts), .by = by, .sort = KPROF_SORT_TOTAL, .frames = frames};

	kprof_result_free(r);
	CHECK_EQ(kprof_result_new_opts(c, &opts, &r), 0);
	if (!r)
		exit(1);
	CHECK(kprof_result_of_samples(r));
	CHECK_EQ(kprof_result_self_total_ns(r), 3000); /* each sample is in one row */
}

static void close_all(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
	r = NULL;
	c = NULL;
}

static const struct kprof_row *row(const char *name)
{
	static const struct kprof_row none = {.category = "", .where = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name))
			return kprof_result_row(r, i);
	printf("# no row '%s' among", name);
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		printf(" '%s'", kprof_result_row(r, i)->name);
	printf("\n");
	CHECK(!"a row of that name");
	return &none;
}

static void expect(const char *name, uint64_t self_ns, uint64_t self_samples, uint64_t total_ns,
		   uint64_t calls)
{
	const struct kprof_row *got = row(name);

	CHECK_EQ(got->self_ns, self_ns);
	CHECK_EQ(got->self_samples, self_samples);
	CHECK_EQ(got->total_ns, total_ns);
	CHECK_EQ(got->calls, calls);
	CHECK(fabs(got->self_share - (double)self_ns / 3000) < 1e-9);
	CHECK(fabs(got->total_share - (double)total_ns / 3000) < 1e-9);
}

static void functions(void)
{
	put_samples();
	open_capture();
	table_of(KPROF_BY_FUNCTION, KPROF_FRAMES_ALL);
	CHECK_EQ(kprof_result_nr_rows(r), 8);
	expect("main", 0, 0, 2000, 6);
	expect("step", 400, 1, 2000, 6); /* both lines */
	expect("at::_ops::add_Tensor::call", 300, 1, 600, 3);
	expect("at::loop<...>", 0, 0, 300, 2);
	expect("leaf", 200, 1, 300, 2);
	expect("do_syscall_64", 100, 1, 100, 1);
	expect("fib", 1000, 2, 1000, 2); /* recursion once */
	expect("[no stack]", 1000, 1, 1000, 1);
	CHECK_STR(row("main")->where, "/lib/libx.so");
	CHECK_STR(row("main")->category, "native");
	CHECK_STR(row("step")->where, "/src/train.py");
	CHECK_STR(row("step")->category, "python");
	CHECK_STR(row("do_syscall_64")->category, "kernel");
	close_all();
}

static void only_some_frames(void)
{
	put_samples();
	open_capture();
	table_of(KPROF_BY_FUNCTION, KPROF_FRAMES_PYTHON);
	CHECK_EQ(kprof_result_nr_rows(r), 3);
	expect("step", 1000, 4, 2000, 6); /* with what it called that is not Python */
	expect("fib", 1000, 2, 1000, 2);
	expect("[no Python frame]", 1000, 1, 1000, 1);
	table_of(KPROF_BY_FUNCTION, KPROF_FRAMES_NATIVE);
	CHECK_EQ(kprof_result_nr_rows(r), 6);
	expect("main", 1400, 3, 2000, 6);
	expect("do_syscall_64", 100, 1, 100, 1);
	expect("[no native frame]", 1000, 1, 1000, 1);
	close_all();
}

static void lines(void)
{
	put_samples();
	open_capture();
	table_of(KPROF_BY_LINE, KPROF_FRAMES_ALL);
	expect("train.py:7 step", 0, 0, 1600, 5);
	expect("train.py:9 step", 400, 1, 400, 1);
	expect("a.h:3 leaf", 200, 1, 300, 2);
	expect("train.py:1 fib", 1000, 2, 1000, 2);
	expect("main", 0, 0, 2000, 6); /* no line is known */
	CHECK_STR(row("train.py:7 step")->where, "/src/train.py");
	close_all();
}

static void operators(void)
{
	put_samples();
	open_capture();
	table_of(KPROF_BY_OP, KPROF_FRAMES_ALL);
	CHECK_EQ(kprof_result_nr_rows(r), 4);
	expect("aten::add", 300, 1, 600, 3);
	expect("aten::add_out", 300, 2, 300, 2); /* what it called included */
	expect("[outside of operators]", 1900, 3, 1900, 3);
	expect("[incomplete stack]", 500, 1, 500, 1); /* the operator may be in what is missing */
	CHECK_STR(row("aten::add")->category, "cpu_op");
	close_all();
}

static void threads(void)
{
	put_samples();
	open_capture();
	table_of(KPROF_BY_THREAD, KPROF_FRAMES_ALL);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	expect("7/7 python3", 1000, 4, 1000, 4);
	expect("7/8 worker", 2000, 3, 2000, 3);
	CHECK_EQ(row("7/7 python3")->gil_ns, 400);
	CHECK_EQ(row("7/7 python3")->gil_wait_ns, 0);
	CHECK_EQ(row("7/8 worker")->gil_wait_ns, 500);
	CHECK_EQ(row("7/8 worker")->tid, 8);
	close_all();
}

/* Spans of operators are exact; only without any are operators and threads told from samples. */
static void spans_come_first(void)
{
	for (int with_ops = 0; with_ops < 2; with_ops++) {
		uint32_t description;

		start();
		description =
			fake_what_of("aten::mm", "", with_ops ? "cpu_op" : "user_annotation", 0);
		fake_begin(2000, 0, description);
		fake_end(2100, 0);
		fake_sample(2050, 0, 3, 10);
		fake_finish(5000);
		open_capture();
		for (int by = KPROF_BY_OP; by <= KPROF_BY_THREAD; by++) {
			CHECK_EQ(kprof_result_new(c, (enum kprof_by)by, KPROF_SORT_SELF, &r), 0);
			CHECK_EQ(kprof_result_of_samples(r), !with_ops);
			kprof_result_free(r);
			r = NULL;
		}
		CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_SELF, &r), 0);
		CHECK(kprof_result_of_samples(r));
		close_all();
	}
}

/* 100 equal samples, 20 of them in one function: Wilson's interval by hand, at z = 1.96. */
static void errors_are_wilsons(void)
{
	start();
	for (uint32_t i = 0; i < 100; i++)
		fake_sample(2000 + i, 0, i % 5 ? 1 : 6, 1000);
	fake_finish(5000);
	open_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_TOTAL, &r), 0);
	CHECK(fabs(row("step")->self_low - 0.13336) < 1e-4);
	CHECK(fabs(row("step")->self_high - 0.28883) < 1e-4);
	CHECK(fabs(row("main")->total_low - 0.96300) < 1e-4); /* of 100 in 100 */
	CHECK(row("main")->total_high == 1);
	close_all();
}

/* One that stands for as much as all others together leaves little to be sure of. */
static void unequal_weights_widen_them(void)
{
	start();
	for (uint32_t i = 0; i < 100; i++)
		fake_sample(2000 + i, 0, i % 5 ? 1 : 6, i == 1 ? 99000 : 1000);
	fake_finish(5000);
	open_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_TOTAL, &r), 0);
	CHECK(fabs(row("step")->self_share - 20.0 / 198) < 1e-9);
	CHECK(row("step")->self_high - row("step")->self_low > 0.5); /* n is 3.96 */
	close_all();
}

/*
 * What has no name counts by module: an address says nothing in a table of functions, and all there
 * is in one of lines.
 */
static void unnamed_functions(void)
{
	struct store_record *f;

	start();
	for (uint32_t i = 0; i < 2; i++) {
		f = fake_frame(8 + i, STORE_FRAME_NATIVE, NULL);
		f->frame.module = 1;
		f->frame.address = 0x10 + i;
		fake_stack(10 + i, 1, 8 + i);
		fake_sample(2000, 0, 10 + i, 1500);
	}
	f = fake_frame(10, STORE_FRAME_KERNEL, NULL);
	f->frame.module = 2;
	fake_stack(12, 0, 10);
	fake_sample(2000, 0, 12, 0);
	fake_finish(5000);
	open_capture();
	table_of(KPROF_BY_FUNCTION, KPROF_FRAMES_ALL);
	expect("[libx.so]", 3000, 2, 3000, 2);
	expect("[kernel]", 0, 1, 0, 1);
	table_of(KPROF_BY_LINE, KPROF_FRAMES_ALL);
	expect("libx.so+0x10", 1500, 1, 1500, 1);
	expect("libx.so+0x11", 1500, 1, 1500, 1);
	close_all();
}

static void what_is_asked_wrongly(void)
{
	struct kprof_result_opts opts = {
		.sz = sizeof(opts), .by = KPROF_BY_OP, .frames = KPROF_FRAMES_PYTHON};

	put_samples();
	open_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_AVG, &r), -EINVAL);
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	CHECK_EQ(kprof_result_new_opts(c, &opts, &r), -EINVAL);
	CHECK_EQ(kprof_error_class(), KPROF_ERROR_USAGE);
	opts.frames = 3;
	CHECK_EQ(kprof_result_new_opts(c, &opts, &r), -EINVAL);
	CHECK(!r);
	close_all();
}

static void a_capture_without_samples_has_an_empty_table(void)
{
	start();
	fake_finish(5000);
	open_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_LINE, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 0);
	CHECK_EQ(kprof_result_self_total_ns(r), 0);
	kprof_result_free(r);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	CHECK(!kprof_result_of_samples(r));
	close_all();
}

/* Damage that shows only when details are read: what was counted by heads before is put right. */
static void damage_found_late(void)
{
	put_samples();
	for (size_t i = 0; i < fake.nr; i++)
		if (fake.records[i].type == STORE_SAMPLE && fake.records[i].sample.time_ns == 2400)
			fake.cut_at = i;
	fake.late_damage = true;
	open_capture();
	CHECK_EQ(kprof_capture_info(c)->nr_samples, 7);
	CHECK(kprof_capture_info(c)->complete);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_capture_info(c)->nr_samples, 4);
	CHECK(!kprof_capture_info(c)->complete);
	CHECK_EQ(kprof_result_self_total_ns(r), 1000);
	close_all();
}

/* ---- hostile ---- */

enum { DEEP = 200000 };

static bool deep_stacks(size_t at, struct store_record *out)
{
	if (at >= 2 * DEEP)
		return false;
	memset(out, 0, sizeof(*out));
	if (at < DEEP) {
		out->type = STORE_STACK;
		out->stack.id = (uint32_t)at + 10;
		out->stack.parent = (uint32_t)at + 9;
		out->stack.frame = at % 2 ? FIB : STEP;
	} else {
		out->type = STORE_SAMPLE;
		out->sample.time_ns = 2000;
		out->sample.stack = (uint32_t)(at - DEEP) + 10;
		out->sample.weight_ns = 1ull << 60;
	}
	return true;
}

static int count_frames(void *ctx, const struct kprof_sample *s)
{
	size_t *calls = ctx;

	CHECK(s->nr_frames <= KPROF_SAMPLE_MAX_FRAMES);
	/* Five frames lie in front of the first of the deep stacks. */
	CHECK_EQ(!!(s->flags & KPROF_SAMPLE_CUT), ++*calls + 5 > KPROF_SAMPLE_MAX_FRAMES);
	return *calls == 2 * KPROF_SAMPLE_MAX_FRAMES; /* enough */
}

/* A stack of 200,000, and a sample at each depth: 2 · 10¹⁰ frames. Weights over 64 bits in all. */
static void deep_and_heavy(void)
{
	size_t calls = 0;

	start();
	fake.generate = deep_stacks;
	open_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FUNCTION, KPROF_SORT_TOTAL, &r), 0);
	CHECK_EQ(row("fib")->total_ns, UINT64_MAX);
	CHECK_EQ(row("fib")->calls, DEEP);
	CHECK(row("fib")->total_share <= 1 && row("fib")->total_high <= 1);
	kprof_result_free(r);
	r = NULL;
	kprof_capture_samples(c, count_frames, &calls);
	CHECK_EQ(calls, 2 * KPROF_SAMPLE_MAX_FRAMES);
	close_all();
}

/* ---- stacks as a program sees them ---- */

static int look(void *ctx, const struct kprof_sample *s)
{
	int *nr = ctx;

	if (++*nr != 1)
		return *nr == 7 ? 77 : 0;
	CHECK_EQ(s->time_mono_ns, 2000);
	CHECK_EQ(s->weight_ns, 100);
	CHECK_EQ(s->pid, 7);
	CHECK_EQ(s->flags & KPROF_SAMPLE_STATE, KPROF_SAMPLE_KERNEL);
	CHECK_EQ(s->nr_frames, 6);
	CHECK_STR(s->frames[0].function, "do_syscall_64");
	CHECK_EQ(s->frames[0].kind, KPROF_FRAME_KERNEL);
	CHECK_STR(s->frames[1].function, "leaf");
	CHECK(s->frames[1].inlined && !s->frames[2].inlined);
	CHECK_STR(s->frames[2].function, "at::loop<...>");
	CHECK_STR(s->frames[2].name, "void at::loop<int>()");
	CHECK_STR(s->frames[2].op, "aten::add_out");
	CHECK_STR(s->frames[4].file, "/src/train.py");
	CHECK_EQ(s->frames[4].line, 7);
	CHECK_EQ(s->frames[4].kind, KPROF_FRAME_PYTHON);
	CHECK_STR(s->frames[5].module, "/lib/libx.so");
	CHECK_STR(s->frames[5].op, "");
	return 0;
}

static void samples_with_their_frames(void)
{
	int nr = 0;

	put_samples();
	open_capture();
	CHECK_EQ(kprof_capture_info(c)->nr_samples, 7);
	CHECK_EQ(kprof_capture_samples(c, look, &nr), 77);
	CHECK_EQ(nr, 7);
	close_all();
}

static void what_they_are_worth(void)
{
	struct kprof_sample_stats stats;

	put_samples();
	open_capture();
	CHECK_EQ(kprof_capture_sample_stats(c, &stats), 0);
	CHECK_EQ(stats.samples, 7);
	CHECK_EQ(stats.weight_ns, 3000);
	CHECK_EQ(stats.lost, 3);
	CHECK_EQ(stats.walked, 6);
	CHECK_EQ(stats.whole, 4);
	CHECK_EQ(stats.cut, 1);
	CHECK_EQ(stats.ends[KPROF_UNWIND_NO_TABLE], 1);
	CHECK_EQ(stats.ends[KPROF_UNWIND_WHOLE], 5);
	for (uint32_t end = 0; end < KPROF_UNWIND_NR_ENDS; end++)
		CHECK(*kprof_sample_end(end) && strcmp(kprof_sample_end(end), "unknown") != 0);
	CHECK_STR(kprof_sample_end(255), "unknown");
	CHECK_STR(kprof_sample_end(UINT32_MAX), "unknown");
	close_all();
}

/* The line and the node that most of an operator's time was called from. */
static void callers(void)
{
	static struct store_line lines[3];
	static const char *const names[] = {
		"_ZN5torch8autograd9generated11MmBackward05applyEv",
		"_ZN5torch8autograd14AccumulateGrad5applyEv",
		"_ZN5torch8autograd6Engine5applyMEv",
	};

	start();
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		lines[i].function = fake_string(names[i]);
		fake_frame(FIB + 1 + (uint32_t)i, STORE_FRAME_NATIVE, &lines[i]);
	}
	fake_stack(10, 6, ADD); /* main > step, line 9 > add */
	fake_stack(11, 2, FIB + 1);
	fake_stack(12, 11, ADD); /* main > step, line 7 > MmBackward0 > add */
	fake_stack(13, 12, FIB + 3);
	fake_stack(14, 13, FIB + 2);
	fake_stack(15, 14, ADD); /* … again, inside of itself: it counts once */
	fake_stack(16, 1, ADD);  /* called by no Python */
	fake_sample(2000, 0, 3, 300)->sample.flags = WHOLE;
	fake_sample(2100, 0, 10, 400)->sample.flags = WHOLE;
	fake_sample(2200, 0, 12, 450)->sample.flags = WHOLE;
	fake_sample(2300, 0, 15, 50)->sample.flags = WHOLE;
	fake_sample(2400, 0, 16, 800)->sample.flags = WHOLE;
	fake_sample(2500, 0, 1, 1000)->sample.flags = WHOLE;
	fake_finish(5000);
	open_capture();
	table_of(KPROF_BY_OP, KPROF_FRAMES_ALL);
	CHECK_EQ(row("aten::add")->total_ns, 2000);
	CHECK_STR(row("aten::add")->caller, "train.py:7 step");
	CHECK(row("aten::add")->caller_share > 0.399 && row("aten::add")->caller_share < 0.401);
	CHECK_STR(row("aten::add")->node, "MmBackward0");
	CHECK(row("aten::add")->node_share > 0.249 && row("aten::add")->node_share < 0.251);
	CHECK_STR(row("[outside of operators]")->caller, "");
	CHECK_STR(row("[outside of operators]")->node, "");
	close_all();
}

UNIT_MAIN(TEST(callers), TEST(functions), TEST(only_some_frames), TEST(lines), TEST(operators),
	  TEST(threads), TEST(spans_come_first), TEST(errors_are_wilsons),
	  TEST(unequal_weights_widen_them), TEST(unnamed_functions), TEST(what_is_asked_wrongly),
	  TEST(a_capture_without_samples_has_an_empty_table), TEST(damage_found_late),
	  TEST(deep_and_heavy), TEST(samples_with_their_frames), TEST(what_they_are_worth))
