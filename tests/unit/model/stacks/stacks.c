// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/timeline/stacks.c: stacks put together from records that come in pieces, and hostile
 * ones.
 */
#include "fake_store.h"
#include "unit.h"

#include "model/timeline/timeline.h"
#include "util/util.h"

static void module(uint32_t id, const char *path, const char *build_id)
{
	uint32_t p = fake_string(path), b = fake_string(build_id);
	struct store_record *r = fake_add(STORE_MODULE);

	r->module.id = id;
	r->module.path = p;
	r->module.build_id = b;
}

static void names_may_come_later_than_stacks(void)
{
	struct store_line lines[2] = {{.line = 12}, {.line = 0}};
	struct store_record *r;
	struct tl_call calls[8];
	struct kprof_capture *t;
	uint32_t op;

	fake_reset();
	module(1, "/usr/lib/libx.so.1", "abcd");
	r = fake_frame(1, STORE_FRAME_NATIVE, NULL);
	r->frame.module = 1;
	r->frame.address = 0x40;
	fake_stack(1, 0, 1);
	fake_frame(2, STORE_FRAME_NATIVE, NULL);
	fake_stack(2, 1, 2);
	lines[0].function = fake_string("_ZN2at6native4loopIZNS_3addEvEUlfE_EEvRNS_6TensorE");
	lines[0].file = fake_string("/src/loops.h");
	lines[1].function = fake_string("main");
	op = fake_string("aten::add");
	r = fake_frame(2, STORE_FRAME_NATIVE, lines);
	r->frame.nr_lines = 2;
	r->frame.module = 1;
	r->frame.op = op;
	fake_finish(100);
	t = fake_timeline();
	CHECK_EQ(timeline__nr_stacks(t), 2);
	CHECK_EQ(timeline__nr_frames(t), 2);
	CHECK_EQ(timeline__calls(t, 2, calls, ARRAY_SIZE(calls)), 3);
	CHECK_STR(calls[0].line->function, "at::native::loop<...>");
	CHECK_STR(calls[0].line->file, "/src/loops.h");
	CHECK_EQ(calls[0].line->line, 12);
	CHECK(strstr(calls[0].line->full, "void at::native::loop<at::add()::{lambda(float)#1}>("));
	CHECK_STR(calls[0].frame->op, "aten::add");
	CHECK_STR(calls[1].line->function, "main");
	CHECK_STR(calls[1].line->file, "");
	CHECK(calls[1].frame == calls[0].frame);
	CHECK_STR(calls[2].line->function, "libx.so.1+0x40");
	CHECK_STR(calls[2].frame->op, "");
	CHECK_STR(calls[2].frame->module->path, "/usr/lib/libx.so.1");
	CHECK_STR(calls[2].frame->module->build_id, "abcd");
	CHECK_EQ(timeline__calls(t, 2, calls, 2), 2); /* no more than there is room */
	CHECK_EQ(timeline__calls(t, 0, calls, 2), 0);
	CHECK_EQ(timeline__calls(t, 3, calls, 2), 0);
	CHECK(!timeline__stack(t, 0) && !timeline__stack(t, 3) && !timeline__stack(t, UINT32_MAX));
	CHECK_EQ(timeline__stack(t, 2)->parent, 1);
	kprof_capture_close(t);
}

/* Only native names are mangled; a kind of a newer version counts as native. */
static void each_kind_has_names_of_its_own(void)
{
	struct store_line line = {0};
	struct kprof_capture *t;

	fake_reset();
	line.function = fake_string("_Z3runv");
	fake_frame(1, STORE_FRAME_PYTHON, &line);
	fake_frame(2, STORE_FRAME_KERNEL, &line);
	fake_frame(3, STORE_FRAME_NATIVE, &line);
	fake_frame(4, 77, &line);
	fake_frame(5, STORE_FRAME_KERNEL, NULL);
	fake_finish(100);
	t = fake_timeline();
	CHECK_EQ(timeline__frame(t, 1)->kind, TL_FRAME_PYTHON);
	CHECK_STR(timeline__frame(t, 1)->lines[0].function, "_Z3runv");
	CHECK_EQ(timeline__frame(t, 2)->kind, TL_FRAME_KERNEL);
	CHECK_STR(timeline__frame(t, 2)->lines[0].function, "_Z3runv");
	CHECK_STR(timeline__frame(t, 3)->lines[0].function, "run");
	CHECK_STR(timeline__frame(t, 3)->lines[0].full, "run()");
	CHECK_EQ(timeline__frame(t, 4)->kind, TL_FRAME_NATIVE);
	/* Interned: the same text for the same name. */
	CHECK(timeline__frame(t, 3)->lines[0].full == timeline__frame(t, 4)->lines[0].full);
	CHECK_STR(timeline__frame(t, 5)->lines[0].function, "[unknown]");
	CHECK(!timeline__frame(t, 0) && !timeline__frame(t, 6));
	kprof_capture_close(t);
}

/* "a;b" outermost first. */
static const char *path_of(const struct kprof_capture *t, uint32_t stack)
{
	static char text[256];
	size_t at = sizeof(text);

	for (const struct tl_stack *s; (s = timeline__stack(t, stack)); stack = s->parent) {
		const char *name = s->frame->lines[0].function;
		bool last = at == sizeof(text);

		at -= strlen(name) + 1;
		memcpy(text + at, name, strlen(name));
		text[at + strlen(name)] = last ? '\0' : ';';
	}
	return text + at;
}

/*
 * Frames of CPython's binary: hidden beside Python's, there at the root, at the leaf, and between
 * others.
 */
static void the_interpreters_frames_stand_back(void)
{
	static const struct {
		const char *name;
		uint32_t kind, module;
	} frames[] = {
		{"_start", STORE_FRAME_NATIVE, 1},   {"libc", STORE_FRAME_NATIVE, 2},
		{"Py_Main", STORE_FRAME_NATIVE, 1},  {"run", STORE_FRAME_NATIVE, 1},
		{"f", STORE_FRAME_PYTHON, 0},        {"vcall", STORE_FRAME_NATIVE, 1},
		{"g", STORE_FRAME_PYTHON, 0},        {"cfunc", STORE_FRAME_NATIVE, 1},
		{"backward", STORE_FRAME_NATIVE, 2}, {"dealloc", STORE_FRAME_NATIVE, 1},
		{"free", STORE_FRAME_NATIVE, 2},
	};
	struct store_line lines[ARRAY_SIZE(frames)] = {0};
	struct kprof_capture *t;

	fake_reset();
	module(1, "/opt/conda/bin/python3.12", "");
	module(2, "/usr/lib/libpythonic.so", "");
	for (uint32_t i = 0; i < ARRAY_SIZE(frames); i++) {
		lines[i].function = fake_string(frames[i].name);
		fake_frame(i + 1, frames[i].kind, &lines[i])->frame.module = frames[i].module;
		fake_stack(i + 1, i, i + 1);
	}
	fake_finish(100);
	t = fake_timeline();
	CHECK_STR(path_of(t, 11), "_start;libc;f;g;backward;dealloc;free");
	CHECK_STR(path_of(t, 8), "_start;libc;f;g;cfunc");
	CHECK_STR(path_of(t, 6), "_start;libc;f;vcall");
	CHECK_STR(path_of(t, 4), "_start;libc;Py_Main;run");
	kprof_capture_show_interpreter(t, true);
	CHECK_STR(path_of(t, 11), "_start;libc;Py_Main;run;f;vcall;g;cfunc;backward;dealloc;free");
	kprof_capture_show_interpreter(t, false);
	CHECK_STR(path_of(t, 7), "_start;libc;f;g");
	kprof_capture_close(t);
}

static void references_to_nothing_are_refused(void)
{
	for (int description = 0; description < 9; description++) {
		struct store_line line = {0};
		struct store_record *r;
		struct kprof_capture *t;

		fake_reset();
		module(1, "x", "");
		r = fake_frame(1, STORE_FRAME_NATIVE, &line);
		r->frame.module = description == 0 ? 2 : 1;
		r->frame.id = description == 1 ? 2 : description == 2 ? 0 : 1;
		r->frame.op = description == 3 ? 1000 : 0;
		line.function = description == 4 ? 1000 : 0;
		line.file = description == 5 ? 1000 : 0;
		fake_stack(description == 6 ? 2 : 1, description == 7 ? 1 : 0,
			   description == 8 ? 2 : 1);
		fake_finish(100);
		CHECK_EQ(kprof_capture_open("fake", &t), -EBADMSG);
		CHECK(strstr(kprof_error_cause(), "contradict"));
	}
}

struct sum {
	uint64_t nr, weight_ns, stop_at;
};

static int add(void *ctx, const struct store_record *r)
{
	struct sum *sum = ctx;

	sum->nr++;
	sum->weight_ns += r->sample.weight_ns;
	return sum->nr == sum->stop_at ? 77 : 0;
}

static int no_sample(void *ctx, const struct store_record *r)
{
	CHECK(r->type != STORE_SAMPLE);
	++*(int *)ctx;
	return 0;
}

static void put_samples(void)
{
	fake_reset();
	fake_clock(1000, 1000);
	fake_thread(0, 1, 1, "t");
	fake_frame(1, STORE_FRAME_NATIVE, NULL);
	fake_stack(1, 0, 1);
	fake_sample(2000, 0, 1, 5);
	fake_api(0, "cuda", 1, 2, 3);
	fake_sample(9000, 0, 0, 7);
	fake_sample(3000, 0, 1, 11);
}

static void samples_are_streamed(void)
{
	struct sum sum = {0};
	struct kprof_capture *t;
	int details = 0;

	put_samples();
	fake_finish(10000);
	t = fake_timeline();
	CHECK_EQ(kprof_capture_info(t)->nr_samples, 3);
	for (uint64_t i = 0; i < 2; i++) {
		CHECK_EQ(timeline__samples(t, 0, add, &sum), 0);
		CHECK_EQ(sum.nr, 3 * (i + 1));
	}
	CHECK_EQ(sum.weight_ns, 2 * (5 + 7 + 11));
	CHECK_EQ(timeline__details(t, 0, no_sample, &details), 0);
	CHECK_EQ(details, 1);
	sum = (struct sum){.stop_at = 2};
	CHECK_EQ(timeline__samples(t, 0, add, &sum), 77);
	CHECK_EQ(sum.nr, 2);
	kprof_capture_close(t);
}

/* A recording of samples that was cut short lasts until its last sample. */
static void a_cut_capture_ends_with_its_last_sample(void)
{
	struct kprof_capture *t;

	put_samples();
	t = fake_timeline();
	CHECK_EQ(kprof_capture_info(t)->start_mono_ns, 1000);
	CHECK_EQ(kprof_capture_info(t)->end_mono_ns, 9000);
	kprof_capture_close(t);
}

UNIT_MAIN(TEST(names_may_come_later_than_stacks), TEST(each_kind_has_names_of_its_own),
	  TEST(references_to_nothing_are_refused), TEST(the_interpreters_frames_stand_back),
	  TEST(samples_are_streamed), TEST(a_cut_capture_ends_with_its_last_sample))
